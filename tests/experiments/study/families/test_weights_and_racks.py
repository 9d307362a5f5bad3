import pytest

from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.random_groups import WEIGHTED

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


@pytest.mark.parametrize("kind", ["equal", "mixed"])
def test_families_with_different_pasts_have_the_same_members_and_racks(kind):
    for seed in range(20):
        random = FAMILIES[f"racks-{kind}"].build(seed)
        own = FAMILIES[f"racks-{kind}-own-past"].build(seed, start="sticky")
        assert own.topics == random.topics
        assert [(m.id, m.rack, m.subscription) for m in own.members] == [
            (m.id, m.rack, m.subscription) for m in random.members
        ]


def test_an_own_past_of_an_assignor_that_uses_racks_has_fewer_off_rack_reads():
    """The members own what the assignor assigned to the group with racks, before the event."""
    reads = {"range": 0, "server-range": 0}
    for seed in range(30):
        for name in reads:
            group = FAMILIES["racks-equal-own-past"].build(seed, start=name)
            rack = {member.id: member.rack for member in group.members}
            replicas = {(t.name, n): t.racks[n] for t in group.topics for n in range(t.partitions)}
            owner = {tp: m.id for m in group.members for tp in m.owned}
            reads[name] += sum(rack[owner[tp]] not in replicas[tp[0], tp[1]] for tp in owner)
    assert 0 < reads["range"] < 0.9 * reads["server-range"]
