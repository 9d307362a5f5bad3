"""Counterexamples are real, minimal, and unique per kind."""

import json
import random
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from kassay import Group, solve
from kassay.experiments.comparison.compare import compare, solve_optimum
from kassay.experiments.counterexamples.find_counterexample import (
    ORDERS,
    CounterexampleOptions,
    GroupEvent,
    Shortcoming,
    exhaustive_cases,
    find_counterexample,
    group_kind,
    is_valid_input,
    measure_shortfall,
    namings,
    renamed,
    shrink_group,
)
from kassay.experiments.counterexamples.render_gallery import gallery, render_gallery
from kassay.experiments.counterexamples.shrinking import size_of, smaller_groups
from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.experiments.study.cases import Case
from kassay.experiments.study.families.finite_families import NAMED_GROUPS, exhaustive_groups_up_to
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.assignment import movement
from kassay.reference.model.group import NO_GENERATION, Member, Topic
from tests.stored_cases import stored_cases

SMALL_GROUPS = list(exhaustive_groups_up_to(members=3, partitions=3))


def search_options(shortcoming: Shortcoming, assignor: str = "sticky") -> CounterexampleOptions:
    return CounterexampleOptions(assignor=assignor, shortcoming=shortcoming)


def shuffled(group: Group, seed: int) -> Group:
    """Rename and reorder everything that has a name or an order."""
    rng = random.Random(seed)
    order = rng.sample(range(len(group.members)), len(group.members))
    group = renamed(group, members=order, topics=rng.sample(group.topics, len(group.topics)))
    members = list(group.members)
    rng.shuffle(members)
    numbers = {
        topic.name: rng.sample(range(topic.partitions), topic.partitions) for topic in group.topics
    }
    return replace(
        group,
        members=tuple(
            replace(
                member,
                owned=[(topic, numbers[topic][number]) for topic, number in member.owned],
                subscription=tuple(reversed(member.subscription)),
                generation=member.generation * 3 if len(member.owned) else member.generation,
            )
            for member in members
        ),
    )


def test_exhaustive_groups_are_of_different_kinds():
    assert len({group_kind(group) for group in SMALL_GROUPS}) == len(SMALL_GROUPS)


def test_the_kind_of_a_group_ignores_names_and_order():
    groups = [*SMALL_GROUPS[::7], *(entry.group for entry in NAMED_GROUPS.values())]
    for seed, group in enumerate(groups):
        assert group_kind(shuffled(group, seed)) == group_kind(group)


def test_namings_differ_and_are_of_one_kind():
    for group in SMALL_GROUPS[::11]:
        candidates = list(namings(group))
        assert candidates[0] == group
        documents = {json.dumps(group_document(candidate)) for candidate in candidates}
        assert len(documents) == len(candidates)
        assert {group_kind(candidate) for candidate in candidates} == {group_kind(group)}


def test_the_number_of_namings_matches_combinatorics():
    # One member owns one of three partitions: 3 ways; the owner has one of two names.
    group = parse_group(stored_cases("groups")["one owned partition of three"])
    assert sum(1 for _ in namings(group)) == 6


@pytest.mark.parametrize(
    ("name", "shortcoming", "severity"),
    [
        ("A", Shortcoming.IMBALANCE, Fraction(2)),
        ("A", Shortcoming.RATIO, Fraction(1)),
        ("A", Shortcoming.MOVES, Fraction(0)),
        ("A", Shortcoming.LIVELOCK, Fraction(0)),
        ("C", Shortcoming.MOVES, Fraction(1, 4)),
        ("C", Shortcoming.IMBALANCE, Fraction(0)),
        ("D", Shortcoming.LIVELOCK, Fraction(1)),
        ("D", Shortcoming.IMBALANCE, Fraction(0)),
        ("D", Shortcoming.FAILURE, Fraction(0)),
    ],
)
def test_named_groups_have_their_documented_severity(name, shortcoming, severity):
    shortfall = measure_shortfall(NAMED_GROUPS[name].group, search_options(shortcoming))
    assert (shortfall.severity, shortfall.proven) == (severity, True)


def test_a_crash_of_a_user_defined_assignor_is_a_failure():
    options = search_options(Shortcoming.FAILURE, "cmd:false")
    shortfall = measure_shortfall(NAMED_GROUPS["A"].group, options)
    assert (shortfall.severity, shortfall.result.ending) == (1, Ending.FAILED)


