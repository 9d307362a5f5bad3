"""Each sentence of a plan's text, ticket and page is true for groups that could refute it.

All assignments of the small groups are enumerated, without the code of the solver.
"""

import html
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from threading import Event

import pytest

from kassay.experiments.implementations.convergence import run_until_stable
from kassay.experiments.planning.group_plan.plan import plan
from kassay.experiments.planning.plan_output.render_plan import (
    render_html,
    render_summary,
    render_ticket,
)
from kassay.reference import Group, Member, Topic
from kassay.reference.model.group_annotations import (
    Assumed,
    Client,
    GroupStatus,
    Protocol,
    WeightSource,
)
from kassay.solver import MaxMoves, SearchLimits
from kassay.solver.constraints import Forbidden, Pinned

STOPPED = Event()
STOPPED.set()
X, Y = ("x",), ("y",)


def group(weights, owners, more="", racks=None, id="g", **changes) -> Group:
    """Return a group of one topic; ``owners`` has a letter per partition, or a hyphen."""
    ids = sorted({*owners, *more} - {"-"})
    settings = {name: changes.pop(name) for name in list(changes) if name in ids}
    members = [
        Member(
            id=name,
            subscription=("t",),
            owned=[("t", at) for at, owner in enumerate(owners) if owner == name],
            generation=1,
            **settings.get(name, {}),
        )
        for name in ids
    ]
    topic = Topic("t", len(weights), weights=tuple(weights), racks=racks)
    return replace(Group(topics=(topic,), members=tuple(members), id=id), **changes)


@dataclass(frozen=True)
class Case:
    """Group with settings of a plan, and the assignments that its constraints permit."""

    group: Group
    settings: dict[str, object]
    permits: object = None  # function of the owner per partition, and of the number of moves

    @cached_property
    def partitions(self):
        return [(topic.name, at) for topic in self.group.topics for at in range(topic.partitions)]

    @cached_property
    def weights(self):
        topics = {topic.name: topic for topic in self.group.topics}
        return [topics[name].weight(at) for name, at in self.partitions]

    @cached_property
    def owners(self):
        held = {tuple(tp): one.id for one in self.group.members for tp in one.owned}
        return [held.get(tp) for tp in self.partitions]

    @cached_property
    def assignments(self):
        """All valid assignments: owner per partition, moves, relative maximum load, squares."""
        choices = [
            [one.id for one in self.group.members if name in one.subscription]
            for name, _ in self.partitions
        ]
        return [self.measured(list(owners)) for owners in product(*choices)]

    @cached_property
    def permitted(self):
        if self.permits is None:
            return self.assignments
        return [one for one in self.assignments if self.permits(one[0], one[1])]

    def measured(self, owners):
        loads = self.loads(owners)
        moves = sum(old not in (None, new) for old, new in zip(self.owners, owners, strict=True))
        return owners, moves, max(self.relative(loads).values()), self.squares(loads)

    def loads(self, owners):
        loads = dict.fromkeys([one.id for one in self.group.members], 0)
        for owner, weight in zip(owners, self.weights, strict=True):
            if owner is not None:
                loads[owner] += weight
        return loads

    def squares(self, loads):
        return sum(load * self.relative(loads)[name] for name, load in loads.items())

    def relative(self, loads):
        speeds = {one.id: one.speed for one in self.group.members}
        fastest = max(speeds.values())
        return {name: Fraction(load * fastest, speeds[name]) for name, load in loads.items()}

    def planned(self, result):
        held = {tuple(tp): name for name, tps in result.assignment.items() for tp in tps}
        return self.measured([held[tp] for tp in self.partitions])


def shown(value):
    """Format a relative load as texts of plans do."""
    rounded = round(float(value), 1) if value < 100 else round(value)
    return f"{int(rounded) if rounded == int(rounded) else rounded:,}"


