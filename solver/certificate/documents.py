"""Certificates as JSON documents."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

from kassay.reference.documents.document_fields import (
    as_array,
    as_integer,
    as_object,
    as_optional_integer,
    as_optional_text,
    as_text,
    check_keys,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.metrics import Measure
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver import constraints, objective
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin, Price, PriceTable
from kassay.solver.improvement.transfer_chains import Transfer

VERSION = 2

_Item = TypeVar("_Item")


def certificate_document(certificate: Certificate) -> dict[str, object]:
    """Convert a certificate to a JSON document; empty fields are omitted."""
    document: dict[str, object] = {
        "version": VERSION,
        "claims": [
            {
                **_level_document(claim.level),
                "value": claim.value,
                "bound": claim.bound,
                "origin": str(claim.origin),
            }
            for claim in certificate.claims
        ],
    }
    if certificate.constraints:
        document["constraints"] = [_constraint_document(rule) for rule in certificate.constraints]
    if certificate.prices is not None:
        document["members"] = _price_document(certificate.prices.members)
        document["topics"] = _price_document(certificate.prices.topics)
    if certificate.chain:
        document["chain"] = [
            {"partition": list(step.partition), "from": step.giver, "to": step.taker}
            for step in certificate.chain
        ]
    return document


def parse_certificate(document: object, *, where: str = "certificate") -> Certificate:
    """Parse the JSON document of a certificate; raise InputError if its format is wrong."""
    table = as_object(document, where)
    if table.get("version") != VERSION:
        raise InputError(f"{where}: version must be {VERSION}, got {table.get('version')!r}")
    known = ("version", "claims", "constraints", "members", "topics", "chain")
    check_keys(table, known, where)
    prices = None
    if "members" in table or "topics" in table:
        prices = PriceTable(
            members=_prices(table.get("members"), f"{where}.members"),
            topics=_prices(table.get("topics"), f"{where}.topics"),
        )
    return Certificate(
        claims=tuple(_items(table.get("claims"), f"{where}.claims", _claim)),
        prices=prices,
        chain=tuple(_items(table.get("chain", []), f"{where}.chain", _transfer)),
        constraints=tuple(
            _items(table.get("constraints", []), f"{where}.constraints", _constraint)
        ),
    )


def _items(value: object, where: str, parse: Callable[[object, str], _Item]) -> list[_Item]:
    items = enumerate(as_array(value, where))
    return [parse(item, f"{where}[{index}]") for index, item in items]


def _price_document(prices: Mapping[str, Price]) -> dict[str, list[int]]:
    return {name: list(price) for name, price in prices.items()}


def _prices(value: object, where: str) -> dict[str, Price]:
    prices: dict[str, Price] = {}
    for name, price in as_object(value, where).items():
        pair = [as_integer(part, f"{where}[{name!r}]") for part in as_array(price, where)]
        if len(pair) != 2:
            raise InputError(f"{where}[{name!r}]: expected a pair, got {price!r}")
        prices[name] = (pair[0], pair[1])
    return prices


def _transfer(value: object, where: str) -> Transfer:
    table = as_object(value, where)
    check_keys(table, ("partition", "from", "to"), where)
    return Transfer(
        partition=_partition(table.get("partition"), f"{where}.partition"),
        giver=as_text(table.get("from"), f"{where}.from"),
        taker=as_text(table.get("to"), f"{where}.to"),
    )


def _partition(value: object, where: str) -> TopicPartition:
    pair = as_array(value, where)
    if len(pair) != 2:
        raise InputError(f"{where}: expected a topic and a number, got {value!r}")
    return TopicPartition(as_text(pair[0], where), as_integer(pair[1], where))


def _claim(value: object, where: str) -> LevelClaim:
    table = as_object(value, where)
    known = ("level", "tolerance", "cost", "other", "value", "bound", "origin")
    check_keys(table, known, where)
    origin = as_text(table.get("origin"), f"{where}.origin")
    if origin not in list(Origin):
        raise InputError(f"{where}.origin: unknown origin {origin!r}")
    return LevelClaim(
        level=_level(table, where),
        value=as_integer(table.get("value"), f"{where}.value"),
        bound=as_integer(table.get("bound"), f"{where}.bound"),
        origin=Origin(origin),
    )


def _level_document(level: objective.Level) -> dict[str, object]:
    document: dict[str, object] = {"level": level.name}
    if level.tolerance:
        share = Fraction(level.tolerance.relative)
        document["tolerance"] = [level.tolerance.absolute, share.numerator, share.denominator]
    match level:
        case objective.Movement(cost=tuple(costs), other=other):
            document["cost"] = [[[tp.topic, tp.partition], cost] for tp, cost in costs]
            document["other"] = other
        case objective.Movement(cost=cost):
            document["cost"] = str(cost)
    return document


def _level(table: Mapping[str, object], where: str) -> objective.Level:
    name = as_text(table.get("level"), f"{where}.level")
    try:
        tolerance = _tolerance(table.get("tolerance", [0, 0, 1]), f"{where}.tolerance")
        if name == objective.Movement.name:
            return _movement(table, tolerance, where)
        if name in objective.FURTHER_LEVELS:
            return objective.FURTHER_LEVELS[name](tolerance)
        if name in list(Measure):
            return objective.Imbalance(Measure(name), tolerance)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    raise InputError(f"{where}.level: unknown level {name!r}")


def _tolerance(value: object, where: str) -> objective.Tolerance:
    parts = [as_integer(part, where) for part in as_array(value, where)]
    if len(parts) != 3 or parts[2] < 1:
        raise InputError(f"{where}: expected a number and a fraction, got {value!r}")
    return objective.Tolerance(absolute=parts[0], relative=Fraction(parts[1], parts[2]))


def _movement(
    table: Mapping[str, object], tolerance: objective.Tolerance, where: str
) -> objective.Movement:
    cost = table.get("cost", str(objective.MovementCost.COUNT))
    if isinstance(cost, str):
        return objective.Movement(objective.MovementCost(cost), tolerance)
    pairs = _items(cost, f"{where}.cost", _partition_cost)
    return objective.Movement(
        tuple(pairs), tolerance, as_integer(table.get("other"), f"{where}.other")
    )


def _partition_cost(value: object, where: str) -> tuple[TopicPartition, int]:
    pair = as_array(value, where)
    if len(pair) != 2:
        raise InputError(f"{where}: expected a partition and its cost, got {value!r}")
    return _partition(pair[0], where), as_integer(pair[1], where)


def _constraint_document(rule: constraints.Constraint) -> dict[str, object]:
    name = next(name for name, (kind, _) in _CONSTRAINTS.items() if isinstance(rule, kind))
    return {"constraint": name} | {key: getattr(rule, key) for key in _CONSTRAINTS[name][1]}


def _constraint(value: object, where: str) -> constraints.Constraint:
    table = as_object(value, where)
    name = as_text(table.get("constraint"), f"{where}.constraint")
    if name not in _CONSTRAINTS:
        raise InputError(f"{where}.constraint: unknown constraint {name!r}")
    kind, fields = _CONSTRAINTS[name]
    check_keys(table, ("constraint", *fields), where)
    return kind(**{key: parse(table.get(key), f"{where}.{key}") for key, parse in fields.items()})


def _topics(value: object, where: str) -> tuple[str, ...]:
    return tuple(_items(value, where, as_text))


def _partitions(value: object, where: str) -> tuple[TopicPartition, ...]:
    return tuple(_items(value, where, _partition))


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
