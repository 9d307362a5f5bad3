"""The partition that alone determines the lowest maximum load."""

from pathlib import Path

import pytest

from kassay import solve
from kassay.reference.documents.json_codec import load_group
from kassay.solver.capacity_planning import limiting_partition
from tests.notation import changed, even_group, group

HEAVY = load_group(Path(__file__).parents[1] / "data" / "group_with_one_heavy_partition.json")


def test_the_reason_names_the_partition_and_its_share():
    found = limiting_partition(HEAVY)
    assert str(found).startswith(
        "partition big-204 alone carries 9,152, 15% of the traffic and 1.8 times the mean load: no "
        "assignment has a lower maximum load."
    )
    assert str(found).endswith("Split its keys, or give it a faster member.")


def test_the_weight_of_the_partition_is_the_lowest_maximum_load():
    one = even_group((9, 2, 2, 1), 2)
    assert limiting_partition(one).weight == solve(one).imbalance.value == 9


def test_the_reason_counts_all_partitions_of_the_same_weight():
    assert limiting_partition(even_group((9, 9, 0), 2)) is None  # the mean load is 9
    assert "1 more carries as much" in str(limiting_partition(even_group((9, 9, 2), 3)))


@pytest.mark.parametrize(
    "other",
    [
        group("t:3", a="t", b="t"),
        even_group((4, 4, 4, 4), 2),
        even_group((5, 4, 3, 2), 2),
        changed(even_group((9, 1), 2), c1={"speed": 3}),
        group(""),
    ],
)
def test_no_partition_is_named_if_another_reason_determines_the_maximum(other):
    assert limiting_partition(other) is None
