import math
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kassay.reference import Assignment, Group, Member, Topic
from kassay.reference.model import external_metrics as metrics
from tests.reference.assignors.notation import group as small_group
from tests.strategies import groups, valid_assignments

RACKED = Group(
    topics=(Topic(name="t", partitions=3, racks=(("r0",), ("r0", "r1"), (None,))),),
    members=(
        Member(id="a", subscription=("t",), rack="r1", owned=[("t", 0)]),
        Member(id="b", subscription=("t",)),
    ),
)


def test_off_rack_counts_only_known_racks_of_members_and_partitions():
    assert metrics.off_rack(RACKED, Assignment({"a": [("t", 0), ("t", 1), ("t", 2)]})) == 1
    assert metrics.off_rack(RACKED, Assignment({"b": [("t", 0), ("t", 1), ("t", 2)]})) == 0


def test_kafka_accepts_group_a_as_balanced_although_it_is_not_optimal():
    group = small_group("t0:1 t1:2", c0="t1", c1="t0 t1", c2="t0")
    sticky = Assignment({"c0": [("t1", 0), ("t1", 1)], "c1": [("t0", 0)], "c2": []})
    assert metrics.kafka_is_balanced(group, sticky)
    unbalanced = Assignment({"c0": [], "c1": [("t0", 0), ("t1", 0), ("t1", 1)], "c2": []})
    assert not metrics.kafka_is_balanced(group, unbalanced)


@given(st.data())
def test_kafka_is_balanced_agrees_with_a_search_for_direct_transfers(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    counts = assignment.loads()
    improves = any(
        counts[source] > counts[target.id] + 1 and tp.topic in target.subscription
        for source, tps in assignment.items()
        for tp in tps
        for target in group.members
    )
    assert metrics.kafka_is_balanced(group, assignment) == (not improves)


@given(st.data())
def test_kafka_balance_score_is_the_pairwise_sum_over_participating_members(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    subscribers = group.subscribers()
    topics = group.topic_table()
    counts = [
        len(assignment[m.id])
        for m in group.members
        if m.subscription
        and (
            len(assignment[m.id]) < sum(topics[t].partitions for t in m.subscription)
            or any(len(subscribers[tp.topic]) > 1 for tp in assignment[m.id])
        )
    ]
    expected = sum(abs(a - b) for a, b in combinations(counts, 2))
    assert metrics.kafka_balance_score(group, assignment) == expected


def test_cruise_controls_balance_band_is_nine_percent():
    assert metrics.balancedness([100, 109, 91]) == 100.0
    assert metrics.balancedness([100, 110, 90, 100]) == 50.0
    assert metrics.balancedness([]) == 100.0


def test_topicmappr_spreads():
    assert metrics.standard_deviation([2, 4, 4, 4, 5, 5, 7, 9]) == 2.0
    assert metrics.range_spread([4, 4]) == 0.0
    assert metrics.range_spread([0, 1]) == math.inf
    assert metrics.standard_deviation([]) == 0.0


def test_per_topic_spread_detects_a_topic_on_one_member():
    group = Group(
        topics=(Topic(name="t", partitions=2), Topic(name="u", partitions=2)),
        members=(Member(id="a", subscription=("t", "u")), Member(id="b", subscription=("t", "u"))),
    )
    concentrated = Assignment({"a": [("t", 0), ("t", 1)], "b": [("u", 0), ("u", 1)]})
    even = Assignment({"a": [("t", 0), ("u", 1)], "b": [("u", 0), ("t", 1)]})
    assert metrics.per_topic_spread(group, concentrated) == 4
    assert metrics.per_topic_spread(group, even) == 0
