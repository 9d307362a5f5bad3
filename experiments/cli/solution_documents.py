"""Read solution documents, which contain assignments and certificates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kassay.reference.documents.json_codec import document_id, group_fingerprint, parse_assignment
from kassay.reference.documents.json_values import LocatedDocument, read_json_documents
from kassay.reference.documents.text_files import name_of, open_text
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.certificate.certificate import Certificate
from kassay.solver.certificate.documents import parse_certificate


@dataclass(frozen=True, slots=True)
class SolutionDocument:
    """Parsed solution document: assignment, optional certificate and the JSON object."""

    assignment: Assignment | None
    certificate: Certificate | None = None
    document: Mapping[str, object] = field(default_factory=dict)
    error: InputError | None = None

    @property
    def fingerprint(self) -> object:
        """Return the group fingerprint in the document, or None if it has no fingerprint."""
        return self.document.get("fingerprint")


class SolutionFile:
    """File of solution documents, with lookup by group."""

    def __init__(self, path: Path) -> None:
        self.name = name_of(path)
        self.by_id: dict[str | None, list[SolutionDocument]] = {}
        with open_text(path) as stream:
            for located in read_json_documents(stream, name=self.name):
                solution = parse_solution(located)
                id = document_id(located) if solution.document else None
                self.by_id.setdefault(id, []).append(solution)

    def take(self, group: Group) -> SolutionDocument:
        """Find the solution document of a group, and remove the document from this object.

        Documents with the id of the group come first, then documents without an id. Among these,
        the first with the fingerprint of the group is its document; if no document has it, the
        first document is used.

        Raises
        ------
        InputError
            If there is no document for the group, or it cannot be read, or it reports an error.
        """
        documents = self.by_id.get(group.id) or self.by_id.get(None)
        if not documents:
            raise InputError(f"{self.name}: the file has no assignment for group {group.id!r}")
        at = 0
        if len(documents) > 1 and any(one.fingerprint is not None for one in documents):
            fingerprint = group_fingerprint(group)
            at = next((i for i, one in enumerate(documents) if one.fingerprint == fingerprint), 0)
        solution = documents.pop(at)
        if solution.error is not None:
            raise solution.error
        return solution


def parse_solution(located: LocatedDocument) -> SolutionDocument:
    """Parse a solution document. Store an error in the result instead of raising it."""
    if located.error is not None:
        return SolutionDocument(None, error=located.error)
    value = located.value
    document = value if isinstance(value, Mapping) and _is_document(value) else None
    try:
        return _from_document(value, document, located.where)
    except InputError as error:
        return SolutionDocument(None, document=document or {}, error=error)


def _is_document(value: Mapping[str, object]) -> bool:
    """Return whether a JSON object is a solution document instead of a plain assignment."""
    return "assignment" in value or isinstance(value.get("error"), str)


def _from_document(
    value: object, document: Mapping[str, object] | None, where: str
) -> SolutionDocument:
    if document is None:
        return SolutionDocument(parse_assignment(value, where=where))
    if "assignment" not in document:
        raise InputError(f"{where}: the document reports an error: {document['error']}")
    assignment, certificate = None, None
    if document["assignment"] is not None:
        assignment = parse_assignment(document, where=where)
    if document.get("certificate") is not None:
        certificate = parse_certificate(document["certificate"], where=f"{where}: certificate")
    return SolutionDocument(assignment, certificate, document)
