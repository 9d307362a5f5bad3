"""The cause of an imbalance is named right, and its sentence is true for the group."""

import random
import re
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Group, Member, Topic, scale
from kassay.experiments.planning.assignor_outcomes import AssignorOutcome
from kassay.experiments.planning.cause_evidence import worst_share
from kassay.experiments.planning.causes import find_cause
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import PlanArguments, plan_summary
from kassay.experiments.planning.render_plans import PAGE, TEXT, TICKET, render_plan
from kassay.experiments.planning.survey import survey_group
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.group import Client, GroupStatus
from kassay.solver.objective import Imbalance, Movement, TopicSpread
from kassay.solver.solve import solve
from tests.stored_cases import stored_cases
from tests.strategies import groups

BROKER = {"uniform": "uniform", "server-range": "range"}
JAVA = Client(library="java")
STABLE = partial(GroupStatus, state="Stable")


def status(assignor, **changes):
    protocol = "consumer" if assignor in BROKER else "classic"
    name = BROKER.get(assignor, assignor)
    return replace(STABLE(protocol=protocol, assignor=name), **changes)


def named(assignor, topics, subscriptions, owned=None):
    """Return a group of an assignor: after its rebalance, or with the given owners."""
    members = (Member(id, tuple(names), client=JAVA) for id, names in subscriptions.items())
    group = Group(tuple(map(Topic, topics, topics.values())), tuple(members), id="g")
    if owned is None:
        return replace(rejoin(group, assign(group, assignor)), status=status(assignor))
    placed = {
        id: [(topic, number) for topic, numbers in held.items() for number in numbers]
        for id, held in owned.items()
    }
    return replace(rejoin(group, Assignment(placed), generation=4), status=status(assignor))


def equal(count, topics):
    return {f"m{number}": tuple(topics) for number in range(count)}


def unknown(group):
    return replace(group, status=STABLE())


def each_member(group, **changes):
    return replace(group, members=tuple(replace(one, **changes) for one in group.members))


THREE = {"alerts": 3, "orders": 12, "refunds": 3}
PILE = ({"t": 8}, equal(2, "t"), {"m0": {"t": range(8)}})
PER_TOPIC = ({"t": 4, "u": 4}, equal(2, ("t", "u")), {"m0": {"t": range(4)}, "m1": {"u": range(4)}})


def libraries(group, *names):
    pairs = zip(group.members, names, strict=True)
    members = (replace(one, client=Client(library=name)) for one, name in pairs)
    return replace(group, members=tuple(members))


MADE = [(kind, parse_group(document)) for kind, document in stored_cases("causes")]
"""Groups that are made for a cause: after a rebalance of an assignor, or with other owners."""


def cause_of(group, **arguments):
    return find_cause(group, solve(group).assignment, **arguments)


@pytest.mark.parametrize(("kind", "group"), MADE)
def test_the_cause_of_a_made_group_is_named_and_true(kind, group):
    result = plan(group)
    assert result.cause is not None
    assert result.cause.kind == kind
    action, row = result.to_do, survey_group(group).to_do
    if row.short == "switch the assignor":
        assert action.short.removeprefix("switch to ") in re.findall(r"[\w-]+", row.text)
    elif row.is_open:
        ways = ("restart", "stop", "trigger")
        assert row.short == "run kassay plan" or action.short.startswith(ways)
    else:
        assert row.short == action.short
    surveyed = survey_group(group)
    assert surveyed.cause == result.cause
    assert surveyed.record()["cause"] == {"kind": kind, "text": result.cause.text}
    check_sentence(group, result.cause, group.status.registered_assignor)


def test_each_kind_has_two_made_groups():
    numbers = Counter(kind for kind, _ in MADE)
    assert len(MADE) >= 40
    assert min(numbers.values()) >= 2
    assert len(numbers) == 14


