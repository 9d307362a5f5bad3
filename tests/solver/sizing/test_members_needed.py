import random
from dataclasses import replace
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kassay.reference import Group, InputError, Member, Topic
from kassay.reference.model.assignment import violations
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing import size_search
from kassay.solver.sizing.members_needed import members_needed
from kassay.solver.sizing.resized_groups import resized, with_valid_ownership
from tests import brute_force
from tests.log_normal_groups import log_normal_group
from tests.strategies import groups


def team(partitions: int, members: int, *, weights=None) -> Group:
    return Group(
        topics=(Topic(name="t", partitions=partitions, weights=weights),),
        members=tuple(Member(id=f"c{n}", subscription=("t",)) for n in range(members)),
    )


def by_counting_up(group: Group, target: int) -> int | None:
    """Return the minimum number of members by brute force."""
    today = with_valid_ownership(group)
    consumed = [topic for topic, who in today.subscribers().items() if who]
    newcomer = Member(id="n", subscription=tuple(consumed))
    kept = brute_force.partitions_to_place(group)
    for number in range(len(group.members) + len(kept) + 1):
        then = resized(today, number, newcomer)
        if brute_force.partitions_to_place(then) != kept:
            continue
        if min(max(loads, default=0) for loads in brute_force.reachable(then)) <= target:
            return number
    return None


@given(group=groups(max_members=3, max_total=5), target=st.integers(0, 5))
def test_the_number_of_members_needed_equals_brute_force(group: Group, target: int):
    found = members_needed(group, makespan=target)
    truth = by_counting_up(group, target)
    assert (None if found.needed is None else found.needed.value) == truth
    assert found.needed is None or found.needed.is_proven
    assert bool(found.reason) == (truth is None)
    assert members_needed(group, capacity=target).needed == found.needed


@given(group=groups(max_members=3, max_total=4, weighted=True), target=st.integers(0, 12))
@settings(deadline=None, max_examples=25)
def test_the_number_of_members_needed_with_weights_equals_brute_force(group: Group, target: int):
    found = members_needed(group, makespan=target)
    truth = by_counting_up(group, target)
    assert (None if found.needed is None else found.needed.value) == truth


def test_a_number_that_a_greedy_rule_decides_is_sufficient_in_all_results():
    # A greedy rule of packing reaches 23, but the search without time ends before.
    group = team(9, 2, weights=(14, 14, 13, 13, 10, 7, 6, 6, 4))
    found = members_needed(group, makespan=23, limits=SearchLimits(time=0))
    [size] = [size for size in found.sizes if size.members == found.needed.value]
    assert size.enough


@given(group=groups(max_members=3, max_total=6))
@settings(deadline=None, max_examples=25)
def test_makespan_imbalance_and_moves_of_each_number_are_those_of_brute_force(group: Group):
    for size in members_needed(group, makespan=1, sweep=range(5)).sizes:
        consumed = tuple(topic for topic, who in group.subscribers().items() if who)
        then = resized(
            with_valid_ownership(group), size.members, Member(id="n", subscription=consumed)
        )
        squares, moves = brute_force.optimum(then)
        assert (size.imbalance, size.movement.value) == (squares, moves)
        assert size.makespan.value == brute_force.optimum(then, "makespan")[0]
        assert list(violations(then, size.assignment)) == []


@given(group=groups(messy=True))
def test_reducing_claims_to_valid_ones_changes_no_owner(group: Group):
    assert brute_force.owners(with_valid_ownership(group)) == brute_force.owners(group)


def test_partitions_of_removed_members_have_no_owner():
    group = team(4, 4)
    members = tuple(replace(m, owned=[("t", n)]) for n, m in enumerate(group.members))
    found = members_needed(replace(group, members=members), makespan=2)
    size = next(size for size in found.sizes if size.members == 2)
    assert (found.needed.value, size.movement.value, size.makespan.value) == (2, 0, 2)


def test_a_partition_heavier_than_the_target_is_the_reason():
    found = members_needed(team(3, 1, weights=(1, 9, 2)), makespan=8)
    assert (found.needed, found.reason) == (None, "t-1 alone has weight 9")


def test_a_topic_that_added_members_do_not_consume_is_the_reason():
    topics = (Topic(name="a", partitions=5), Topic(name="b", partitions=2))
    members = (Member(id="x", subscription=("a", "b")), Member(id="y", subscription=("b",)))
    found = members_needed(Group(topics=topics, members=members), makespan=4, like="y")
    assert found.needed is None
    assert found.reason == "added members do not consume 'a', makespan at least 5"


def test_a_group_size_that_leaves_a_topic_without_consumer_is_not_enough():
    topics = (Topic(name="a", partitions=1), Topic(name="b", partitions=1))
    members = (Member(id="x", subscription=("a",)), Member(id="y", subscription=("b",)))
    found = members_needed(Group(topics=topics, members=members), makespan=9, sweep=[1])
    one = next(size for size in found.sizes if size.members == 1)
    assert (found.needed.value, one.unserved, one.enough) == (2, ("b",), False)