@pytest.mark.parametrize(
    ("name", "shortcoming", "may_decrease"),
    [
        ("A", Shortcoming.IMBALANCE, True),
        ("B", Shortcoming.RATIO, False),
        ("C", Shortcoming.MOVES, False),
        ("D", Shortcoming.LIVELOCK, True),
    ],
)
def test_shrinking_keeps_the_shortcoming(name, shortcoming, may_decrease):
    group, options = NAMED_GROUPS[name].group, search_options(shortcoming)
    severity = measure_shortfall(group, options).severity
    smallest, reached = shrink_group(group, options, severity)
    assert reached == measure_shortfall(smallest, options).severity > 0
    assert size_of(smallest) <= size_of(group)
    assert may_decrease or reached >= severity


def test_no_part_of_a_smallest_group_can_be_removed():
    options = search_options(Shortcoming.IMBALANCE)
    case = Case(family="named", seed=1, assignors=("sticky",))
    smallest = parse_group(json.loads(find_counterexample(case, options).smallest))
    checked = 0
    for group in smaller_groups(smallest):
        topics = {topic.name for topic in group.topics}
        is_valid = all(
            member.subscription and topics.issuperset(member.subscription)
            for member in group.members
        )
        if is_valid and size_of(group) < size_of(smallest):
            assert measure_shortfall(group, options).severity == 0
            checked += 1
    assert checked > 0


@pytest.fixture(scope="module")
def searched():
    options = search_options(Shortcoming.IMBALANCE)
    cases = list(exhaustive_cases(members=3, partitions=3, assignor="sticky"))
    # One in thirty keeps the test short; seeds 181 to 202 contain known counterexamples.
    sample = [case for case in cases if case.seed % 30 == 0 or case.seed in range(181, 203)]
    sample.append(Case(family="no-such-family", seed=0, assignors=("sticky",)))
    searches = [find_counterexample(case, options) for case in sample]
    return options, searches, gallery(searches, options)


def test_exhaustive_search_finds_group_a(searched):
    _, _, found = searched
    smallest = found.entries[0].group
    assert size_of(smallest) <= size_of(NAMED_GROUPS["A"].group)
    assert group_kind(smallest) == group_kind(NAMED_GROUPS["A"].group)


def test_every_entry_is_of_its_own_kind_and_misses_the_optimum(searched):
    _, _, found = searched
    assert len({group_kind(entry.group) for entry in found.entries}) == len(found.entries) > 3
    for entry in found.entries:
        assert not compare(entry.group, "sticky").least_imbalance
        assert run_until_stable(entry.group, "sticky").assignment == entry.assigned
        assert entry.explanation


def test_a_gallery_does_not_depend_on_the_order_of_the_searches(searched):
    options, searches, found = searched
    assert gallery(reversed(searches), options) == found


def test_the_page_of_a_gallery_shows_the_alias_of_the_assignor(searched):
    options, _, found = searched
    aliased = replace(found, options=replace(options, assignor="mine=sticky"))
    page = render_gallery(aliased, about={}, top=2)
    assert "<h1>Where mine " in page
    assert "mine=sticky" not in page


def hunted(case, **options):
    found = find_counterexample(
        case, CounterexampleOptions(assignor="uniform2", worse_than="spread-optimum", **options)
    )
    assert found.error is None
    return None if found.smallest is None else parse_group(json.loads(found.smallest))


@pytest.mark.long
def test_the_balance_within_an_even_spread_is_missed_by_three_members():
    sizes = set()
    for case in exhaustive_cases(members=3, partitions=3, assignor="uniform2"):
        group = hunted(case, shortcoming=Shortcoming.IMBALANCE)
        if group is not None:
            assert sorted(assign(group, "uniform2").counts().values()) == [0, 1, 2]
            sizes.add((len(group.members), group.partition_count))
    assert sizes == {(3, 3)}


@pytest.mark.long
def test_moves_above_those_of_an_optimum_are_found_after_an_event():
    case = Case(family="equal-fresh", seed=60, assignors=("uniform2",))
    options = {"shortcoming": Shortcoming.MOVES, "excess": 2, "event": GroupEvent.JOIN}
    group = hunted(case, **options)
    assert group.members[-1].generation == NO_GENERATION
    best = solve(group, levels=ORDERS["spread-optimum"])
    assert best.status == "optimal"
    assert movement(group, assign(group, "uniform2")) == best.movement.value + 2
    before = replace(group, members=group.members[:-1])
    assert movement(before, assign(before, "uniform2")) == 0


