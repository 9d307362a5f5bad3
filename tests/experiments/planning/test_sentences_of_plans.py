"""Each sentence of a plan's text, ticket and page is true for groups that could refute it."""

import html
import re
from dataclasses import dataclass
from fractions import Fraction

import pytest

from kassay import MaxMoves, SearchLimits
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plans import PAGE, TEXT, TICKET, render_plan
from kassay.reference.model.group import WeightSource
from tests.experiments.planning.enumerated_groups import CASES, Case
from tests.stored_cases import stored_cases


def shown(value):
    """Format a relative load as texts of plans do."""
    rounded = round(float(value), 1) if value < 100 else round(value)
    return f"{int(rounded) if rounded == int(rounded) else rounded:,}"


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

    @property
    def verdict(self):
        """The verdict: the third line, after the cause and the action."""
        lines = self.summary.splitlines()
        assert lines[1].startswith("To do: ")
        assert lines[2].startswith("Plan: ")
        return lines[2].removeprefix("Plan: ")


SHORT = stored_cases("short_plan_cases")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in CASES],
)
def texts(request) -> Texts:
    case = CASES[request.param]
    result = plan(case.group, **{"limits": SearchLimits(time=2), **case.settings})
    page = html.unescape(_REMOVED.sub(" ", render_plan(result, PAGE)))
    ticket = render_plan(result, TICKET).replace("\\", "")
    return Texts(case, result, render_plan(result, TEXT, directory=None), ticket, page)


def test_the_verdict_states_the_moves_and_the_maximum_loads(texts):
    case, result = texts.case, texts.result
    _, moves, makespan, squares = case.planned(result)
    verdict = texts.verdict
    changed = re.search(r"(\d+) moves? (lower|keep|give)s? ", verdict)
    assert (int(changed[1]) if changed else 0) == moves
    for text in texts.all:
        assert verdict in text
    if changed and changed[2] == "lower":
        before = max(case.relative(case.loads(case.owners)).values())
        assert f"from {shown(before)} to {shown(makespan)}" in verdict
        assert before > makespan
        share = re.search(r"\(-(\d+)%\)", verdict)
        assert share is None or 0 < int(share[1]) < 100
    if "even out" in verdict or "lower the sum of squares" in verdict:
        assert squares < case.squares(case.loads(case.owners))


def test_minima_that_are_called_proven_are_minima(texts):
    case, result = texts.case, texts.result
    makespan = case.planned(result)[2]
    verdict = texts.verdict
    is_restricted = case.permits is not None
    if "is the proven minimum" in verdict:
        assert makespan == min(one[2] for one in case.permitted)
        restricted = "under the constraints" in verdict or "within the capacities" in verdict
        assert restricted == is_restricted
    above = re.search(r"at most ([\d.]+)% above the minimum", verdict)
    if above:
        limit = Fraction(above[1]) + Fraction(1, 20)
        assert makespan <= min(one[2] for one in case.permitted) * (1 + limit / 100)


def test_no_moves_mean_that_no_permitted_assignment_is_better(texts):
    case = texts.case
    verdict = texts.verdict
    if "o moves" not in verdict:
        assert texts.result.moves or "optimality is not proven" in verdict
        return
    now = case.measured(case.owners)
    best = min(case.permitted, key=lambda one: one[2:])
    share = Fraction(102, 100) if "within 2%" in verdict else 1
    levels = re.search("optimal for the levels (.*?)(?: under|,? with proof)", verdict)
    assert levels is not None or now[2] <= best[2] * share
    assert levels is not None or now[3] == best[3] or share > 1
    assert (levels is None) == (texts.result.levels[0].name != "movement")
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


def test_a_minimum_of_moves_is_stated_with_the_levels_before_it(texts):
    case, result = texts.case, texts.result
    _, moves, makespan, squares = case.planned(result)
    column = {"makespan": 2, "sum_of_squares": 3}.get(result.solution.imbalance.name)
    if column is None or result.solution.movement.gap:
        return
    limit = (makespan, squares)[column - 2]
    fewest = min(one[1] for one in case.permitted if one[column] <= limit)
    has_note = "The bounds of this plan hold for assignments with at most the same" in texts.page
    tile = re.search(r"fewest( at the same [a-z ]+)?: proven", texts.page)
    assert moves == fewest or (has_note and "reads across racks" in tile[1])
    row = re.search(r"this plan([^a-z]*)\s1\s+(?:not )?proven:", texts.page)[1].split()
    assert row[-2 if result.racks() else -1] in ("–", str(fewest))