SPEEDS = {"a": {"speed": 97}, "b": {"speed": 89}, "c": {"speed": 83}}
TOPICS = {"assumed": (Assumed.TOPICS,)}
CASES = {
    "optimal": Case(group([1] * 4, "aabb"), {}),
    "uneven": Case(group([1] * 5, "aaaab"), {}),
    "uneven with a weight of three": Case(group([3] * 5, "aaaab"), {}),
    "pinned": Case(
        group([1] * 4, "aaab"),
        {"constraints": [Pinned("t", at, "a") for at in range(3)]},
        lambda owners, _: owners[:3] == ["a"] * 3,
    ),
    "forbidden": Case(
        group([1] * 4, "aabb"),
        {"constraints": [Forbidden("a", "t", 0)]},
        lambda owners, _: owners[0] != "a",
    ),
    "no moves": Case(
        group([1] * 4, "aaab"), {"constraints": [MaxMoves(0)]}, lambda _, moves: moves == 0
    ),
    "one move": Case(
        group([9, 7, 5, 4, 3], "aaaaa", more="bc"),
        {"constraints": [MaxMoves(1)]},
        lambda _, moves: moves <= 1,
    ),
    "one move of equal weight, mixed": Case(
        Group(
            (Topic("t", 5), Topic("u", 4), Topic("v", 3)),
            (
                Member("a", ("t",), owned=[("t", at) for at in range(5)], generation=1),
                Member("b", ("t", "v"), owned=[("v", at) for at in range(3)], generation=1),
                Member("c", ("u",), owned=[("u", at) for at in range(4)], generation=1),
                Member("d", ("u",)),
            ),
            id="g",
        ),
        {"constraints": [MaxMoves(1)]},
        lambda _, moves: moves <= 1,
    ),
    "capacity": Case(
        group([1] * 6, "aaaabb", b={"capacity": 2}), {}, lambda owners, _: owners.count("b") <= 2
    ),
    "racks": Case(
        group([1] * 4, "bbaa", racks=(X, X, Y, Y), a={"rack": "x"}, b={"rack": "y"}),
        {"levels": ["imbalance", "cross_rack", "movement"]},
    ),
    "ignored racks": Case(
        group([1] * 4, "bbaa", racks=(X, X, Y, Y), a={"rack": "x"}, b={"rack": "y"}), {}
    ),
    "hosts": Case(
        group(
            [1] * 6,
            "aabbcc",
            **{
                name: {"client": Client(host=host)} for name, host in zip("abc", "hhi", strict=True)
            },
        ),
        {},
    ),
    "single member": Case(group([1, 2, 3], "aaa"), {}),
    "no weight": Case(group([0, 0, 5], "aab"), {}),
    "without owners": Case(group([9, 5, 4, 3, 1], "a---b"), {}),
    "fewer partitions than members": Case(group([1, 1], "ab", more="cd"), {}),
    "two heavy partitions": Case(group([50, 50, 5, 5, 5, 5], "aabbcc"), {}),
    "within two per cent": Case(group([100, 99, 1], "aab"), {}),
    "lag": Case(group([40, 30, 20, 1, 1], "aaabb", weight_source=WeightSource.LAG), {}),
    "speeds": Case(group([97, 89, 55, 13, 8, 8, 5], "aaaabbb", more="c", **SPEEDS), {}),
    "speeds and equal weights": Case(group([1] * 6, "aaaabb", more="c", **SPEEDS), {}),
    "no time": Case(group([9, 8, 7, 5, 3, 2], "aaabbb"), {"limits": SearchLimits(time=0)}),
    "stopped": Case(
        group([9, 8, 7, 5, 3, 2, 2], "aaaabbb", more="c"),
        {"limits": SearchLimits(time=5, stop=STOPPED)},
    ),
    "sticky": Case(group([1] * 6, "aaaabc", status=GroupStatus(assignor="cooperative-sticky")), {}),
    "reconciling": Case(
        group(
            [1] * 6,
            "aaaaaa",
            more="b",
            a={"target": [("t", 0), ("t", 1), ("t", 2)], "speed": 97},
            b={"target": [("t", 3), ("t", 4), ("t", 5)], "speed": 89},
            status=GroupStatus(state="Reconciling", protocol=Protocol.CONSUMER, assignor="uniform"),
        ),
        {},
    ),
    "assumed": Case(group([1] * 5, "aaaab", a=TOPICS, b=TOPICS), {}),
    "leximax": Case(
        group([9, 7, 5, 4, 3], "aaaaa", more="bc"), {"levels": ["leximax", "movement"]}
    ),
    "squares": Case(
        group([9, 7, 5, 4, 3], "aaaaa", more="bc"), {"levels": ["sum_of_squares", "movement"]}
    ),
}
_REMOVED = re.compile(r"<script.*?</script>|<style.*?</style>|<svg.*?</svg>|<[^>]+>", re.DOTALL)


@dataclass(frozen=True)
class Texts:
    """Plan of a case, with its text, ticket and page without tags."""

    case: Case
    result: object
    summary: str
    ticket: str
    page: str

    @property
    def all(self):
        return (self.summary, self.ticket, self.page)


SHORT = (
    "pinned",
    "no moves",
    "one move of equal weight, mixed",
    "capacity",
    "racks",
    "without owners",
    "two heavy partitions",
    "lag",
    "speeds and equal weights",
    "stopped",
    "reconciling",
    "assumed",
)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in CASES],
)
def texts(request) -> Texts:
    case = CASES[request.param]
    result = plan(case.group, **{"limits": SearchLimits(time=2), **case.settings})
    page = html.unescape(_REMOVED.sub(" ", render_html(result)))
    ticket = render_ticket(result).replace("\\", "")
    return Texts(case, result, render_summary(result, directory=None), ticket, page)


