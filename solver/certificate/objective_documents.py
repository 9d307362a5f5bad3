"""Convert levels and constraints to and from JSON documents."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

from kassay.reference.documents.json_values import (
    as_array,
    as_integer,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    check_keys,
)
from kassay.reference.model.errors import InputError, InternalError
from kassay.reference.model.metrics import Measure
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver import constraints, objective

LEVEL_KEYS = ("level", "tolerance", "up_to", "cost", "other", "topics")
"""Keys of a level; ``cost`` and ``other`` belong to movement, ``topics`` to colocation."""

_FURTHER_KEYS = {
    objective.Movement.name: ("cost", "other"),
    objective.Colocation.name: ("topics",),
}
Item = TypeVar("Item")


def parse_items(value: object, where: str, parse: Callable[[object, str], Item]) -> list[Item]:
    """Parse a JSON array with a function that parses one item."""
    items = enumerate(as_array(value, where))
    return [parse(item, f"{where}[{index}]") for index, item in items]


def parse_partition(value: object, where: str) -> TopicPartition:
    """Parse a JSON array of a topic name and a partition number."""
    pair = as_array(value, where)
    if len(pair) != 2:
        raise InputError(f"{where}: expected [topic, partition number], got {value!r}")
    return TopicPartition(as_text(pair[0], where), as_integer(pair[1], where))


def level_document(level: objective.Level) -> dict[str, object]:
    """Convert a level of the objective to a JSON document."""
    document: dict[str, object] = {"level": level.name}
    if level.tolerance.up_to is not None:
        document["up_to"] = level.tolerance.up_to
    elif level.tolerance:
        share = Fraction(level.tolerance.relative)
        document["tolerance"] = [level.tolerance.absolute, share.numerator, share.denominator]
    match level:
        case objective.Movement(cost=tuple(costs), other=other):
            document["cost"] = [[[tp.topic, tp.partition], cost] for tp, cost in costs]
            document["other"] = other
        case objective.Movement(cost=cost):
            document["cost"] = str(cost)
        case objective.Colocation(topics=topics):
            document["topics"] = [list(names) for names in topics]
        case _:
            pass
    return document


def parse_level(table: Mapping[str, object], where: str) -> objective.Level:
    """Parse a level of the objective from JSON. Raise InputError if the format is wrong.

    Keys that do not belong to a level are ignored.
    """
    name = as_text(table.get("level"), f"{where}.level")
    known = (*LEVEL_KEYS[:3], *_FURTHER_KEYS.get(name, ()))
    check_keys({key: 0 for key in LEVEL_KEYS if key in table}, known, where)
    try:
        tolerance = _tolerance(table.get("tolerance", [0, 0, 1]), f"{where}.tolerance")
        if "up_to" in table:
            tolerance = replace(tolerance, up_to=as_integer(table["up_to"], f"{where}.up_to"))
        if name == objective.Movement.name:
            return _movement(table, tolerance, where)
        if name == objective.Colocation.name:
            sets = parse_items(table.get("topics"), f"{where}.topics", _topics)
            return objective.Colocation(tuple(sets), tolerance)
        if name in objective.FURTHER_LEVELS:
            return objective.FURTHER_LEVELS[name](tolerance)
        if name in list(Measure):
            return objective.Imbalance(Measure(name), tolerance)
        if name in objective.HOST_LEVELS:
            return objective.HostImbalance(objective.HOST_LEVELS[name], tolerance)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    known_levels = ", ".join(
        [
            *Measure,
            *objective.HOST_LEVELS,
            objective.Movement.name,
            objective.Colocation.name,
            *objective.FURTHER_LEVELS,
        ]
    )
    raise InputError(f"{where}.level: unknown level {name!r}, expected one of {known_levels}")


def _tolerance(value: object, where: str) -> objective.Tolerance:
    parts = [as_integer(part, where) for part in as_array(value, where)]
    if len(parts) != 3 or parts[2] < 1:
        raise InputError(
            f"{where}: expected [absolute tolerance, numerator, positive denominator], "
            f"got {value!r}"
        )
    return objective.Tolerance(absolute=parts[0], relative=Fraction(parts[1], parts[2]))


def _movement(
    table: Mapping[str, object], tolerance: objective.Tolerance, where: str
) -> objective.Movement:
    cost = table.get("cost", str(objective.MovementCost.COUNT))
    if isinstance(cost, str):
        if cost not in list(objective.MovementCost):
            raise InputError(
                f"{where}.cost: unknown cost {cost!r}, "
                f"expected one of {', '.join(objective.MovementCost)}"
            )
        return objective.Movement(objective.MovementCost(cost), tolerance)
    pairs = parse_items(cost, f"{where}.cost", _partition_cost)
    return objective.Movement(
        tuple(pairs), tolerance, as_integer(table.get("other"), f"{where}.other")
    )


def _partition_cost(value: object, where: str) -> tuple[TopicPartition, int]:
    pair = as_array(value, where)
    if len(pair) != 2:
        raise InputError(f"{where}: expected [partition, cost], got {value!r}")
    return parse_partition(pair[0], where), as_integer(pair[1], where)


def constraint_document(rule: constraints.Constraint) -> dict[str, object]:
    """Convert a constraint to a JSON document."""
    name = next((name for name, (kind, _) in _CONSTRAINTS.items() if isinstance(rule, kind)), None)
    if name is None:
        raise InternalError(f"_CONSTRAINTS in {__name__} has no entry for {rule!r}")
    return {"constraint": name} | {key: getattr(rule, key) for key in _CONSTRAINTS[name][1]}


def parse_constraint(value: object, where: str) -> constraints.Constraint:
    """Parse a constraint from a JSON object. Raise InputError if the format is wrong."""
    table = as_object(value, where)
    name = as_text(table.get("constraint"), f"{where}.constraint")
    if name not in _CONSTRAINTS:
        raise InputError(
            f"{where}.constraint: unknown constraint {name!r}, "
            f"expected one of {', '.join(_CONSTRAINTS)}"
        )
    kind, fields = _CONSTRAINTS[name]
    check_keys(table, ("constraint", *fields), where)
    return kind(**{key: parse(table.get(key), f"{where}.{key}") for key, parse in fields.items()})


def _topics(value: object, where: str) -> tuple[str, ...]:
    return tuple(parse_items(value, where, as_text))


def _partitions(value: object, where: str) -> tuple[TopicPartition, ...]:
    return tuple(parse_items(value, where, parse_partition))


_CONSTRAINTS: dict[
    str, tuple[type[constraints.Constraint], dict[str, Callable[[object, str], Any]]]
] = {
    "capacity": (constraints.Capacity, {"limit": as_integer, "member": as_optional_text}),
    "max_partitions": (
        constraints.MaxPartitions,
        {"limit": as_integer, "member": as_optional_text},
    ),
    "max_moves": (constraints.MaxMoves, {"limit": as_integer}),
    "pinned": (constraints.Pinned, {"topic": as_text, "partition": as_integer, "member": as_text}),
    "forbidden": (
        constraints.Forbidden,
        {"member": as_text, "topic": as_text, "partition": as_optional_integer},
    ),
    "colocated": (constraints.Colocated, {"topics": _topics}),
    "separated": (constraints.Separated, {"partitions": _partitions}),
}