def balanced_groups():
    """Return 40 balanced groups: of each assignor, of the solver, and with equal weights."""
    draw, found = random.Random(7), []
    for number in range(40):
        topics = {f"t{at}": draw.randint(1, 9) for at in range(draw.randint(1, 4))}
        members = draw.randint(1, min(8, sum(topics.values())))
        assignor = ("sticky", "cooperative-sticky", "uniform", "roundrobin")[number % 4]
        group = named(assignor, topics, equal(members, topics))
        if number % 8 == 7:
            group = unknown(group)
        if number % 5 == 4:
            best = solve(group).assignment
            group = replace(rejoin(group, best), status=status("range", state=None))
        if number % 6 == 5:
            weighted = (replace(t, weights=(4,) * t.partitions) for t in group.topics)
            group = replace(group, topics=tuple(weighted))
        found.append(group)
    return found


@pytest.mark.parametrize("group", balanced_groups())
def test_a_balanced_group_has_no_cause(group):
    counts = [len(member.owned) for member in group.members]
    assert max(counts) - min(counts) <= 1
    result = plan(group)
    assert result.cause is None
    assert survey_group(group).cause is None
    assert survey_group(group).to_do.short == "nothing"
    lines = render_plan(result, TEXT, directory=None).splitlines()
    assert lines[:2] == ["g: No cause: the maximum load is the proven minimum.", "To do: Nothing."]
    assert lines[2].startswith("Plan: No moves")


def test_partitions_without_any_owner_are_a_cause():
    group = Group((Topic("t", 4),), (Member("a", ("t",)), Member("b", ("t",))))
    for cause in (plan(group).cause, survey_group(group).cause):
        assert cause.kind == "no-owner"


def test_a_library_whose_own_assignor_fails_is_the_cause():
    group = libraries(named("sticky", *PILE), "kafka-python", "kafka-python")
    failed = AssignorOutcome(
        assignor="kafka-python@2.0.2:sticky", ending="failed", detail="TypeError: x", rebalances=1
    )
    cause = cause_of(group, outcomes=(failed,))
    assert cause.kind == "failed-assignor"
    assert "sticky of kafka-python@2.0.2 fails for this group (TypeError: x)" in cause.text
    assert cause_of(group, outcomes=(replace(failed, ending="ok"),)).kind == "contradiction"


@pytest.mark.parametrize("other", ["t", ""], ids=["subscribed", "not-subscribed"])
def test_two_claims_of_one_partition_are_the_cause(other):
    owned = {"m0": {"t": range(4)}, "m1": {"t": [0]}}
    cause = cause_of(named("sticky", {"t": 4}, {"m0": "t", "m1": other}, owned))
    assert cause.kind == "library-claims"
    assert cause.text.startswith("m0 and m1 both claim t-0 in one generation:")


def test_uneven_topics_are_the_cause_of_a_plan_that_divides_topics():
    for assignor in ("sticky", "cooperative-sticky", "uniform", "roundrobin"):
        group = named(assignor, *PER_TOPIC)
        assert plan(group).cause is None
        result = plan(group, levels=(TopicSpread(), Imbalance(), Movement()))
        assert result.cause.kind == "topics-ignored"
        assert result.cause.text.endswith("not each topic: 4 of 4 partitions of t are on m0.")
        assert {one.configuration for one in result.actions} & {"range", "server-range"}


def test_plans_open_with_the_cause_then_the_action_then_the_result():
    group = named("range", THREE, equal(5, THREE))
    result = plan(group)
    lines = render_plan(result, TEXT, directory=None).splitlines()
    assert lines[0] == f"g: {result.cause}"
    assert lines[1] == f"To do: S{result.actions[0].text[1:]}."
    assert lines[2] == f"Plan: {result.verdict}"
    [number] = re.findall(r"^More members: (\d+) members with range have a maximum ", lines[3])
    steps = {one.members: one.assignor for one in scale(group).steps}
    assert min(n for n in steps if n > 5 and steps[n] < steps[5]) == int(number)
    ticket = render_plan(result, TICKET).replace("\\", "").splitlines()
    assert ticket[2:7:2] == [str(result.cause), lines[1], str(result.verdict)]
    page = render_plan(result, PAGE)
    at = [page.index(text) for text in (str(result.cause), lines[1], str(result.verdict))]
    assert at == sorted(at)


