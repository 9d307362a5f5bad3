"""The rows of a study, computed again by other programs for groups of all kinds.

``make recompute`` compares 2,000 groups; ``RECOMPUTED_GROUPS`` sets another number.
"""

import json
import os

import pytest

from kassay import Group
from kassay.experiments.comparison.compare import without_racks
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.cases import Case, document_id
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.event_streams import EventStreamFamily
from kassay.experiments.study.schemas import case_row
from kassay.reference.documents.json_codec import group_document
from tests import brute_force
from tests.integer_program import IntegerProgram
from tests.random_groups import random_claims_group

GROUPS = int(os.environ.get("RECOMPUTED_GROUPS", "200"))
KINDS = (
    "claims",
    *(
        name
        for name, family in FAMILIES.items()
        if not family.is_finite
        and not isinstance(family, EventStreamFamily)
        and not name.endswith("large")
    ),
    *("named", "worlds-3x4", "scenarios"),
)
ASSIGNORS = ("sticky", "cooperative-sticky", "uniform", "range", "roundrobin", "legacy-roundrobin")
FLOW_PARTITIONS = 25


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_study_equal_the_independent_recomputation(kind: str) -> None:
    for number in range(_numbers()[kind]):
        case, group = _case(kind, number)
        record = evaluate_case(case)
        assert record.group.error is None
        rows = case_row(record, position=0, study="")
        row = rows["groups"]
        for column, value in _group_columns(group).items():
            assert row[column] == value, (case.name, column)
        program = IntegerProgram(group)
        weighted = bool(row["weighted"])
        level = "makespan" if weighted else "squares"
        imbalance = program.least(level)
        moves = program.least("moves", **{level: imbalance})
        optimum = (record.optimum.imbalance_value, record.optimum.movement_value)
        assert optimum == (imbalance, moves), case.name
        assert record.optimum.status == "optimal"
        if not weighted and row["partitions"] <= FLOW_PARTITIONS:
            squares, flow_moves = program.flow_optimum()
            assert (squares * _common_weight(group) ** 2, flow_moves) == (imbalance, moves)
        for distance in rows["front_distances"]:
            _check_front(group, program, distance)
        for assignment, comparison in zip(rows["assignments"], rows["comparisons"], strict=True):
            if comparison["ending"] == "ok":
                _check_assignor(group, program, level, assignment | comparison)


def _numbers() -> dict[str, int]:
    """Return the number of groups per kind: equal shares, and the rest for claims."""
    sizes = {kind: FAMILIES[kind].size for kind in KINDS if kind in FAMILIES}
    share = GROUPS // len(KINDS)
    shares = {kind: share if size is None else min(share, size) for kind, size in sizes.items()}
    return {**shares, "claims": GROUPS - sum(shares.values())}


def _check_assignor(group: Group, program: IntegerProgram, level: str, row: dict) -> None:
    assignment = run_until_stable(group, row["assignor"]).assignment
    placement = {(tp[0], tp[1]): member for member in assignment for tp in assignment[member]}
    assert sorted(placement) == sorted(brute_force.partitions_to_place(group))
    loads = brute_force.loads_of(group, placement)
    for measure, value in brute_force.MEASURES.items():
        if measure != "leximax":
            assert row[measure] == row[f"{measure}_greedy"] == value(loads), measure
    owners = brute_force.owners(group)
    kept = sum(owners.get(tp) == member for tp, member in placement.items())
    moves = brute_force.moves_of(group, placement)
    assert (row["kept"], row["moved"], row["placed"]) == (
        kept,
        moves,
        len(placement) - kept - moves,
    )
    assert row["movement_greedy"] == moves
    reads = brute_force.off_rack_of(group, placement)
    assert row["off_rack"] == reads
    if level == "makespan":
        limits = {"makespan": row["makespan"]}
    else:
        limits = {"squares": row["sum_of_squares"]}
    racked = any(member.rack for member in group.members) and any(t.racks for t in group.topics)
    within = program.least("moves", **limits, off_rack=reads if racked else None)
    assert (row["movement_within"], row["unnecessary_moves"]) == (within, moves - within)


def _check_front(group: Group, program: IntegerProgram, row: dict) -> None:
    """Compare the distance of an assignment to the front with the integer program."""
    own = {"squares": row["imbalance"], "off_rack": row["off_rack"], "moves": row["moves"]}
    best = {name: program.least(name, **own) for name in own}
    assert {
        "squares": row["imbalance_within"],
        "off_rack": row["off_rack_within"],
        "moves": row["moves_within"],
    } == best
    assert row["on_front"] is (best == own)
    assert row["fewest_moves"] == program.least("moves", squares=row["imbalance"])
    plain = without_racks(group)
    assignment = run_until_stable(plain, row["assignor"]).assignment
    placement = {(tp[0], tp[1]): member for member in assignment for tp in assignment[member]}
    squares = sum(load**2 for load in brute_force.loads_of(plain, placement))
    assert row["moves_without_racks"] == brute_force.moves_of(plain, placement)
    assert row["fewest_moves_without_racks"] == program.least("moves", squares=squares)


def _case(kind: str, number: int) -> tuple[Case, Group]:
    start = ASSIGNORS[number % len(ASSIGNORS)]
    if kind == "claims":
        text = json.dumps(group_document(random_claims_group(number)))
        case = Case(
            family="imported", seed=document_id(text), assignors=ASSIGNORS[:4], document=text
        )
        return case, case.build()
    family = FAMILIES[kind]
    seed = number if family.size is None else 37 * number % family.size
    if family.own_history:
        case = Case(family=kind, seed=seed, assignors=(start,), start=start)
    else:
        # One heuristic that balances, and one that does not.
        case = Case(family=kind, seed=seed, assignors=(ASSIGNORS[number % 3], start))
    return case, case.build()


def _common_weight(group: Group) -> int:
    return next(iter(set(brute_force.weights(group).values())), 1) or 1


def _group_columns(group: Group) -> dict[str, object]:
    owners = brute_force.owners(group)
    participants = set(brute_force.participants(group))
    sizes = {topic.name: topic.partitions for topic in group.topics}
    subscriptions = [
        {topic for topic in member.subscription if sizes.get(topic)}
        for member in group.members
        if member.id in participants
    ]
    claims = {(m.id, (tp[0], tp[1])): m for m in group.members for tp in m.owned}
    valid = sum(owners.get(tp) == member for member, tp in claims)
    highest: dict[tuple[str, int], list[int]] = {}
    for (_, tp), member in claims.items():
        highest.setdefault(tp, []).append(member.generation)
    contested = sum(
        tp[1] < sizes.get(tp[0], 0)
        and tp[0] in member.subscription
        and member.generation == max(highest[tp])
        and highest[tp].count(member.generation) > 1
        for (_, tp), member in claims.items()
    )
    weights = brute_force.weights(group)
    return {
        "members": len(group.members),
        "topics": len(group.topics),
        "participants": len(participants),
        "partitions": len(brute_force.partitions_to_place(group)),
        "consumed": len(set().union(*subscriptions)),
        "subscriptions": sum(map(len, subscriptions)),
        "owned": len(owners),
        "contested": contested,
        "stale": len(claims) - valid - contested,
        "forced": all(
            sum(topic in own for own in subscriptions) == 1 for topic in set().union(*subscriptions)
        ),
        "mixed": len(set(map(frozenset, subscriptions))) > 1,
        "weighted": len({weights[tp] for tp in brute_force.partitions_to_place(group)}) > 1,
    }
