"""Rebalances are found between generations and compared with the optimum."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.record_encoder import encode_record
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.history.generations import (
    Generation,
    GenerationMember,
    reconstruct_generations,
)
from kassay.experiments.history.recorded_rebalances import RecordedRebalance, find_rebalances
from kassay.reference.model.group import Protocol
from kassay.reference.model.load_metrics import Measure
from kassay.reference.protocol.group_messages import GroupMetadata
from tests.experiments.history.sample_records import (
    PARTITION_COUNTS,
    compare_rebalance,
    generation_steps,
    group_metadata_records,
    group_records,
    raw_rows,
)


def rebalances_of(*records: GroupMetadata) -> list[RecordedRebalance]:
    raw = raw_rows(map(encode_record, records))
    generations = reconstruct_generations("g", group_records(raw))
    return list(find_rebalances(generations, partition_counts=PARTITION_COUNTS))


def comparison_of(rebalance: RecordedRebalance) -> Comparison:
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
        assert (comparison.ending, comparison.movement.value) == ("ok", moved)
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
    assert comparison.movement.value is None
    assert comparison.imbalance[Measure.SUM_OF_SQUARES].value is not None


def classic_generation(
    number: int,
    assignor: str,
    assigned: dict[str, tuple[tuple[str, tuple[int, ...]], ...]],
    *,
    topics: tuple[str, ...] = ("orders",),
    **fields: object,
) -> Generation:
    members = tuple(
        GenerationMember(id=id, subscription=topics, assigned=lists)
        for id, lists in assigned.items()
    )
    position = {"timestamp": number, "partition": 0, "offset": number}
    return Generation(
        group="g",
        incarnation=0,
        number=number,
        protocol=Protocol.CLASSIC,
        assignor=assignor,
        members=members,
        cooperative="cooperative" in assignor,
        **{**position, **fields},
    )


def test_a_subscribed_topic_that_nobody_is_assigned_makes_the_rebalance_invalid() -> None:
    generation = classic_generation(
        1, "RoundRobinAssigner", {"a": (("orders", (0, 1)),), "b": ()}, topics=("audit", "orders")
    )
    counts = {"orders": 2, "audit": 3, "other": 9}
    [rebalance] = find_rebalances([generation], partition_counts=counts)
    assert rebalance.group is not None
    assert [(t.name, t.partitions) for t in rebalance.group.topics] == [("audit", 3), ("orders", 2)]
    comparison = comparison_of(rebalance)
    assert comparison.ending == "invalid"
    assert "audit-0" in str(comparison.detail)


def test_partitions_added_later_do_not_make_earlier_rebalances_invalid() -> None:
    generations = [
        classic_generation(1, "range", {"a": (("orders", (0, 1)),)}),
        classic_generation(2, "range", {"a": (("orders", (0, 1, 2, 3)),)}),
    ]
    rebalances = list(find_rebalances(generations, partition_counts={"orders": 4}))
    assert [comparison_of(each).ending for each in rebalances] == ["ok", "ok"]
    assert [r.group.partition_count for r in rebalances if r.group] == [2, 4]


def test_generations_of_the_eager_protocol_are_never_merged() -> None:
    generations = [
        classic_generation(1, "range", {"a": (("orders", (0, 1)),)}),
        classic_generation(2, "range", {"a": (("orders", (0,)),), "b": ()}),
        classic_generation(3, "range", {"a": (("orders", (0,)),), "b": (("orders", (1,)),)}),
    ]
    rebalances = list(find_rebalances(generations))
    assert [(each.first, each.last.number) for each in rebalances] == [(1, 1), (2, 2), (3, 3)]
    assert [comparison_of(each).ending for each in rebalances] == ["ok", "invalid", "ok"]


def test_cooperative_generations_are_merged_until_revoked_partitions_have_an_owner() -> None:
    generations = [
        classic_generation(1, "cooperative-sticky", {"a": (("orders", (0, 1)),)}),
        classic_generation(2, "cooperative-sticky", {"a": (("orders", (0,)),), "b": ()}),
        classic_generation(
            3, "cooperative-sticky", {"a": (("orders", (0,)),), "b": (("orders", (1,)),)}
        ),
    ]
    rebalances = list(find_rebalances(generations))
    assert [(each.first, each.last.number) for each in rebalances] == [(1, 1), (2, 3)]
    assert comparison_of(rebalances[1]).movement.value == 1


def test_the_claims_of_sticky_members_replace_missing_generations() -> None:
    owners = {"a": (("orders", (0, 1)),), "b": (("orders", (2,)),)}
    claims = {"a": (("orders", (0,)),), "b": (("orders", (1, 2)),)}
    generation = classic_generation(9, "sticky", owners)
    members = tuple(
        replace(member, claimed=claims[member.id], claimed_generation=8)
        for member in generation.members
    )
    [rebalance] = find_rebalances([replace(generation, members=members)])
    assert rebalance.unknown is None
    assert comparison_of(rebalance).movement.value == 1
    [unknown] = find_rebalances([replace(generation, assignor="range")])
    assert "generations 1 to 8 are missing" in str(unknown.unknown)