@pytest.mark.parametrize(("kind", "text"), stored_cases("causes_without_actions"))
def test_a_cause_without_an_effective_action_has_a_general_remedy(kind, text):
    group = next(group for name, group in MADE if name == kind)
    result = replace(plan(group), actions=())
    assert plan_summary(result, None, PlanArguments())["to_do"].startswith(text)


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (
            named(
                "sticky",
                {"t": 18},
                equal(4, "t"),
                {f"m{n}": {"t": range(5 * n, min(5 * n + 5, 18))} for n in range(4)},
            ),
            "Check subscriptions (pattern, ACL), or give them by --subscriptions FILE.",
        ),
        (
            named("range", {"t": 7, "u": 7}, equal(4, ("t", "u"))),
            "Nothing: the planned loads are lower by at most 2%.",
        ),
    ],
)
def test_a_cause_of_slightly_higher_loads_has_no_remedy_that_changes_them(group, text):
    result = plan(group)
    assert not result.actions
    assert plan_summary(result, None, PlanArguments())["to_do"] == text
    assert survey_group(group).cause_text == f"{result.cause} To do: {text}"


ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range")
RUNNING = st.sampled_from(ASSIGNORS)


def holdings(group):
    """Return the subscribed owner of each partition, without the code of ownership."""
    return {
        (topic, number): member.id
        for member in group.members
        for topic, number in member.owned
        if topic in member.subscription
    }


@given(groups(weighted=True), RUNNING, RUNNING, st.booleans())
def test_sentences_of_causes_are_true(group, assigned, shown, is_stable):
    if not group.members or not group.partition_count:
        return
    group = Group(
        topics=tuple(Topic(t.name, t.partitions, weights=t.weights) for t in group.topics),
        members=tuple(Member(m.id, m.subscription) for m in group.members),
    )
    group = rejoin(group, assign(group, assigned))
    group = replace(group, status=status(shown, state="Stable" if is_stable else None))
    cause = cause_of(group)
    check_sentence(group, cause, shown)


def check_sentence(group, cause, shown):
    """Check the numbers and claims of the sentence with own code."""
    if cause is None:
        return
    text, owners = cause.text, holdings(group)
    counts = Counter({member.id: 0 for member in group.members})
    counts.update(owners.values())
    consumed = [t for t in group.topics if any(t.name in m.subscription for m in group.members)]
    partitions = [(t.name, n) for t in consumed for n in range(t.partitions)]
    weight = {(t.name, n): t.weight(n) for t in consumed for n in range(t.partitions)}
    subscriptions = {m.id: set(m.subscription) & {t.name for t in consumed} for m in group.members}
    is_equal = len(set(map(frozenset, subscriptions.values()))) == 1
    for high, most, low, least in re.findall(
        r"(\S+) has (\d+) partitions? and (\S+) has (\d+|none)", text
    ):
        assert counts[high] == int(most) == max(counts.values())
        assert counts[low] == int(least.replace("none", "0"))
    if cause.kind == "pending-rebalance" and "no owner" in text:
        assert int(text.split()[0]) == len(partitions) - len(owners)
    if "more evenly" in text:
        names = ASSIGNORS if "each of Kafka" in text else (shown,)
        for name in names:
            after = assign(group, name) if name != "cooperative-sticky" else assign(group, "sticky")
            assert sum(n * n for n in after.counts().values()) < sum(n * n for n in counts.values())
    if cause.kind == "contradiction":
        assert is_equal
        if shown in ("range", "server-range"):
            spreads = [
                [sum(tp[0] == t.name for tp, o in owners.items() if o == m) for m in counts]
                for t in consumed
            ]
            assert any(max(one) - min(one) > 1 for one in spreads)
        else:
            assert max(counts.values()) - min(counts.values()) > 1
    if cause.kind == "range-remainders":
        topics, members = map(int, re.search(r"each of (\d+) topics among (\d+)", text).groups())
        assert members == len(group.members)
        assert topics == sum(t.partitions % members > 0 for t in consumed)
    if cause.kind in ("mixed-subscriptions", "local-optimum"):
        assert not is_equal
    if cause.kind == "heavy-partition":
        topic, number, load, ratio = re.search(
            r"Partition (\S+)-(\d+) alone carries ([\d,]+), ([\d.]+) times", text
        ).groups()
        assert weight[topic, int(number)] == int(load.replace(",", "")) == max(weight.values())
        mean = sum(weight.values()) / sum(map(bool, subscriptions.values()))
        assert abs(float(ratio) - int(load.replace(",", "")) / mean) < 0.051
    if cause.kind == "surplus-members":
        members, count, idle = map(int, re.findall(r"(\d+) (?:member|partition)", text))
        assert (members, count, idle) == (len(counts), len(partitions), members - count)
    if cause.kind == "limited-members":
        name, what = re.match(r"(\S+) consumes (none|only \d+ of \d+)", text).groups()
        numbers = [int(one) for one in re.findall(r"\d+", what)]
        assert numbers in ([], [len(subscriptions[name]), len(consumed)])
        assert len(subscriptions[name]) < len(consumed)
    if cause.kind == "weights-ignored" and "ignore weights" in text:
        low, high = re.search(r"have (\d+)(?: to (\d+))?", text).groups()
        held = [counts[id] for id, names in subscriptions.items() if names]
        assert (min(held), max(held)) == (int(low), int(high or low))
        loads = Counter(dict.fromkeys(counts, 0))
        for tp, owner in owners.items():
            loads[owner] += weight[tp]
        first, last = re.search(r"from ([\d,]+) to ([\d,]+)", text).groups()
        held = [loads[id] for id, names in subscriptions.items() if names]
        assert (min(held), max(held)) == tuple(int(n.replace(",", "")) for n in (first, last))
    if cause.kind == "local-optimum":
        after = assign(group, "sticky" if shown == "cooperative-sticky" else shown).counts()
        assert sum(n * n for n in after.values()) >= sum(n * n for n in counts.values())
        check_chain(text, owners, counts, subscriptions)


