"""Statements of docs/proofs.md on all small groups and on random groups.

The environment variable ``LARGE_PROOFS`` selects the sizes of ``make proofs``.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Assignment, Group, Member, Topic
from kassay.experiments.counterexamples.find_counterexample import namings
from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.experiments.study.families.finite_families import exhaustive_groups_up_to
from kassay.reference.assignors import run_assignor
from tests import brute_force
from tests.notation import group

LARGE = "LARGE_PROOFS" in os.environ
STICKY = ("sticky", "cooperative-sticky")
OWNED_ONCE = [(4, 5), (5, 4)] if LARGE else [(3, 3)]
"""Maximum members and partitions of groups in which a partition has at most one claim."""
CLAIMED_OFTEN = [(2, 4), (3, 3)] if LARGE else [(2, 2), (3, 1)]
"""Maximum members and partitions of groups with all sets of claims and generations."""
MIXED = (3, 4) if LARGE else (3, 3)
"""Maximum members and partitions of groups with mixed subscriptions."""
GROUP_STEP, NAMING_STEP = (1, 1) if LARGE else (5, 5)
"""Steps between the checked groups with mixed subscriptions, and between their namings."""


def topic_lists(partitions: int) -> Iterator[tuple[Topic, ...]]:
    """Yield all lists of topics with a total number of partitions."""
    for cuts in product((False, True), repeat=partitions - 1):
        sizes = [1]
        for cut in cuts:
            if cut:
                sizes.append(1)
            else:
                sizes[-1] += 1
        yield tuple(Topic(name=f"t{index}", partitions=size) for index, size in enumerate(sizes))


def equal_group(
    topics: Sequence[Topic], claimants: Sequence[int], generations: Sequence[int]
) -> Group:
    """Return a group with equal subscriptions; bit m of a claimant is a claim of member m."""
    partitions = [(topic.name, n) for topic in topics for n in range(topic.partitions)]
    claims = list(zip(partitions, claimants, strict=True))
    return Group(
        topics=tuple(topics),
        members=tuple(
            Member(
                id=f"c{index}",
                subscription=tuple(topic.name for topic in topics),
                owned=[partition for partition, members in claims if members >> index & 1],
                generation=generation,
            )
            for index, generation in enumerate(generations)
        ),
    )


def small_groups(members: int, partitions: int, *, once: bool) -> Iterator[Group]:
    """Yield all groups with equal subscriptions up to the given numbers.

    With ``once``, a partition has at most one claim and all members have one generation.
    """
    for count, total in product(range(1, members + 1), range(1, partitions + 1)):
        sets = [0, *(1 << member for member in range(count))] if once else list(range(1 << count))
        orders = [(1,) * count] if once else list(generation_orders(count))
        for topics in topic_lists(total):
            for claimants in product(sets, repeat=total):
                for generations in orders:
                    yield equal_group(topics, claimants, generations)


def generation_orders(members: int) -> Iterator[tuple[int, ...]]:
    """Yield all orders of the members by generation; members can be equal."""
    for generations in product(range(1, members + 1), repeat=members):
        if set(generations) == set(range(1, max(generations) + 1)):
            yield generations


def optimum(group: Group) -> tuple[int, int]:
    """Return the minimum imbalance and its fewest moves by the formulas of docs/proofs.md."""
    owners = brute_force.owners(group)
    partitions = len(brute_force.partitions_to_place(group))
    least, larger = divmod(partitions, len(group.members))
    owned = [list(owners.values()).count(member.id) for member in group.members]
    kept = sum(min(count, least) for count in owned)
    kept += min(larger, sum(count > least for count in owned))
    imbalance = larger * (least + 1) ** 2 + (len(owned) - larger) * least**2
    return imbalance, sum(owned) - kept


def outcome(group: Group, assignor: str) -> tuple[int, int]:
    """Return imbalance and moves of the stable assignment, after at most two rebalances."""
    result = run_until_stable(group, assignor)
    assert result.assignment is not None, result
    assert result.rounds <= (2 if assignor == "cooperative-sticky" else 1)
    owners = brute_force.owners(group)
    moves = sum(
        owners.get((tp.topic, tp.partition), member) != member
        for member, partitions in result.assignment.items()
        for tp in partitions
    )
    return sum(load**2 for load in result.assignment.counts().values()), moves


def has_older_contested_claim(group: Group) -> bool:
    """Return whether two claims to a partition have one generation, and a third a higher one."""
    generations: dict[tuple[str, int], list[int]] = {}
    for member in group.members:
        for tp in member.owned:
            generations.setdefault((tp.topic, tp.partition), []).append(member.generation)
    older = ([g for g in found if g < max(found)] for found in generations.values())
    return any(len(found) > len(set(found)) for found in older)


def improving_transfer(group: Group, assignment: Assignment) -> tuple[str, str, str] | None:
    """Return giver, topic and taker of one transfer that lowers the imbalance, or None."""
    loads = assignment.counts()
    for giver in group.members:
        for topic in dict.fromkeys(tp.topic for tp in assignment[giver.id]):
            for taker in group.members:
                if topic in taker.subscription and loads[giver.id] >= loads[taker.id] + 2:
                    return giver.id, topic, taker.id
    return None


def test_formulas_of_the_optimum_equal_brute_force() -> None:
    for small in small_groups(2, 3, once=False):
        assert optimum(small) == brute_force.optimum(small), small


@pytest.mark.parametrize(("members", "partitions"), OWNED_ONCE)
def test_equal_subscriptions_give_the_optimum_on_all_small_groups(
    members: int, partitions: int
) -> None:
    for small in small_groups(members, partitions, once=True):
        expected = optimum(small)
        for assignor in (*STICKY, "uniform"):
            assert outcome(small, assignor) == expected, (assignor, small)


@pytest.mark.parametrize(("members", "partitions"), CLAIMED_OFTEN)
def test_sticky_misses_the_optimum_only_with_older_contested_claims(
    members: int, partitions: int
) -> None:
    for small in small_groups(members, partitions, once=False):
        least, fewest = optimum(small)
        for assignor in STICKY:
            imbalance, moves = outcome(small, assignor)
            assert imbalance == least, (assignor, small)
            assert moves == fewest or has_older_contested_claim(small), (assignor, small)


@st.composite
def equal_groups(draw: st.DrawFn, *, once: bool) -> Group:
    """Groups of up to 12 members and 40 partitions with equal subscriptions."""
    sizes = draw(st.lists(st.integers(1, 10), min_size=1, max_size=4))
    topics = [Topic(name=f"t{index}", partitions=size) for index, size in enumerate(sizes)]
    members = draw(st.integers(1, 12))
    sets = st.sampled_from([0, *(1 << m for m in range(members))])
    claimants = draw(
        st.lists(
            sets if once else st.integers(0, (1 << members) - 1),
            min_size=sum(sizes),
            max_size=sum(sizes),
        )
    )
    generations = [1] * members if once else draw(st.permutations(range(members)))
    return equal_group(topics, claimants, generations)


@pytest.mark.parametrize("assignor", [*STICKY, "uniform"])
@given(drawn=equal_groups(once=True))
def test_equal_subscriptions_give_the_optimum_on_random_groups(assignor: str, drawn: Group) -> None:
    assert outcome(drawn, assignor) == optimum(drawn)


@pytest.mark.parametrize("assignor", STICKY)
@given(drawn=equal_groups(once=False))
def test_claims_of_different_generations_give_the_optimum_on_random_groups(
    assignor: str, drawn: Group
) -> None:
    assert outcome(drawn, assignor) == optimum(drawn)


OLDER_CONTESTED = group("t:1", c0="t | t-0 @1", c1="t | t-0 @1", c2="t | t-0 @2")
OWNED_BY_LAST = group("t:1", c0="t @1", c1="t | t-0 @1")
STALE = group("t:1", c0="t | t-0 @2", c1="t | t-0 @1")


@pytest.mark.parametrize(
    ("assignor", "smallest", "version"),
    [
        *((name, OLDER_CONTESTED, 3) for name in STICKY),
        *((name, STALE, 1) for name in STICKY),
        ("cooperative-sticky", OWNED_BY_LAST, 0),
        ("uniform-4.0", OWNED_BY_LAST, 3),
    ],
)
def test_smallest_groups_without_a_condition_have_an_unnecessary_move(
    assignor: str, smallest: Group, version: int
) -> None:
    members = tuple(replace(member, protocol_version=version) for member in smallest.members)
    changed = replace(smallest, members=members)
    assert outcome(changed, assignor) == (1, 1)
    assert optimum(changed) == brute_force.optimum(changed) == (1, 0)


@pytest.mark.parametrize(
    ("assignor", "smallest"),
    [
        *((name, group("t:1", c0="t | t-1")) for name in (*STICKY, "uniform")),
        ("uniform", group("t:1", c0="t | t-0", c1="t | t-0")),
    ],
)
def test_smallest_groups_without_a_condition_cause_an_exception(
    assignor: str, smallest: Group
) -> None:
    assert run_until_stable(smallest, assignor).ending is Ending.FAILED


@pytest.mark.parametrize("assignor", STICKY)
def test_a_leading_member_without_topics_receives_a_partition(assignor: str) -> None:
    for leading in (True, False):
        first, second = ("", "t") if leading else ("t", "")
        result = run_assignor(group("t:1", c0=first, c1=second), assignor).assignment
        assert result is not None
        assert result.counts() == {"c0": 1, "c1": 0}


def test_no_transfer_improves_a_sticky_result_of_a_small_group() -> None:
    members, partitions = MIXED
    kinds = exhaustive_groups_up_to(members=members, partitions=partitions)
    for small in islice(kinds, None, None, GROUP_STEP):
        least = None
        for named in islice(namings(small), None, None, NAMING_STEP):
            assignment = run_assignor(named, "sticky").assignment
            assert assignment is not None, named
            assert improving_transfer(named, assignment) is None, named
            loads = sorted(assignment.counts().values())
            if loads[-1] - loads[0] < 2:
                continue
            least = brute_force.optimum(small)[0] if least is None else least
            if sum(load**2 for load in loads) > least:
                assert loads == [loads[0], loads[0] + 1, loads[0] + 2], named
                assert small.partition_count % 3 == 0
