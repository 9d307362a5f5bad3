import random
from dataclasses import replace
from itertools import islice

import pytest

from kassay import Assignment, Group, SearchLimits
from kassay.experiments.comparison.compare import front_distance, solve_optimum
from kassay.reference.model.load_metrics import has_racks
from tests import brute_force
from tests.random_groups import random_group

GROUPS = 300
MAX_PLACEMENTS = 1_000
RACKS = ("x", "y", "z", None)


def racked_group(seed: int) -> Group:
    """Return a small group with random racks; some members and replicas have none."""
    draw, group = random.Random(f"racks/{seed}"), random_group(seed)
    topics = tuple(
        replace(topic, racks=tuple((draw.choice(RACKS),) for _ in range(topic.partitions)))
        for topic in group.topics
    )
    members = tuple(replace(member, rack=draw.choice(RACKS)) for member in group.members)
    return replace(group, topics=topics, members=members)


def criteria(group: Group, placement: brute_force.Placement) -> tuple[int, int, int]:
    """Return imbalance, off-rack reads and moves by their definitions."""
    squares = sum(load**2 for load in brute_force.loads_of(group, placement))
    reads = brute_force.off_rack_of(group, placement)
    return squares, reads, brute_force.moves_of(group, placement)


@pytest.fixture(scope="module")
def cases() -> list[tuple[Group, brute_force.Placement, list[tuple[int, int, int]]]]:
    """Return groups, one random placement each, and the criteria of all placements."""
    found: list[tuple[Group, brute_force.Placement, list[tuple[int, int, int]]]] = []
    seed = 0
    while len(found) < GROUPS:
        seed += 1
        group = racked_group(seed)
        placements = list(islice(brute_force.every_placement(group), MAX_PLACEMENTS + 1))
        if has_racks(group) and 1 < len(placements) <= MAX_PLACEMENTS:
            every = [criteria(group, other) for other in placements]
            found.append((group, random.Random(seed).choice(placements), every))
    return found


@pytest.mark.parametrize(
    "enumerates",
    [
        pytest.param(True, id="enumeration"),
        pytest.param(False, id="cp-sat", marks=pytest.mark.long),
    ],
)
def test_the_distances_to_the_front_equal_those_of_all_assignments(cases, monkeypatch, enumerates):
    if not enumerates:
        monkeypatch.setattr("kassay.solver.engine.enumerate_levels", lambda *_: None)
    on_front = 0
    for group, placement, every in cases:
        assignment = Assignment(brute_force.by_member(group, placement))
        found = front_distance(
            group, assignment, optimum=solve_optimum(group), limits=SearchLimits()
        )
        own = criteria(group, placement)
        for index, distance in enumerate((found.imbalance, found.off_rack, found.moves)):
            others = [place for place in range(3) if place != index]
            best = min(one[index] for one in every if all(one[i] <= own[i] for i in others))
            assert (distance.value, distance.best, distance.bound) == (own[index], best, best)
        dominated = any(
            one != own and all(a <= b for a, b in zip(one, own, strict=True)) for one in every
        )
        assert found.is_on_front is not dominated
        on_front += not dominated
    assert GROUPS // 10 < on_front < GROUPS * 9 // 10
