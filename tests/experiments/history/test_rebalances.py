"""Rebalances are found between generations and compared with the optimum."""

from __future__ import annotations

import random

from kassay.experiments.compare import Comparison
from kassay.experiments.history.generation_replay import reconstruct_generations
from kassay.experiments.history.rebalances import Rebalance, compare_rebalance, find_rebalances
from kassay.experiments.history.table_rows import (
    compared_row,
    generation_rows,
    last_document,
    rebalance_rows,
)
from kassay.reference.model.metrics import Measure
from kassay.reference.protocol.classic_records import GroupMetadata
from tests.experiments.history.sample_records import (
    PARTITION_COUNTS,
    decode_rows,
    generation_steps,
    group_metadata_records,
    group_records,
    raw_rows,
    sample_rows,
)


def rebalances_of(*records: GroupMetadata) -> list[Rebalance]:
    raw = raw_rows((record.key, record.value) for record in records)
    generations = reconstruct_generations("g", group_records(raw))
    return list(find_rebalances(generations, partition_counts=PARTITION_COUNTS))


def comparison_of(rebalance: Rebalance) -> Comparison:
    comparison = compare_rebalance(rebalance)
    assert comparison is not None
    return comparison


def test_moves_are_counted_from_one_generation_to_the_next() -> None:
    steps = list(generation_steps("g", "range", seed=2, steps=25))
    rebalances = rebalances_of(*(step.record for step in steps))
    assert [rebalance.last.number for rebalance in rebalances] == [step.number for step in steps]
    for rebalance, step in zip(rebalances, steps, strict=True):
        owners = {tuple(tp): id for id, tps in step.owned.items() for tp in tps}
        moved = sum(
            owners.get(tuple(tp), id) != id for id, tps in step.assignment.items() for tp in tps
        )
        comparison = comparison_of(rebalance)
        assert (comparison.ending, comparison.movement.greedy) == ("ok", moved)
        assert comparison.unnecessary_moves is not None


def test_the_generations_of_a_cooperative_rebalance_count_as_one_rebalance() -> None:
    records = group_metadata_records("g", "cooperative-sticky", seed=3, steps=20)
    rebalances = rebalances_of(*records)
    assert sum(rebalance.rounds for rebalance in rebalances) == len(records)
    assert max(rebalance.rounds for rebalance in rebalances) == 2
    for comparison in map(comparison_of, rebalances):
        assert comparison.ending == "ok"
        assert comparison.imbalance[Measure.SUM_OF_SQUARES].gap == 0


def test_moves_are_unknown_after_missing_generations() -> None:
    records = group_metadata_records("g", "range", seed=4, steps=6)
    rebalances = rebalances_of(*records[:2], *records[4:])
    assert [rebalance.unknown for rebalance in rebalances] == [
        None,
        None,
        "the previous owners are unknown: the records of generations 3 to 4 are missing",
        None,
    ]
    comparison = comparison_of(rebalances[2])
    assert comparison.movement.greedy is None
    assert comparison.imbalance[Measure.SUM_OF_SQUARES].greedy is not None


def test_a_single_member_makes_no_moves_even_after_missing_generations() -> None:
    [record] = group_metadata_records("g", "range", seed=1, steps=1)
    [rebalance] = rebalances_of(record._replace(generation=8))
    assert rebalance.unknown is None
    assert comparison_of(rebalance).unnecessary_moves == 0


def test_rows_do_not_depend_on_the_order_of_records() -> None:
    raw = sample_rows("g", "sticky", seed=9, steps=12) + sample_rows("h", "range", seed=9, steps=9)
    random.Random(3).shuffle(raw)
    decoded = [row for row in decode_rows(raw) if row["kind"] == 2]
    decoded.sort(key=lambda row: (row["group"], row["offset"]))
    generations = list(generation_rows(decoded, topic_names={}))
    assert [(row["group"], row["number"]) for row in generations] == [
        *(("g", n) for n in range(1, 13)),
        *(("h", n) for n in range(1, 10)),
    ]
    rows = [
        compared_row(row) for row in rebalance_rows(generations, partition_counts=PARTITION_COUNTS)
    ]
    assert {row["ending"] for row in rows} == {"ok"}
    document = last_document(rows[11])
    assert document is not None
    assert document["id"] == "g"
    last = list(generation_steps("g", "sticky", seed=9, steps=12))[-1]
    assert {m["id"]: len(m["owned"]) for m in document["members"]} == last.assignment.loads()
