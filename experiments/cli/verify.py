"""``kassay verify``: whether an assignment is valid, and whether it is proven optimal."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.documents import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
    name_of,
    open_text,
)
from reference.assignment import Assignment, violations
from reference.codec import document_id, parse_assignment
from reference.group import Group, InvalidGroupError
from reference.jsontext import read_json_documents
from reference.metrics import imbalance, movement
from solver.certificate import Certificate, certify, objections, parse_certificate
from solver.chains import improving_chain


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

    An assignment is valid if every partition has one subscribed assignee. It is optimal
    (least sum of squared loads, then fewest moves; partitions count 1) if prices prove
    it: those of its certificate, else new ones. If it is not, the chain of transfers
    that improves it is shown. An invalid assignment, or a certificate that does not
    hold, ends with exit code 1.

    Example: `kassay solve g.json > s.json; kassay verify g.json --assignment s.json`
    """
    if file == STDIN and assignment == STDIN:
        raise typer.BadParameter("only one of the group and the assignment can be standard input")
    given = _read(assignment)

    def work(group: Group) -> Answer:
        return _judge(group, *given.take(group), require_optimal=require_optimal)

    answer_groups(file, work, output=output)


class _Given:
    """Assignments by group id; those without id in their order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_id: dict[str | None, list[tuple[Assignment, Certificate | None]]] = {}

    def take(self, group: Group) -> tuple[Assignment, Certificate | None]:
        waiting = self.by_id.get(group.id) or self.by_id.get(None)
        if not waiting:
            raise InvalidGroupError(f"{self.name}: no assignment for group {group.id!r}")
        return waiting.pop(0)


def _read(path: Path) -> _Given:
    given = _Given(name_of(path))
    with open_text(path) as stream:
        for located in read_json_documents(stream, name=given.name):
            if located.error is not None:
                raise located.error
            found = parse_assignment(located.value, where=located.where)
            document = located.value if isinstance(located.value, dict) else {}
            proof = document.get("certificate") if "assignment" in document else None
            certificate = (
                None
                if proof is None
                else parse_certificate(proof, where=f"{located.where}: certificate")
            )
            name = document_id(located) if "assignment" in document else None
            given.by_id.setdefault(name, []).append((found, certificate))
    return given


def _judge(
    group: Group,
    assignment: Assignment,
    certificate: Certificate | None,
    *,
    require_optimal: bool,
) -> Answer:
    broken = list(violations(group, assignment))
    record: dict[str, object] = {"id": group.id, "valid": not broken}
    if broken:
        return Answer(record | {"violations": broken}, reached=False)
    record |= {
        "imbalance": imbalance(group, assignment),
        "movement": movement(group, assignment),
    }
    if certificate is not None:
        against = list(objections(group, assignment, certificate))
        record |= {"certificate": "holds" if not against else "refuted"}
        if against:
            return Answer(record | {"optimal": None, "objections": against}, reached=False)
        return Answer(record | {"optimal": True})
    if group.is_weighted:
        record |= {"optimal": None, "reason": "weights differ: only counts can be certified"}
        return Answer(record, reached=not require_optimal)
    chain = improving_chain(group, assignment)
    record |= {"optimal": not chain and certify(group, assignment) is not None}
    if chain:
        record["improvement"] = [str(transfer) for transfer in chain]
    return Answer(record, reached=not (chain and require_optimal))
