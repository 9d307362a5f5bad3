"""Columns of partitions across members."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kassay.reference import Group, Member, Partitions, Topic
from kassay.reference.model import ownership
from kassay.reference.model.group import topic_starts
from kassay.reference.model.topic_partitions import EMPTY_COLUMNS, UNKNOWN, PartitionColumns, select
from tests.strategies import groups, valid_assignments

GROUP = Group(
    topics=(Topic(name="t", partitions=2), Topic(name="u", partitions=3)),
    members=(Member(id="a", subscription=("u", "gone")), Member(id="b", subscription=())),
)


def test_partition_columns_keep_the_order_of_the_partition_lists() -> None:
    starts = topic_starts(GROUP)
    rows = starts.rows(
        [(1, Partitions.of([("u", 2), ("gone", 0)])), (0, Partitions.of([("t", 1), ("u", 9)]))]
    )
    assert rows.member.tolist() == [1, 1, 0, 0]
    assert rows.topic.tolist() == [1, UNKNOWN, 0, 1]
    assert rows.number.tolist() == [2, 0, 1, 9]
    assert starts.exist(rows).tolist() == [True, False, True, False]
    assert starts.flat(select(rows, starts.exist(rows))).tolist() == [4, 1]


def test_the_partition_columns_of_a_group_without_owned_partitions_are_empty() -> None:
    starts = topic_starts(GROUP)
    assert starts.rows([]) is EMPTY_COLUMNS
    assert starts.exist(EMPTY_COLUMNS).tolist() == []


def test_the_subscription_mask_is_true_for_subscribed_topics() -> None:
    assert ownership.subscription_mask(GROUP).tolist() == [[False, True], [False, False]]
    assert ownership.consumed_partitions(GROUP).tolist() == [False, False, True, True, True]


@given(st.data())
def test_the_index_of_a_valid_assignment_has_each_consumed_partition_once(
    data: st.DataObject,
) -> None:
    group = data.draw(groups(messy=True))
    assignment = data.draw(valid_assignments(group))
    starts = topic_starts(group)
    rows = starts.rows((i, assignment[m.id]) for i, m in enumerate(group.members))
    assert starts.exist(rows).all()
    positions = sorted(starts.flat(rows).tolist())
    assert positions == ownership.consumed_partitions(group).nonzero()[0].tolist()


def test_subscriptions_of_large_groups_are_looked_up_without_a_table(monkeypatch):
    rows = PartitionColumns(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([0, 0, 0]))
    expected = ownership.are_subscribed(GROUP, rows).tolist()
    assert expected == [False, True, False]
    monkeypatch.setattr(ownership, "_MAX_CELLS", 0)
    assert ownership.are_subscribed(GROUP, rows).tolist() == expected
