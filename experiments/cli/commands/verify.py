"""``kassay verify``: check the validity and optimality of given assignments."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import group_io, output_options
from kassay.reference.documents.json_codec import document_id, parse_assignment
from kassay.reference.documents.json_text import LocatedDocument, read_json_documents
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, imbalance, loads, movement
from kassay.solver.certificate.certificate import Certificate, LevelClaim
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.certificate.claims import value_of
from kassay.solver.certificate.documents import parse_certificate
from kassay.solver.certify import certify
from kassay.solver.objective import FURTHER_LEVELS, Imbalance, Level, Movement


def verify(
    file: group_io.GroupFile = group_io.STDIN,
    *,
    assignment: Annotated[
        Path,
        typer.Option(
            help="File with the assignments to check, one per group, as written by kassay assign "
            "or kassay solve. - for standard input."
        ),
    ],
    require_optimal: Annotated[
        bool,
        typer.Option(
            "--require-optimal", help="Exit with code 1 if an assignment is not proven optimal."
        ),
    ] = False,
    output_format: output_options.OutputFormat = output_options.Format.JSONL,
) -> None:
    """Check assignments and their certificates without a solver.

    An assignment is valid if every partition has one subscribed assignee. With equal weights,
    optimality is proven by the prices of the certificate or by new ones; otherwise an
    improving chain is shown. With other weights, bounds that only a solver can check are
    listed under "trusted" and "optimal" is null. All figures of the document are checked.
    Exits with 1 for an invalid assignment, a wrong figure or an invalid certificate.

    Example: `kassay solve g.json --certificate > s.json; kassay verify g.json --assignment s.json`
    """
    if file == group_io.STDIN and assignment == group_io.STDIN:
        raise typer.BadParameter(
            "FILE and --assignment cannot both be standard input; give a file for one of them"
        )
    answers = _read(assignment)

    def process(group: Group) -> group_io.GroupResult:
        answers_of_group = answers.get(group.id) or answers.get(None)
        if not answers_of_group:
            file_name = group_io.name_of(assignment)
            raise InputError(f"{file_name}: the file has no assignment for group {group.id!r}")
        return _check(group, answers_of_group.pop(0), require_optimal=require_optimal)

    group_io.process_groups(file, process, output_format=output_format)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Assignment to check (or None), its certificate, and its document from solve."""

    assignment: Assignment | None
    certificate: Certificate | None = None
    document: Mapping[str, object] = field(default_factory=dict)


def _read(path: Path) -> dict[str | None, list[_Answer]]:
    """Read the assignments to check by group id; those without an id keep their order."""
    answers: dict[str | None, list[_Answer]] = {}
    with group_io.open_text(path) as stream:
        for located in read_json_documents(stream, name=group_io.name_of(path)):
            if located.error is not None:
                raise located.error
            value = located.value
            document = value if isinstance(value, dict) and "assignment" in value else None
            id = None if document is None else document_id(located)
            answers.setdefault(id, []).append(_answer(located, document))
    return answers


def _answer(located: LocatedDocument, document: Mapping[str, object] | None) -> _Answer:
    if document is None:
        return _Answer(parse_assignment(located.value, where=located.where))
    if document["assignment"] is None:
        return _Answer(None, document=document)
    certificate = document.get("certificate")
    where = f"{located.where}: certificate"
    return _Answer(
        parse_assignment(document, where=located.where),
        None if certificate is None else parse_certificate(certificate, where=where),
        document,
    )


def _check(group: Group, answer: _Answer, *, require_optimal: bool) -> group_io.GroupResult:
    assignment = answer.assignment
    record: dict[str, object] = {"id": group.id}
    if assignment is None:
        reason = "the document has no assignment"
        return group_io.GroupResult(record | {"valid": None, "reason": reason}, reached=False)
    broken = list(violations(group, assignment))
    record["valid"] = not broken
    if broken:
        return group_io.GroupResult(record | {"violations": broken}, reached=False)
    record |= {"imbalance": imbalance(group, assignment), "movement": movement(group, assignment)}
    errors = list(_document_errors(group, assignment, answer))
    certificate = answer.certificate
    if certificate is not None:
        errors = [*certificate_errors(group, assignment, certificate), *errors]
        record["certificate"] = "invalid" if errors else "valid"
    if errors:
        return group_io.GroupResult(record | {"optimal": None, "errors": errors}, reached=False)
    try:
        certificate = certificate or certify(group, assignment)
    except ValueError as error:
        # The assignment is valid but exceeds the capacity of a member.
        return group_io.GroupResult(record | {"optimal": None, "reason": str(error)}, reached=False)
    optimal = _is_optimal(certificate)
    record |= {"optimal": optimal, "levels": [_level(claim) for claim in certificate.claims]}
    if certificate.trusted:
        record["trusted"] = [claim.level.name for claim in certificate.trusted]
    if certificate.chain:
        record["improvement"] = [str(transfer) for transfer in certificate.chain]
    return group_io.GroupResult(record, reached=optimal is True or not require_optimal)


def _is_optimal(certificate: Certificate) -> bool | None:
    """Return whether the assignment is optimal; None if this is not proven."""
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


def _document_errors(group: Group, assignment: Assignment, answer: _Answer) -> Iterator[str]:
    """Compare the figures of a document of ``kassay solve`` with its assignment."""
    document, certificate = answer.document, answer.certificate
    bounds = {} if certificate is None else {c.level.name: c.bound for c in certificate.claims}
    for key, level in _levels(document):
        value = value_of(group, assignment, level)
        figures = document[key]
        if not isinstance(figures, Mapping):
            yield f"{key}: must be an object with value and bound, got {figures!r}"
            continue
        if figures.get("value") != value:
            yield f"{key}: the document has value {figures.get('value')!r}, expected {value}"
        is_flow = document.get("method") == "flow"
        error = _bound_error(figures.get("bound"), value, bounds.get(level.name), is_flow=is_flow)
        if error is not None:
            yield f"{key}: {error}"
    if "loads" in document:
        expected = loads(group, assignment)
        if document["loads"] != expected:
            yield f"loads: the document has {document['loads']!r}, expected {expected!r}"
    is_claimed = document.get("status") == "optimal"
    if is_claimed and certificate is not None and not certificate.is_optimal:
        yield "status: the document has 'optimal', but the certificate does not prove it"


def _levels(document: Mapping[str, object]) -> Iterator[tuple[str, Level]]:
    first = document.get("imbalance")
    measure = first.get("measure") if isinstance(first, Mapping) else None
    if measure in list(Measure):
        yield "imbalance", Imbalance(Measure(measure))
    for level in (Movement(), *(further() for further in FURTHER_LEVELS.values())):
        if level.name in document:
            yield level.name, level


def _bound_error(bound: object, value: int, proven: int | None, *, is_flow: bool) -> str | None:
    if bound is None:
        return None
    if not isinstance(bound, int) or isinstance(bound, bool):
        return f"the bound must be an integer, got {bound!r}"
    if bound > value:
        return f"the bound {bound} is above the value {value}"
    if is_flow and bound != value:
        return f"the bound {bound} of method flow must equal the value {value}"
    if proven is not None and bound != proven:
        return f"the bound is {bound}, but the certificate has {proven}"
    return None