def test_capacities_of_members_take_precedence_over_the_requested_one():
    group = team(10, 2)
    big = replace(group.members[0], capacity=7)
    found = members_needed(replace(group, members=(big, group.members[1])), capacity=3)
    assert found.needed.value == 2
    small = replace(big, capacity=1)
    found = members_needed(replace(group, members=(small, group.members[1])), capacity=3)
    assert found.needed.value == 4


def test_added_members_never_have_the_id_of_a_member():
    group = team(3, 1)
    group = replace(group, members=(replace(group.members[0], id="new-1"),))
    grown = resized(group, 3, group.members[0])
    assert [member.id for member in grown.members] == ["new-1", "new-2", "new-3"]


def test_an_empty_group_needs_no_members():
    assert members_needed(Group(topics=(), members=()), makespan=0).needed.value == 0


def test_equal_partitions_of_many_members_are_counted_exactly():
    found = members_needed(team(1000, 3), makespan=7)
    assert found.needed.value == found.needed.bound == 143


def test_a_time_limit_of_zero_leaves_valid_bounds():
    weights = tuple(range(50, 80))
    found = members_needed(
        team(30, 2, weights=weights), makespan=200, limits=SearchLimits(time=0.0)
    )
    exact = -(-sum(weights) // 200)
    assert found.needed.bound >= exact
    assert found.needed.value >= found.needed.bound


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ({}, "exactly one"),
        ({"makespan": 1, "capacity": 1}, "exactly one"),
        ({"makespan": -1}, "must be at least 0, got -1"),
        ({"capacity": 1, "sweep": [-2]}, "must be at least 0, got -2"),
    ],
)
def test_invalid_targets_are_rejected(targets, message):
    with pytest.raises(ValueError, match=message):
        members_needed(team(1, 1), **targets)


def test_an_unknown_member_to_copy_is_rejected():
    with pytest.raises(InputError, match="no member 'z'"):
        members_needed(team(1, 1), makespan=1, like="z")


@pytest.fixture
def searches(monkeypatch):
    """Record the work of each search for an optimum."""
    work = []

    def recorded(search):
        def run(group, **options):
            work.append(options["limits"].work)
            return search(group, **options)

        return run

    monkeypatch.setattr(size_search, "solve", recorded(size_search.solve))
    return work


@pytest.mark.parametrize("seed", range(10))
def test_bounds_decide_the_number_of_members_of_weighted_groups_without_a_search(seed, searches):
    group = log_normal_group(partitions=100 + 30 * seed, members=12, seed=seed)
    weights = group.topics[0].weights
    target = max(*weights, sum(weights) * 103 // (100 * (8 + seed)))
    found = members_needed(group, makespan=target, sweep=())
    assert searches == []
    assert found.needed.is_proven
    assert (found.needed.value - 1) * target < sum(weights)
    assert found.sizes == ()


def test_a_search_decides_if_bounds_and_greedy_rules_do_not(searches):
    # Two members can have 12 + 11 + 9 and 12 + 10 + 7 + 3; the greedy rules reach more than 32.
    group = team(7, 2, weights=(12, 12, 11, 10, 9, 7, 3))
    found = members_needed(group, makespan=32, sweep=())
    assert (found.needed.value, found.needed.bound) == (2, 2)
    assert len(searches) == 1


def test_all_searches_of_a_sizing_share_the_work(searches):
    members_needed(
        team(9, 2, weights=range(1, 10)),
        makespan=20,
        sweep=range(2, 6),
        limits=SearchLimits(work=80.0),
    )
    assert len(searches) == 8
    assert max(searches[:-1]) <= 80.0 / 2


def test_numbers_that_were_not_requested_have_a_short_search_for_moves(searches):
    members_needed(team(9, 2, weights=range(1, 10)), makespan=20, limits=SearchLimits(work=1_000.0))
    assert len(searches) >= 4
    assert max(searches) <= 1_000 / 12


def test_a_search_that_is_stopped_refutes_no_number_of_members():
    rng = random.Random(7)
    topics = tuple(Topic(f"t{at}", 3) for at in range(12))
    names = [topic.name for topic in topics]
    members = [
        Member(f"m{at}", tuple(name for name in names if not at or rng.random() < 0.3))
        for at in range(6)
    ]
    group = Group((*topics, Topic("x", 1)), (*members, Member("z", ("x",))))
    stop = Event()
    stop.set()
    stopped = members_needed(group, makespan=6, like="z", sweep=[], limits=SearchLimits(stop=stop))
    assert "at least 7" not in stopped.reason
    assert members_needed(group, makespan=6, like="z", sweep=[]).needed.value == 7
