from itertools import pairwise
from statistics import median

import pytest

from kassay.experiments.study.families.event_streams import EVENT_STREAMS, StreamEvent

SEEDS = range(25)


def steps(seed):
    return list(EVENT_STREAMS.stream(seed))


def test_equal_seeds_give_equal_streams():
    assert steps(3) == steps(3)
    assert steps(3) != steps(4)


def test_streams_have_80_rebalances_or_50_if_the_group_is_large():
    for seed in SEEDS:
        found = steps(seed)
        assert len(found) - 1 == (50 if len(found[0].members) > 100 else 80)
        assert found[0].event is StreamEvent.START


def test_groups_have_the_documented_median_size_and_at_most_1000_members():
    groups = [EVENT_STREAMS.build(seed) for seed in range(400)]
    sizes = [len(group.members) for group in groups]
    assert 10 <= median(sizes) <= 14
    assert 80 <= median(group.partition_count for group in groups) <= 120
    assert 200 < max(sizes) <= 1000
    one_service = sum(len({m.subscription for m in group.members}) == 1 for group in groups)
    assert 180 <= one_service <= 280


def test_every_step_changes_members_topics_or_subscriptions():
    for seed in SEEDS:
        found = steps(seed)
        for before, after in pairwise(found):
            assert (before.topics, before.members) != (after.topics, after.members)
            assert after.members


@pytest.mark.parametrize("is_static", [True, False])
def test_only_static_members_return_from_a_restart_with_their_name(is_static):
    returned = []
    for seed in SEEDS:
        found = steps(seed)
        if (found[0].members[0].instance_id is not None) != is_static:
            continue
        for start, left, back in zip(found, found[1:], found[2:], strict=False):
            if (left.event, back.event) == (StreamEvent.RESTART_LEAVE, StreamEvent.RESTART_RETURN):
                ids = [{member.id for member in step.members} for step in (start, left, back)]
                assert len(ids[1]) == len(ids[0]) - 1
                returned.append(ids[0] == ids[2])
    assert returned
    assert set(returned) == {is_static}