def test_the_verdict_states_the_moves_and_the_maximum_loads(texts):
    case, result = texts.case, texts.result
    _, moves, makespan, squares = case.planned(result)
    verdict = texts.summary.splitlines()[0]
    changed = re.search(r"(\d+) moves? (lower|keep|give)s? ", verdict)
    assert (int(changed[1]) if changed else 0) == moves
    for text in texts.all:
        assert verdict.removeprefix("g: ") in text
    if changed and changed[2] == "lower":
        before = max(case.relative(case.loads(case.owners)).values())
        assert f"from {shown(before)} to {shown(makespan)}" in verdict
        assert before > makespan
    if "even out" in verdict or "lower the sum of squares" in verdict:
        assert squares < case.squares(case.loads(case.owners))


def test_minima_that_are_called_proven_are_minima(texts):
    case, result = texts.case, texts.result
    makespan = case.planned(result)[2]
    verdict = texts.summary.splitlines()[0]
    is_restricted = case.permits is not None
    if "is the proven minimum" in verdict:
        assert makespan == min(one[2] for one in case.permitted)
        restricted = "under the constraints" in verdict or "within the capacities" in verdict
        assert restricted == is_restricted
    above = re.search(r"at most ([\d.]+)% above the minimum", verdict)
    if above:
        limit = Fraction(above[1]) + Fraction(1, 20)
        assert makespan <= min(one[2] for one in case.permitted) * (1 + limit / 100)


def test_nothing_to_do_means_that_no_permitted_assignment_is_better(texts):
    case = texts.case
    verdict = texts.summary.splitlines()[0]
    if "othing to do" not in verdict:
        assert texts.result.moves or "optimality is not proven" in verdict
        return
    now = case.measured(case.owners)
    best = min(case.permitted, key=lambda one: one[2:])
    share = Fraction(102, 100) if "within 2%" in verdict else 1
    assert now[2] <= best[2] * share
    assert now[3] == best[3] or share > 1
    assert ("under the constraints" in verdict or "within the capacities" in verdict) == (
        case.permits is not None
    )


def test_the_values_of_options_are_proven_only_if_they_are_minima(texts):
    case = texts.case
    for option in texts.result.options:
        moves, makespan = option.movement.value, option.metrics.makespan
        limited = {"constraints": [MaxMoves(1)]} == texts.case.settings
        pool = case.assignments if limited else case.permitted
        units = case.relative(option.metrics.loads)
        if option.imbalance.name == "makespan" and option.imbalance.gap == 0:
            assert max(units.values()) == min(one[2] for one in pool if one[1] <= moves)
        if option.imbalance.name == "makespan" and option.movement.gap == 0:
            assert moves == min(one[1] for one in pool if one[2] <= max(units.values()))
        if option.name == "minimum imbalance" and option.imbalance.name == "makespan":
            assert max(units.values()) == min(one[2] for one in pool)
        if option.name == "at most ten moves":
            assert moves <= 10
        assert makespan >= 0


def test_recommended_actions_keep_the_constraints_and_have_the_stated_results(texts):
    case = texts.case
    for action in texts.result.actions[:3]:
        assert action.text in texts.page
    for action in texts.result.actions:
        name = re.search(r"(?:assignor (?:to )?|rebalance: )([\w-]+)", action.text)
        if name is None:
            continue
        stable = run_until_stable(case.group, name[1])
        if "of the consumer protocol" in action.text and name[1] == "range":
            stable = run_until_stable(case.group, "server-range")
        held = {tuple(tp): one for one, tps in stable.assignment.items() for tp in tps}
        owners, moves, makespan, _ = case.measured([held[tp] for tp in case.partitions])
        assert case.permits is None or case.permits(owners, moves)
        noun = "move" if moves == 1 else "moves"
        result = re.escape(f"{moves} {noun}, maximum load {shown(makespan)}")
        assert re.search(rf"{result}(; \d rolling restarts?.*)?\)", action.text)


def test_the_page_denies_other_actions_only_if_no_assignor_reaches_the_plan(texts):
    case, result = texts.case, texts.result
    if "comes within 5 % of this plan" not in texts.page:
        return
    planned, now = case.planned(result), case.measured(case.owners)
    for outcome in result.assignor_outcomes:
        if outcome.metrics is not None and not case.permits:
            loads = outcome.metrics.loads
            reached = (max(case.relative(loads).values()), case.squares(loads))
            is_near = reached[0] <= planned[2] * Fraction(21, 20)
            assert not (is_near and reached[0] < now[2])


