"""``kassay verify``: whether an assignment is valid, and whether it is proven optimal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli.group_io import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
    name_of,
    open_text,
)
from kassay.experiments.cli.solution_check import solution_errors
from kassay.reference.documents.json_codec import document_id, parse_assignment
from kassay.reference.documents.json_text import LocatedDocument, read_json_documents
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import imbalance, movement
from kassay.solver.certificate.certificate import Certificate, LevelClaim
from kassay.solver.certificate.check import certificate_errors, certify
from kassay.solver.certificate.documents import parse_certificate


def verify(
    file: GroupFile = STDIN,
    *,
    assignment: Annotated[
        Path,
        typer.Option(
            help="What to check: assignments as assign and solve write them, one a group, "
            "with their certificates if they have any; - for standard input."
        ),
    ],
    require_optimal: Annotated[
        bool, typer.Option("--require-optimal", help="Exit with 1 unless all is proven.")
    ] = False,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Check given assignments without any solver.

    An assignment is valid if every partition has one subscribed assignee. Equal weights
    are proven optimal (least sum of squared loads, then fewest moves) by prices: those of
    the certificate, else new ones. An assignment that is not optimal is shown with the
    chain of transfers that improves it. With weights, bounds that can be counted again
    are; the others are named under "trusted", and "optimal" is then null.

    Figures that the document tells of its assignment are measured again. An invalid
    assignment, a wrong figure, or a certificate that does not hold ends with exit code 1.

    Example: `kassay solve g.json --certificate > s.json; kassay verify g.json --assignment s.json`
    """
    if file == STDIN and assignment == STDIN:
        raise typer.BadParameter("only one of the group and the assignment can be standard input")
    given = _read(assignment)

    def work(group: Group) -> Answer:
        return _judge(group, given.take(group), require_optimal=require_optimal)

    answer_groups(file, work, output=output)


@dataclass(frozen=True, slots=True)
class _Given:
    """An assignment, its certificate, and what else its document tells; None for no assignment."""

    assignment: Assignment | None
    certificate: Certificate | None = None
    told: Mapping[str, object] = field(default_factory=dict)


class _Waiting:
    """Assignments by group id; those without id in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_id: dict[str | None, list[_Given]] = {}

    def take(self, group: Group) -> _Given:
        waiting = self.by_id.get(group.id) or self.by_id.get(None)
        if not waiting:
            raise InputError(f"{self.name}: no assignment for group {group.id!r}")
        return waiting.pop(0)


def _read(path: Path) -> _Waiting:
    waiting = _Waiting(name_of(path))
    with open_text(path) as stream:
        for located in read_json_documents(stream, name=waiting.name):
            if located.error is not None:
                raise located.error
            document = located.value
            told = document if isinstance(document, dict) and "assignment" in document else None
            name = None if told is None else document_id(located)
            waiting.by_id.setdefault(name, []).append(_given(located, told))
    return waiting


def _given(located: LocatedDocument, told: Mapping[str, object] | None) -> _Given:
    if told is None:
        return _Given(parse_assignment(located.value, where=located.where))
    if told["assignment"] is None:
        return _Given(None, told=told)
    proof = told.get("certificate")
    where = f"{located.where}: certificate"
    return _Given(
        parse_assignment(told, where=located.where),
        None if proof is None else parse_certificate(proof, where=where),
        told,
    )


def _judge(group: Group, given: _Given, *, require_optimal: bool) -> Answer:
    assignment = given.assignment
    record: dict[str, object] = {"id": group.id}
    if assignment is None:
        return Answer(record | {"valid": None, "reason": "there is no assignment"}, reached=False)
    broken = list(violations(group, assignment))
    record["valid"] = not broken
    if broken:
        return Answer(record | {"violations": broken}, reached=False)
    record |= {
        "imbalance": imbalance(group, assignment),
        "movement": movement(group, assignment),
    }
    against = list(solution_errors(group, assignment, given.told, given.certificate))
    certificate = given.certificate
    if certificate is not None:
        against = [*certificate_errors(group, assignment, certificate), *against]
        record["certificate"] = "refuted" if against else "holds"
    if against:
        return Answer(record | {"optimal": None, "objections": against}, reached=False)
    try:
        certificate = certificate or certify(group, assignment)
    except ValueError as error:
        # It is valid, but more than some member can carry.
        return Answer(record | {"optimal": None, "reason": str(error)}, reached=False)
    optimal = _verdict(certificate)
    record |= {"optimal": optimal, "levels": [_level(claim) for claim in certificate.claims]}
    if certificate.trusted:
        record["trusted"] = [claim.level.name for claim in certificate.trusted]
    if certificate.chain:
        record["improvement"] = [str(transfer) for transfer in certificate.chain]
    return Answer(record, reached=optimal is True or not require_optimal)


def _verdict(certificate: Certificate) -> bool | None:
    """Say whether an assignment is optimal; None where that is open or a matter of trust."""
    if certificate.chain:
        return False
    return True if certificate.is_optimal and not certificate.trusted else None


def _level(claim: LevelClaim) -> dict[str, object]:
    return {
        "level": claim.level.name,
        "value": claim.value,
        "bound": claim.bound,
        "slack": claim.slack,
        "origin": str(claim.origin),
    }