@pytest.mark.parametrize(
    ("case", "event", "size"),
    [
        pytest.param(("equal-small", 5198), GroupEvent.SWITCH, (4, 13), marks=pytest.mark.long),
        (("equal-small", 22278), GroupEvent.JOIN, (5, 14)),
        pytest.param(
            ("equal-many-topics", 1589), GroupEvent.LEAVE, (5, 29), marks=pytest.mark.long
        ),
    ],
)
def test_each_event_has_a_small_group_with_two_unnecessary_moves(case, event, size):
    is_switch = event is GroupEvent.SWITCH
    options = CounterexampleOptions(
        assignor="uniform2",
        worse_than="spread-optimum",
        shortcoming=Shortcoming.MOVES,
        excess=2,
        event=event,
        earlier_assignor="uniform" if is_switch else None,
    )
    family, seed = case
    found = find_counterexample(Case(family=family, seed=seed, assignors=("uniform2",)), options)
    (entry,) = gallery([found], options).entries
    assert (len(entry.group.members), entry.group.partition_count) == size
    assert movement(entry.group, entry.assigned) == movement(entry.group, entry.optimum) + 2
    transferred = {tp: member for member, tps in entry.assigned.items() for tp in tps}
    for giver, name, taker in (re.split(" gives | to ", step) for step in entry.explanation):
        topic, number = name.split("-")
        assert transferred[topic, int(number)] == giver
        transferred[topic, int(number)] = taker
    assert transferred == {tp: member for member, tps in entry.optimum.items() for tp in tps}
    if is_switch:  # the members own an answer that the earlier assignor does not change
        assert movement(entry.group, assign(entry.group, "uniform")) == 0


def test_the_lower_bound_on_moves_hides_no_counterexample():
    options = CounterexampleOptions(
        assignor="uniform2", worse_than="spread-optimum", shortcoming=Shortcoming.MOVES
    )
    severities = set()
    for group in SMALL_GROUPS[::3]:
        best = solve(group, levels=ORDERS["spread-optimum"])
        answer = assign(group, "uniform2")
        squares = sum(load**2 for load in answer.counts().values())
        excess = movement(group, answer) - best.movement.value
        expected = max(0, excess) if squares == best.imbalance.value else 0
        assert measure_shortfall(group, options).severity == expected
        severities.add(expected)
    assert 0 in severities


@pytest.mark.long
def test_moves_after_the_answer_of_another_assignor_are_found_in_small_groups():
    case = Case(family="equal-join", seed=933, assignors=("uniform2",))
    group = hunted(case, shortcoming=Shortcoming.MOVES, excess=2)
    best = solve(group, levels=ORDERS["spread-optimum"])
    assert best.status == "optimal"
    assert movement(group, assign(group, "uniform2")) == best.movement.value + 2
    assert (len(group.members), group.partition_count) <= (7, 13)


@pytest.mark.parametrize("worse_than", ORDERS)
def test_all_namings_of_a_group_have_the_minimum_moves_of_their_own_optimum(worse_than):
    options = CounterexampleOptions(
        assignor="range", shortcoming=Shortcoming.MOVES, worse_than=worse_than
    )
    (case,) = (
        one
        for one in exhaustive_cases(members=2, partitions=3, assignor="range")
        if one.name == "small-worlds/42"
    )
    first, *others = namings(case.build())
    optimum = solve_optimum(first, levels=options.levels)
    for group in (first, *others):
        known = measure_shortfall(group, options, optimum=optimum)
        assert known.severity == measure_shortfall(group, options).severity


def test_an_assignor_can_be_worse_than_another_one():
    group = NAMED_GROUPS["A"].group
    options = CounterexampleOptions(
        assignor="range", shortcoming=Shortcoming.IMBALANCE, worse_than="uniform"
    )
    ranged, uniform = (
        sum(load**2 for load in assign(group, name).counts().values())
        for name in ("range", "uniform")
    )
    assert measure_shortfall(group, options).severity == max(0, ranged - uniform)


def test_a_shrunk_group_keeps_a_subscriber_and_no_further_idle_members():
    members = (Member(id="a", subscription=("t",)), Member(id="b", subscription=()))
    group = Group(topics=(Topic(name="t", partitions=1),), members=members)
    smaller = [replace(group, members=(member,)) for member in members]
    assert [is_valid_input(one, original=group) for one in smaller] == [True, False]