def check_chain(text, owners, counts, subscriptions):
    """Check that no single move lowers the squares, but the moves of the chain do."""
    if "no single move" in text:
        for (topic, _), owner in owners.items():
            others = [counts[id] for id, names in subscriptions.items() if topic in names]
            assert counts[owner] - min(others) <= 1
    owners, after = dict(owners), Counter(counts)
    moves = re.findall(r"(\S+) gives (\S+)-(\d+) to ([^\s,.]+)", text)
    assert moves
    for source, topic, number, target in moves:
        assert owners[topic, int(number)] == source
        assert topic in subscriptions[target]
        owners[topic, int(number)] = target
        after.subtract([source])
        after.update([target])
    assert sum(n * n for n in after.values()) < sum(n * n for n in counts.values())


@given(groups(), RUNNING)
def test_the_share_of_a_topic_is_that_of_its_most_uneven_topic(group, assignor):
    if not group.members or not group.partition_count:
        return
    group = replace(group, members=tuple(Member(m.id, m.subscription) for m in group.members))
    group = rejoin(group, assign(group, assignor))
    shares = {}
    for topic in group.topics:
        subscribers = [m for m in group.members if topic.name in m.subscription]
        if subscribers and topic.partitions:
            most = max(sum(t == topic.name for t, _ in m.owned) for m in subscribers)
            even = -(-topic.partitions // len(subscribers))
            if most > even and 2 * most >= 3 * even:
                shares[topic.name] = (most, even)
    share = worst_share(group, Assignment({m.id: m.owned for m in group.members}))
    assert (share is None) == (not shares)
    if share is not None:
        assert shares[share.topic] == (share.count, share.even)
        assert share.count - share.even == max(most - even for most, even in shares.values())
        assert share.others == len(shares) - 1


def test_sentences_of_groups_with_windows_count_partitions():
    plain = named("range", dict.fromkeys("tuv", 6), equal(4, "tuv"))
    profiles = tuple((50 + 7 * n, 3 + n) for n in range(6))
    topics = tuple(replace(topic, profiles=profiles) for topic in plain.topics)
    cause = survey_group(replace(plain, topics=topics)).cause
    counts = [len(member.owned) for member in plain.members]
    assert cause is not None
    numbers = set(map(int, re.findall(r"(\d+) partitions", cause.text)))
    assert numbers
    assert numbers <= {min(counts), max(counts)}