def test_steps_and_batches_lead_to_the_planned_loads(texts):
    case, result = texts.case, texts.result
    owners = dict(zip(case.partitions, case.owners, strict=True))
    for number, batch in enumerate(result.batches, 1):
        for move in batch.moves:
            assert owners[move.topic, move.partition] == move.source
            owners[move.topic, move.partition] = move.target
        highest = shown(max(case.relative(case.loads(list(owners.values()))).values()))
        first = batch.moves[0]
        origin = "" if first.source is None else f" from `{first.source}`"
        line = (
            f"{number}. `t-{first.partition}`{origin} to `{first.target}`; maximum load {highest}"
        )
        assert first.topic != "t" or line in texts.ticket
    assert list(owners.values()) == case.planned(result)[0]
    for step in result.steps[:-1]:
        before, after = (sorted((one[at] for one in step.loads), reverse=True) for at in (1, 2))
        assert after < before


def test_the_loss_of_a_member_has_the_minimum_of_all_takeovers(texts):
    case, result = texts.case, texts.result
    owners = case.planned(result)[0]
    for loss in result.member_losses.losses:
        free = [at for at, owner in enumerate(owners) if owner == loss.member]
        choices = [
            [
                one.id
                for one in case.group.members
                if one.id != loss.member and case.partitions[at][0] in one.subscription
            ]
            for at in free
        ]
        if not all(choices):
            assert loss.unserved == sum(not one for one in choices)
            continue
        lowest = min(
            max(case.relative(case.loads([*map(takers.get, range(len(owners)), owners)])).values())
            for takers in (dict(zip(free, chosen, strict=True)) for chosen in product(*choices))
        )
        assert loss.makespan.bound <= loss.makespan.value
        if loss.makespan.gap == 0:
            assert re.search(
                rf"{loss.member}\s+{re.escape(shown(lowest))}\s+0\s+proven", texts.page
            )


def test_the_frontier_is_complete_only_if_it_has_all_points(texts):
    case, result = texts.case, texts.result
    if result.frontier.measure == "makespan" and result.frontier.complete:
        pool = case.assignments if texts.case.settings.get("constraints") else case.permitted
        for point in result.frontier.points:
            load = max(case.relative(case.loads(_owners(case, point.assignment))).values())
            assert load == min(one[2] for one in pool if one[1] <= point.movement.value)
        assert load == min(one[2] for one in pool)
    assert ("orange line" in texts.page) <= bool(result.moves)
    assert ("grey marks" in texts.page) == (len(result.frontier.points) > 1)


def _owners(case, assignment):
    held = {tuple(tp): name for name, tps in assignment.items() for tp in tps}
    return [held[tp] for tp in case.partitions]


def test_a_lower_limit_of_the_maximum_load_is_one(texts):
    case, found = texts.case, texts.result.limiting_partition
    for text in texts.all:
        assert ("Lower limit of the maximum load" in text) == (found is not None)
    if found is not None:
        assert found.weight <= min(one[2] for one in case.assignments)
        split = [(1, weight) if weight != found.weight else (2, weight) for weight in case.weights]
        parts = [w // n + (at < w % n) for n, w in split for at in range(n)]
        members = len(case.group.members)
        lowest = min(
            max(
                sum(w for w, at in zip(parts, chosen, strict=True) if at == m)
                for m in range(members)
            )
            for chosen in product(range(members), repeat=len(parts))
        )
        assert str(found).endswith(f"the lowest maximum load is {lowest:,}.")


def test_sentences_on_the_input_are_true(texts):
    case, result = texts.case, texts.result
    is_weighted = len(set(case.weights)) > 1
    assert (f"partitions of {'different' if is_weighted else 'equal'} weight" in texts.page) or (
        len(case.partitions) == 1
    )
    assert ("Loads are numbers of partitions" in texts.page) == (set(case.weights) == {1})
    has_lag = case.group.weight_source is WeightSource.LAG
    for text in texts.all:
        assert ("weights are lag" in text) <= has_lag
        assert ("Interrupted" in text) == result.interrupted
        assert ("The group is reconciling" in text) == (case.group.status.state == "Reconciling")
        digits = re.sub(r"(?<=\d)[,\u202f](?=\d)", "", text)
        assert not re.search(r"\d{6}", digits)
    speeds = {one.speed for one in case.group.members}
    assert ("Members differ in speed" in texts.page) == (len(speeds) > 1)
    ways = re.search(r"There are (three|four) ways", texts.page)[1]
    assert ways == ("four" if result.actions else "three")
    is_assumed = any(one.assumed for one in case.group.members)
    assert (
        ("proofs hold if" in texts.summary) == is_assumed == ("on this page hold if" in texts.page)
    )
