"""Rebalances that are found while records arrive equal those of the complete history."""

from __future__ import annotations

import random

import pytest

from kassay.experiments.history.group_follower import GroupFollower
from kassay.experiments.history.group_records import from_row
from kassay.experiments.history.history_rows import generation_rows, rebalance_rows
from tests.experiments.history.sample_records import PARTITION_COUNTS, decode_rows, sample_rows


def group_rows(assignor: str, seed: int) -> list[dict]:
    rows = decode_rows(list(sample_rows("g", assignor, seed=seed, steps=12)))
    return sorted((row for row in rows if row["kind"] == 2), key=lambda row: row["offset"])


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(5))
def test_each_rebalance_is_found_once_in_batches_with_repeated_records(assignor, seed):
    rows, rng = group_rows(assignor, seed), random.Random(seed)
    generations = generation_rows(rows, topic_names={})
    expected = list(rebalance_rows(generations, partition_counts=PARTITION_COUNTS))
    found, state, first = [], None, 0
    while first < len(rows):
        end = rng.randint(first + 1, len(rows))
        follower = GroupFollower.of("g", state)
        again = rng.randint(0, first)
        found += follower.apply(map(from_row, rows[again:end]), PARTITION_COUNTS)
        if rng.random() < 0.5:
            found += follower.close(PARTITION_COUNTS)
        state, first = follower.state(), end
    follower = GroupFollower.of("g", state)
    found += follower.close(PARTITION_COUNTS)
    assert found == expected
    assert list(follower.close(PARTITION_COUNTS)) == []
