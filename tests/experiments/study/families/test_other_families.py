import hashlib
import json
from itertools import pairwise

import pytest

from kassay.experiments.simulation.recorded_groups import recorded_groups
from kassay.experiments.simulation.scenarios import SCENARIOS
from kassay.experiments.study.families.benchmark_grid import GridFamily
from kassay.experiments.study.families.overlapping_subscriptions import OverlapFamily, OverlapShape
from kassay.experiments.study.families.registry import FAMILIES, USUAL
from kassay.experiments.study.families.simulated_groups import RECORDED_GROUPS
from kassay.experiments.study.families.weights_and_racks import WEIGHTED
from kassay.reference import violations
from kassay.reference.assignors import ASSIGNORS, assign
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.errors import UsageError
from kassay.reference.model.ownership import ownership

MORE = [name for name in FAMILIES if name not in USUAL]
SEEDS = range(6)


def groups(name):
    return [FAMILIES[name].build(seed) for seed in SEEDS]


def shaped(shape):
    family = OverlapFamily(name=f"test-{shape}", shape=shape)
    return [family.build(seed) for seed in range(30)]


@pytest.mark.parametrize("name", MORE)
def test_groups_are_reproducible_documents_with_valid_assignments(name):
    for once, again in zip(groups(name), groups(name), strict=True):
        assert once == again
        assert parse_group(json.loads(json.dumps(group_document(once)))) == once
        assert list(violations(once, assign(once, "roundrobin"))) == []
        assert once.id.startswith(f"{name}/")


def test_groups_of_seeds_are_the_same_in_every_release():
    documents = [group_document(group) for name in MORE for group in groups(name)[:3]]
    digest = hashlib.sha256(json.dumps(documents, sort_keys=True).encode()).hexdigest()
    assert digest == "626c9335dde9dbc98a6c614b8e8014bb89945d63994625992473907a40fad0b9"


def test_nested_subscriptions_contain_each_other():
    for group in shaped(OverlapShape.NESTED):
        sets = sorted((set(m.subscription) for m in group.members), key=len)
        assert all(small <= large for small, large in pairwise(sets))


def test_blocks_overlap_in_one_member_only():
    groups = [group for group in shaped(OverlapShape.BLOCKS) if len(group.topics) >= 6]
    assert groups
    for group in groups:
        sets = {frozenset(m.subscription) for m in group.members}
        touching = [(a, b) for a in sets for b in sets if a != b and a & b]
        assert all(len(a | b) <= 2 + 2 * len(group.topics) // 3 for a, b in touching)


def test_later_skewed_topics_have_fewer_subscribers():
    consumers = [0] * 12
    for group in shaped(OverlapShape.SKEWED):
        for member in group.members:
            for topic in member.subscription:
                consumers[int(topic[1:])] += 1
    assert consumers[0] > 2 * consumers[2] > 2 * consumers[5]


def test_overlap_groups_are_fresh_or_follow_a_join_or_leave():
    groups = shaped(OverlapShape.RANDOM)
    owned = [ownership(group).owned_count for group in groups]
    assert 0 < owned.count(0) < len(owned)
    assert any(
        m.generation == -1 for g, n in zip(groups, owned, strict=True) if n for m in g.members
    )


@pytest.mark.parametrize("family", WEIGHTED, ids=lambda family: family.name)
def test_weighted_groups_have_unequal_weights(family):
    weights = [w for seed in SEEDS for t in family.build(seed).topics for w in t.weights]
    assert min(weights) >= 1
    assert len(set(weights)) > 1
    assert (set(weights) == {1, 10}) == (family.weights == "two-speed")


def test_every_member_and_replica_has_a_rack():
    for group in groups("racks-mixed"):
        assert {member.rack for member in group.members} <= {"r0", "r1", "r2"}
        assert all(len(held) == 2 for topic in group.topics for held in topic.racks)


def test_the_grid_has_every_point_once():
    family = GridFamily(name="test", members=(4, 6), partitions_per_member=(5,), topics=(2, 5))
    assert family.size == len(set(family.points)) == 16
    for seed, (members, each, topics, mixed, incremental) in enumerate(family.points):
        group = family.build(seed)
        assert (len(group.members), len(group.topics)) == (members, topics)
        assert group.partition_count == members * each
        assert (len({m.subscription for m in group.members}) > 1) == mixed
        newcomers = [m for m in group.members if m.generation == -1]
        assert len(newcomers) == (1 if incremental else members)


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "uniform"])
def test_recorded_groups_match_the_simulation(assignor):
    recorded = json.loads(RECORDED_GROUPS.read_text(encoding="utf-8"))
    for scenario in SCENARIOS:
        assert recorded[f"{scenario}/{assignor}"] == json.loads(
            json.dumps(recorded_groups(scenario, assignor))
        )


def test_every_scenario_and_assignor_is_recorded():
    recorded = json.loads(RECORDED_GROUPS.read_text(encoding="utf-8"))
    assert list(recorded) == [f"{name}/{assignor}" for name in SCENARIOS for assignor in ASSIGNORS]


def test_scenario_groups_depend_on_the_studied_assignor():
    family = FAMILIES["scenarios"]
    documents = {
        json.dumps(group_document(family.build(15, start=start))["members"])
        for start in ("sticky", "cooperative-sticky", "roundrobin")
    }
    assert len(documents) >= 2
    assert family.build(15).members
    with pytest.raises(UsageError, match="no recorded groups of assignor"):
        family.build(15, start="cmd:./mine")


def test_exhaustive_families_contain_all_small_groups():
    family = FAMILIES["worlds-3x3"]
    every = [family.build(seed) for seed in range(family.size)]
    assert len(every) == 2 + 6 + 14 + 2 + 17 + 83 + 2 + 31 + 319
    assert max(len(group.members) for group in every) == 3
    assert max(group.partition_count for group in every) == 3
