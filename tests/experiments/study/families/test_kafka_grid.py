"""The shapes of Kafka's benchmark, and the prices of goals on them."""

import json
from pathlib import Path

import pytest

from kassay.experiments.study.cases import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.finite_families import (
    KafkaGridFamily,
    partition_counts,
    topic_ids,
)

TINY = KafkaGridFamily(name="tiny", members=(4, 20), topics=(3, 10), partitions=(60,))


def test_the_grid_has_all_combinations_for_two_assignors():
    grid = FAMILIES["kafka-grid"]
    assert 2 * grid.size == 8_064
    assert len(set(grid.points)) == grid.size
    assert FAMILIES["kafka-grid-small"].size == 756
    medium = FAMILIES["kafka-grid-medium"].points
    assert {*medium} == {one for one in grid.points if one.members * one.topics <= 250_000}


def test_partitions_are_divided_as_in_a_recorded_group(shared_fixtures: Path):
    text = (shared_fixtures / "field" / "spread-first.json").read_text()
    recorded = [one["partitions"] for one in json.loads(text)["topics"].values()]
    assert partition_counts("skewed", 20, 1_000) == recorded


def test_topic_ids_are_those_of_a_java_generator():
    # The first two values of nextLong with the seed 42.
    [first] = topic_ids(1)
    halves = (-5025562857975149833, -5843495416241995736)
    assert first.int == (halves[0] % 2**64) << 64 | halves[1] % 2**64


@pytest.mark.parametrize("racks", [False, True])
def test_members_own_the_answer_for_the_group_before_the_event(racks):
    for seed, point in enumerate(TINY.points):
        if point.has_racks is not racks:
            continue
        group = TINY.build(seed, start="uniform2")
        assert len(group.members) == point.members
        owned = sum(len(member.owned) for member in group.members)
        newcomers = sum(not len(member.owned) for member in group.members)
        match point.event:
            case "full":
                assert owned == 0
            case "stable":
                assert owned == group.partition_count == point.partitions
            case "join-one" | "join-many":
                many = -(-point.members // 10)
                assert newcomers >= (1 if point.event == "join-one" else many)
            case "leave-one" | "leave-many":
                assert 0 < owned <= group.partition_count
            case _:
                assert 0 < group.partition_count - owned == -(-point.topics // 10)
        assert all((topic.racks is not None) is racks for topic in group.topics)


def test_prices_are_proven_and_hold_for_the_assignor(monkeypatch):
    monkeypatch.setitem(FAMILIES, "tiny", TINY)
    seeds = [n for n, one in enumerate(TINY.points) if not one.has_racks and one.members == 20]
    prices = {}
    for seed in seeds:
        record = evaluate_case(
            Case(family="tiny", seed=seed, assignors=("uniform2",), start="uniform2")
        )
        rows = {(one.assignor, one.measure): one for one in record.measures}
        assert len(rows) == 8
        assert all(one.bound <= one.minimum <= one.value for one in rows.values())
        spread = rows["uniform2", "topic spread"]
        assert spread.value == spread.minimum == spread.bound
        price = rows["optimum", "price of spread: maximum load"]
        prices.setdefault(TINY.points[seed].subscriptions, []).append(price.value - price.minimum)
    assert set(prices["homogeneous"]) == {0}
    assert max(prices["nested"]) > 0
