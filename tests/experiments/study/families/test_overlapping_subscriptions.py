from itertools import pairwise

from kassay.experiments.study.families.random_groups import OverlapFamily, OverlapShape
from kassay.reference.model.ownership import ownership


def groups_of_shape(shape):
    family = OverlapFamily(name=f"test-{shape}", shape=shape)
    return [family.build(seed) for seed in range(30)]


def test_nested_subscriptions_contain_each_other():
    for group in groups_of_shape(OverlapShape.NESTED):
        sets = sorted((set(m.subscription) for m in group.members), key=len)
        assert all(small <= large for small, large in pairwise(sets))


def test_subscriptions_of_a_group_are_not_all_equal():
    for shape in OverlapShape:
        for group in groups_of_shape(shape):
            assert len({member.subscription for member in group.members}) > 1


def test_members_of_different_blocks_share_no_topic():
    for group in groups_of_shape(OverlapShape.BLOCKS):
        blocks = {m.subscription for m in group.members}
        sizes = {len(block) for block in blocks}
        plain = [set(block) for block in blocks if len(block) == min(sizes)]
        assert all(a == b or not a & b for a in plain for b in plain)


def test_blocks_overlap_in_one_member_only():
    groups = [group for group in groups_of_shape(OverlapShape.BLOCKS) if len(group.topics) >= 6]
    assert groups
    for group in groups:
        sets = {frozenset(m.subscription) for m in group.members}
        touching = [(a, b) for a in sets for b in sets if a != b and a & b]
        assert all(len(a | b) <= 2 + 2 * len(group.topics) // 3 for a, b in touching)


def test_later_skewed_topics_have_fewer_subscribers():
    consumers = [0] * 12
    for group in groups_of_shape(OverlapShape.SKEWED):
        for member in group.members:
            for topic in member.subscription:
                consumers[int(topic[1:])] += 1
    assert consumers[0] > 2 * consumers[2] > 2 * consumers[5]


def test_overlap_groups_are_fresh_or_follow_a_join_or_leave():
    groups = groups_of_shape(OverlapShape.RANDOM)
    owned = [ownership(group).owned_count for group in groups]
    assert 0 < owned.count(0) < len(owned)
    assert any(
        m.generation == -1 for g, n in zip(groups, owned, strict=True) if n for m in g.members
    )