def test_reads_across_racks_are_those_of_the_assignments(texts):
    case, result = texts.case, texts.result
    if not result.racks():
        return
    racks = {one.id: one.rack for one in case.group.members}
    replicas = [racks for topic in case.group.topics for racks in topic.racks]
    owners = _owners(case, result.assignment)
    crossing = sum(racks[one] not in at for one, at in zip(owners, replicas, strict=True))
    assert re.search(rf"current assignment, and {crossing}\s+in the planned one", texts.page)
    is_ignored = all(level.name != "cross_rack" for level in result.levels)
    command = "kassay plan SOURCE --level cross_rack --level movement"
    is_stated = f"consider racks with: {command}" in texts.summary
    assert is_stated == (is_ignored and (result.current.cross_rack or crossing) > 0)


def test_recommended_actions_keep_the_constraints_and_have_the_stated_results(texts):
    case = texts.case
    for action in texts.result.actions[:3]:
        assert action.text in texts.page
    for action in texts.result.actions:
        name = re.search(r"(?:assignor (?:to )?|rebalance: )([\w-]+)", action.text)
        if name is None:
            continue
        stable = run_until_stable(case.group, name[1])
        is_of_broker = re.search("of the consumer protocol|group.remote.assignor", action.text)
        if is_of_broker and name[1] == "range":
            stable = run_until_stable(case.group, "server-range")
        held = {tuple(tp): one for one, tps in stable.assignment.items() for tp in tps}
        owners, moves, makespan, _ = case.measured([held[tp] for tp in case.partitions])
        assert case.permits is None or case.permits(owners, moves)
        result = f"maximum load {shown(makespan)}"
        own = identify_assignor(case.group).port
        number = f"{moves} {'move' if moves == 1 else 'moves'}"
        if own is not None and action.changes_assignor:
            # Moves of the predicted rolling restarts, with an interval if the samples differ.
            number, least, most = re.search(r"(?:(\d+) to (\d+)|\d+) moves?", action.text).group(
                0, 1, 2
            )
            assert float(least or action.moves) <= action.moves <= float(most or action.moves)
            assert most or float(number.split()[0]) == action.moves
        if not action.changes_assignor or action.moves is not None:
            times = "one rebalance" if stable.rounds == 1 else f"{stable.rounds} rebalances"
            within = f" in {times}" if case.group.status.assignor is None else ""
            result = f"{number}{within}, {result}"
        result = re.escape(result)
        assert re.search(rf"{result}(; \d rolling restarts?.*)?\)", action.text)


def test_the_page_denies_other_actions_only_if_no_assignor_reaches_the_plan(texts):
    case, result = texts.case, texts.result
    if "No action that kassay checks" not in texts.page:
        return
    assert result.movement
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
            f"- {number}. `t-{first.partition}`{origin} to `{first.target}`; maximum load {highest}"
        )
        assert first.topic != "t" or line in texts.ticket
    assert list(owners.values()) == case.planned(result)[0]
    for step in result.steps[:-1]:
        before, after = (sorted((one[at] for one in step.loads), reverse=True) for at in (1, 2))
        assert after < before


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
        for text in texts.all:
            note = "The constraints of the plan do not apply to these values."
            assert (note in text) == bool(texts.result.constraints)


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
    first = [one for one in result.actions[:1] if result.to_do.text.endswith(one.text)]
    is_recommended = bool(result.movement and first and first[0].moves)
    assert ways == ("four" if is_recommended else "three")
    assert ("its moves and maximum load are listed there" in texts.page) == is_recommended
    for text in texts.all:
        assert ("--like a --format" in text) == (len(speeds) > 1)
        assert ("--max-moves 10" in text) == (result.movement > 10)
    is_assumed = any(one.assumed for one in case.group.members)
    for text in texts.all:
        assert ("all values, bounds and proofs depend on it" in text) == is_assumed
