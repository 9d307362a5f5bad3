"""Convert certificates to and from JSON documents."""

from collections.abc import Mapping

from kassay.reference.documents.json_codec import assignment_document, parse_assignment
from kassay.reference.documents.json_values import (
    as_array,
    as_integer,
    as_integers,
    as_object,
    as_text,
    check_keys,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.solver.certificate.certificate import (
    Certificate,
    Conflict,
    LevelClaim,
    Origin,
    Price,
    PriceTable,
)
from kassay.solver.certificate.objective_documents import (
    LEVEL_KEYS,
    constraint_document,
    level_document,
    parse_constraint,
    parse_items,
    parse_level,
    parse_partition,
)
from kassay.solver.certificate.refutation import PartitionPrices
from kassay.solver.improvement.transfer_chains import Transfer

VERSION = 3


def certificate_document(certificate: Certificate) -> dict[str, object]:
    """Convert a certificate to a JSON document without empty fields."""
    document: dict[str, object] = {
        "version": VERSION,
        "claims": [_claim_document(claim) for claim in certificate.claims],
    }
    if certificate.constraints:
        document["constraints"] = [constraint_document(rule) for rule in certificate.constraints]
    if certificate.prices is not None:
        document["members"] = _price_document(certificate.prices.members)
        document["topics"] = _price_document(certificate.prices.topics)
    if certificate.chain:
        document["chain"] = [
            {"partition": list(step.partition), "from": step.giver, "to": step.taker}
            for step in certificate.chain
        ]
    if certificate.conflict is not None:
        document["conflict"] = _conflict_document(certificate.conflict)
    return document


def parse_certificate(document: object, *, where: str = "certificate") -> Certificate:
    """Parse a certificate from a JSON document. Raise InputError if the format is wrong."""
    table = as_object(document, where)
    if table.get("version") != VERSION:
        raise InputError(f"{where}: version must be {VERSION}, got {table.get('version')!r}")
    known = ("version", "claims", "constraints", "members", "topics", "chain", "conflict")
    check_keys(table, known, where)
    prices = None
    if "members" in table or "topics" in table:
        prices = PriceTable(
            members=_prices(table.get("members"), f"{where}.members"),
            topics=_prices(table.get("topics"), f"{where}.topics"),
        )
    return Certificate(
        claims=tuple(parse_items(table.get("claims"), f"{where}.claims", _claim)),
        prices=prices,
        chain=tuple(parse_items(table.get("chain", []), f"{where}.chain", _transfer)),
        constraints=tuple(
            parse_items(table.get("constraints", []), f"{where}.constraints", parse_constraint)
        ),
        conflict=_conflict(table["conflict"], f"{where}.conflict") if "conflict" in table else None,
    )


def _claim_document(claim: LevelClaim) -> dict[str, object]:
    document = level_document(claim.level) | {
        "value": claim.value,
        "bound": claim.bound,
        "origin": str(claim.origin),
    }
    if claim.best is not None:
        document["best"] = assignment_document(claim.best)
    if claim.prices is not None:
        document["prices"] = _partition_price_document(claim.prices)
    return document


def _conflict_document(conflict: Conflict) -> dict[str, object]:
    document: dict[str, object] = {
        "constraints": [constraint_document(rule) for rule in conflict.constraints],
        "origin": str(conflict.origin),
    }
    if conflict.prices is not None:
        document["prices"] = _partition_price_document(conflict.prices)
    return document


def _partition_price_document(prices: PartitionPrices) -> dict[str, object]:
    return {
        "topics": {topic: list(table) for topic, table in prices.prices.items()},
        "max_moves": prices.max_moves,
        "levels": list(prices.levels),
    }


def _price_document(prices: Mapping[str, Price]) -> dict[str, list[int]]:
    return {name: list(price) for name, price in prices.items()}


def _prices(value: object, where: str) -> dict[str, Price]:
    prices: dict[str, Price] = {}
    for name, price in as_object(value, where).items():
        pair = [as_integer(part, f"{where}[{name!r}]") for part in as_array(price, where)]
        if len(pair) != 2:
            raise InputError(f"{where}[{name!r}]: expected two integers, got {price!r}")
        prices[name] = (pair[0], pair[1])
    return prices


def _transfer(value: object, where: str) -> Transfer:
    table = as_object(value, where)
    check_keys(table, ("partition", "from", "to"), where)
    return Transfer(
        partition=parse_partition(table.get("partition"), f"{where}.partition"),
        giver=as_text(table.get("from"), f"{where}.from"),
        taker=as_text(table.get("to"), f"{where}.to"),
    )


def _claim(value: object, where: str) -> LevelClaim:
    table = as_object(value, where)
    check_keys(table, (*LEVEL_KEYS, "value", "bound", "origin", "best", "prices"), where)
    return LevelClaim(
        level=parse_level(table, where),
        value=as_integer(table.get("value"), f"{where}.value"),
        bound=as_integer(table.get("bound"), f"{where}.bound"),
        origin=_origin(table, where),
        best=_best(table, where),
        prices=_partition_prices(table, where),
    )


def _conflict(value: object, where: str) -> Conflict:
    table = as_object(value, where)
    check_keys(table, ("constraints", "origin", "prices"), where)
    rules = parse_items(table.get("constraints"), f"{where}.constraints", parse_constraint)
    return Conflict(tuple(rules), _origin(table, where), _partition_prices(table, where))


def _origin(table: Mapping[str, object], where: str) -> Origin:
    origin = as_text(table.get("origin"), f"{where}.origin")
    if origin not in list(Origin):
        raise InputError(
            f"{where}.origin: unknown origin {origin!r}, expected one of {', '.join(Origin)}"
        )
    return Origin(origin)


def _best(table: Mapping[str, object], where: str) -> Assignment | None:
    if "best" not in table:
        return None
    return parse_assignment({"assignment": table["best"]}, where=f"{where}.best")


def _partition_prices(table: Mapping[str, object], where: str) -> PartitionPrices | None:
    if "prices" not in table:
        return None
    where = f"{where}.prices"
    prices = as_object(table["prices"], where)
    check_keys(prices, ("topics", "max_moves", "levels"), where)
    return PartitionPrices(
        prices={
            topic: as_integers(numbers, f"{where}.topics[{topic!r}]")
            for topic, numbers in as_object(prices.get("topics"), f"{where}.topics").items()
        },
        max_moves=as_integer(prices.get("max_moves", 0), f"{where}.max_moves"),
        levels=as_integers(prices.get("levels", []), f"{where}.levels"),
    )
