"""The partition that alone determines the lowest maximum load."""

from pathlib import Path

import pytest

from kassay import Group, Member, Topic, solve
from kassay.reference.documents.json_codec import load_group
from kassay.solver.sizing import limiting_partition

HEAVY = load_group(Path(__file__).parents[1] / "data" / "group_with_one_heavy_partition.json")


def group(weights: tuple[int, ...] | None, partitions: int, speeds: tuple[int, int] = (1, 1)):
    members = tuple(
        Member(id=id, subscription=("t",), speed=speed)
        for id, speed in zip(("a", "b"), speeds, strict=True)
    )
    return Group(topics=(Topic(name="t", partitions=partitions, weights=weights),), members=members)


def test_the_reason_names_the_partition_and_its_share():
    found = limiting_partition(HEAVY)
    assert str(found).startswith(
        "partition big-204 alone carries 9,152, 15% of the traffic and 1.8 times the mean load: no "
        "assignment has a lower maximum."
    )
    assert str(found).endswith("Split its keys, or give it a faster member.")


def test_the_weight_of_the_partition_is_the_lowest_maximum_load():
    one = group((9, 2, 2, 1), 4)
    assert limiting_partition(one).weight == solve(one).imbalance.value == 9


def test_the_reason_counts_all_partitions_of_the_same_weight():
    found = limiting_partition(group((9, 9, 0), 3))
    assert found is None  # the mean load is 9
    members = tuple(Member(id=id, subscription=("t",)) for id in "abc")
    topic = Topic(name="t", partitions=3, weights=(9, 9, 2))
    found = limiting_partition(Group(topics=(topic,), members=members))
    assert "1 more carries as much" in str(found)


@pytest.mark.parametrize(
    "other",
    [
        group(None, 3),
        group((4, 4, 4, 4), 4),
        group((5, 4, 3, 2), 4),
        group((9, 1), 2, speeds=(1, 3)),
        Group(topics=(), members=()),
    ],
)
def test_no_partition_is_named_if_another_reason_determines_the_maximum(other):
    assert limiting_partition(other) is None
