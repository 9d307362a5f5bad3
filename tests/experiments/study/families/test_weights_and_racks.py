import pytest

from kassay.experiments.study.families.registry import FAMILIES
from kassay.experiments.study.families.weights_and_racks import WEIGHTED

SEEDS = range(6)


@pytest.mark.parametrize("family", WEIGHTED, ids=lambda family: family.name)
def test_weighted_groups_have_unequal_weights(family):
    assert all(family.build(seed).is_weighted for seed in range(40))
    weights = [w for seed in SEEDS for t in family.build(seed).topics for w in t.weights]
    assert min(weights) >= 1
    assert len(set(weights)) > 1
    assert (set(weights) == {1, 10}) == (family.weights == "two-speed")


def test_every_member_and_replica_has_a_rack():
    for group in (FAMILIES["racks-mixed"].build(seed) for seed in SEEDS):
        assert {member.rack for member in group.members} <= {"r0", "r1", "r2"}
        assert all(len(held) == 2 for topic in group.topics for held in topic.racks)
