"""``kassay verify``: check that solution documents are valid and optimal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import typer

from kassay.experiments.cli.application import REQUIRED, option
from kassay.experiments.cli.process_groups import GroupResult, GroupSource, process_each_group
from kassay.experiments.cli.search_options import ObjectiveOptions
from kassay.experiments.cli.write_results import Format
from kassay.reference.documents import files
from kassay.reference.documents.json_codec import group_fingerprint, parse_assignment
from kassay.reference.model.assignment import Assignment, movement, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure, loads, shown
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Proof, value_of
from kassay.solver.certificate.check import certificate_errors, conflict_errors
from kassay.solver.certificate.documents import (
    constraint_document,
    level_document,
    parse_certificate,
)
from kassay.solver.certify import certify
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import check_constraints
from kassay.solver.objective import LEVELS, Imbalance, Level
from kassay.solver.solution import level_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """Command-line options of ``kassay verify``."""

    assignment: Path = option(REQUIRED)
    require_optimal: bool = option(False)
    output_format: Format = option(Format.JSONL, "--format")


def verify(options: VerifyOptions, source: GroupSource, objective: ObjectiveOptions) -> None:
    """Run ``kassay verify`` with parsed options."""
    if source.file == files.STDIN and options.assignment == files.STDIN:
        raise typer.BadParameter(
            "SOURCE and --assignment cannot both be standard input; give a file for one of them"
        )
    solutions = SolutionFile(options.assignment)

    def process(group: Group) -> GroupResult:
        solution = solutions.take(group)
        try:
            question = Question(group, objective.levels(group), objective.constraints(group))
        except UsageError as error:
            raise InputError(f"{group.label}: {error}") from error
        record = check_solution(question, solution)
        has_error = not record.keys().isdisjoint(("violations", "errors", "reason"))
        is_reached = record.get("infeasible", True) is True and (
            record.get("optimal") is True or not options.require_optimal
        )
        return GroupResult(record, is_reached and not has_error)

    process_each_group(source, process, options.output_format)


@dataclass(frozen=True, slots=True)
class SolutionDocument:
    """Solution document with its assignment, and its certificate if it has one."""

    assignment: Assignment | None
    certificate: Certificate | None = None
    document: Mapping[str, object] = field(default_factory=dict)
    error: InputError | None = None

    @property
    def fingerprint(self) -> object:
        """Return the fingerprint of the group in the document, or None."""
        return self.document.get("fingerprint")


class SolutionFile:
    """Solution documents of a file, with lookup by group."""

    def __init__(self, path: Path) -> None:
        self.name = files.name_of(path)
        self.by_id: dict[str | None, list[SolutionDocument]] = {}
        with files.open_text(path) as stream:
            for located in files.read_json_documents(stream, name=self.name):
                solution = parse_solution(located)
                id = files.document_id(located.value) if solution.document else None
                self.by_id.setdefault(id, []).append(solution)

    def take(self, group: Group) -> SolutionDocument:
        """Find the solution document of a group and remove it from this object.

        Candidates are the documents with the id of the group or, if there are none, the documents
        without an id. The first candidate with the fingerprint of the group is its document, or the
        first candidate if no fingerprint matches.

        Raises
        ------
        InputError
            If there is no document for the group, or it cannot be read, or it reports an error.
        """
        documents = self.by_id.get(group.id) or self.by_id.get(None)
        if not documents:
            raise InputError(f"{self.name}: the file has no assignment for {group.label}; add it")
        at = 0
        if len(documents) > 1 and any(one.fingerprint is not None for one in documents):
            fingerprint = group_fingerprint(group)
            at = next((i for i, one in enumerate(documents) if one.fingerprint == fingerprint), 0)
        solution = documents.pop(at)
        if solution.error is not None:
            raise solution.error
        return solution


def parse_solution(located: files.LocatedDocument) -> SolutionDocument:
    """Parse a solution document, and return it with its error, if it has one."""
    if located.error is not None:
        return SolutionDocument(None, error=located.error)
    value, where = located.value, located.where
    document: Mapping[str, object] = {}
    # Other objects are plain assignments.
    if isinstance(value, Mapping):
        has_error = isinstance(value.get("error"), str)
        document = value if has_error or "assignment" in value else {}
    if document and "assignment" not in document:
        failure = InputError(f"{where}: the document reports an error: {document['error']}")
        return SolutionDocument(None, document=document, error=failure)
    try:
        if not document:
            return SolutionDocument(parse_assignment(value, where=where))
        assignment, certificate = None, None
        if document["assignment"] is not None:
            assignment = parse_assignment(document, where=where)
        if document.get("certificate") is not None:
            certificate = parse_certificate(document["certificate"], where=f"{where}: certificate")
    except InputError as error:
        return SolutionDocument(None, document=document, error=error)
    return SolutionDocument(assignment, certificate, document)


@dataclass(frozen=True, slots=True)
class Question:
    """Group, levels and constraints that the user requested."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]

    def stated_by(self, certificate: Certificate | None) -> "Question":
        """Return the question with the levels and constraints of a certificate, if it has them."""
        if certificate is None:
            return self
        levels = tuple(claim.level for claim in certificate.claims) or self.levels
        return Question(self.group, levels, certificate.constraints)


def check_solution(question: Question, solution: SolutionDocument) -> dict[str, object]:
    """Check a solution document against the requested group, levels and constraints.

    Return the result as JSON. Raise InputError if a constraint refers to a member, topic or
    partition that the group does not have.
    """
    group, assignment = question.group, solution.assignment
    check_constraints(group, question.constraints)
    fingerprint = group_fingerprint(group)
    certificate = solution.certificate
    stated = question.stated_by(certificate)
    record: dict[str, object] = {
        "id": group.id,
        "fingerprint": fingerprint,
        "objective": [level_document(level) for level in stated.levels],
        "constraints": [constraint_document(rule) for rule in stated.constraints],
    }
    if assignment is None:
        return record | {"valid": None} | _conflict_record(question, solution, fingerprint)
    broken = list(violations(group, assignment))
    record["valid"] = not broken
    if broken:
        return record | {"optimal": None, "violations": broken}
    level = next(one for one in (*question.levels, Imbalance()) if isinstance(one, Imbalance))
    value = shown(level.name, value_of(group, assignment, level), group)
    record |= {"measure": level.name, "imbalance": value, "movement": movement(group, assignment)}
    others = list(_question_errors(stated, question))
    errors = [] if others else list(_figure_errors(question, assignment, solution))
    errors = [*_fingerprint_errors(fingerprint, solution), *errors]
    if certificate is not None:
        errors = [*certificate_errors(group, assignment, certificate), *errors]
        record["certificate"] = "invalid" if errors else "other options" if others else "valid"
    if errors or others:
        return record | {"optimal": None, "errors": [*errors, *others]}
    try:
        certificate = certificate or certify(
            group, assignment, levels=question.levels, constraints=question.constraints
        )
    except UsageError as error:
        # The assignment is valid but violates a constraint or the capacity of a member.
        return record | {"optimal": None, "reason": str(error)}
    if certificate.chain and solution.document.get("status") == "optimal":
        improved = f"status: the document has 'optimal', but {certificate.chain[0]} improves it"
        return record | {"optimal": False, "errors": [improved]}
    return record | _certified_record(group, certificate, solution)


def _conflict_record(
    question: Question, solution: SolutionDocument, fingerprint: str
) -> dict[str, object]:
    """Check whether the certificate of a document proves that no assignment exists."""
    certificate = solution.certificate
    if certificate is None or certificate.conflict is None:
        return {"reason": "the document has no assignment"}
    errors = list(conflict_errors(question.group, certificate))
    errors += _fingerprint_errors(fingerprint, solution)
    others = list(_question_errors(question.stated_by(certificate), question))
    state = "invalid" if errors else "other options" if others else "valid"
    if errors or others:
        return {"certificate": state, "infeasible": None, "errors": [*errors, *others]}
    is_proven = certificate.proof is Proof.CERTIFICATE
    return {
        "certificate": state,
        "infeasible": True if is_proven else None,
        "proof": {"conflict": str(certificate.proof)},
        "conflict": [str(rule) for rule in certificate.conflict.constraints],
    }


def _fingerprint_errors(expected: str, solution: SolutionDocument) -> Iterator[str]:
    found = solution.fingerprint
    if found is None and solution.certificate is not None:
        yield "fingerprint: the document has a certificate, but no fingerprint of its group"
    elif found is not None and found != expected:
        yield f"fingerprint: the document is about another group: {found!r}, expected {expected!r}"


_OTHER = "the document has {}; the options of this command mean {}; repeat those of kassay solve"


def _question_errors(stated: Question, asked: Question) -> Iterator[str]:
    """Yield errors if the certified levels or constraints are not the requested ones."""
    if stated.levels != asked.levels:
        first, other = stated.levels[0], asked.levels[0]
        is_measure = first == other or first.name != other.name
        option = "--imbalance or --level" if is_measure else f"--tolerance {first.tolerance}"
        texts = (", ".join(map(_level_text, one.levels)) for one in (stated, asked))
        yield f"objective: {_OTHER.format(*texts)}: {option}"
    if set(stated.constraints) != set(asked.constraints):
        texts = (", ".join(map(str, one.constraints)) or "none" for one in (stated, asked))
        yield f"constraints: {_OTHER.format(*texts)}"


def _level_text(level: Level) -> str:
    return f"{level.name} (tolerance {level.tolerance})" if level.tolerance else level.name


def _figure_errors(
    question: Question, assignment: Assignment, solution: SolutionDocument
) -> Iterator[str]:
    """Yield an error for each value that contradicts the assignment or certificate."""
    group, document, certificate = question.group, solution.document, solution.certificate
    keys = level_keys(level.name for level in question.levels)
    levels = dict(zip(keys, question.levels, strict=True))
    yield from _unknown_figures(document, levels)
    claims = {} if certificate is None else {claim.level: claim for claim in certificate.claims}
    for key, level in levels.items():
        if key in document:
            value = shown(level.name, value_of(group, assignment, level), group)
            claim = claims.get(level)
            bound = None if claim is None else shown(level.name, claim.bound, group)
            for error in _level_errors(document, key, value, bound):
                yield f"{key}: {error}"
    proofs = {key: str(claims[level].proof) for key, level in levels.items() if level in claims}
    if certificate is not None and document.get("proof", proofs) != proofs:
        yield f"proof: the document has {document['proof']!r}, expected {proofs!r}"
    if "loads" in document:
        expected = loads(group, assignment)
        if document["loads"] != expected:
            yield f"loads: the document has {document['loads']!r}, expected {expected!r}"
    is_claimed = document.get("status") == "optimal"
    if is_claimed and certificate is not None and not certificate.is_optimal:
        yield "status: the document has 'optimal', but the certificate does not prove it"


def _unknown_figures(document: Mapping[str, object], levels: Mapping[str, Level]) -> Iterator[str]:
    """Yield an error for each level that the document has, but the user did not request."""
    for key in ("imbalance", *LEVELS):
        if key in document and key not in levels:
            yield f"{key}: the document has this level, but the command does not request it"
    figures = document.get("imbalance")
    measure = figures.get("measure") if isinstance(figures, Mapping) else None
    level = levels.get("imbalance")
    if measure is not None and level is not None and measure != level.name:
        known_measure = "" if measure in list(Measure) else " (not a measure)"
        yield f"imbalance: the document has measure {measure!r}{known_measure}, expected " + repr(
            level.name
        )


def _level_errors(
    document: Mapping[str, object], key: str, value: float, proven: float | None
) -> Iterator[str]:
    """Yield errors in the value and the bound of one level in a document.

    ``proven`` is the bound in the certificate, if there is one.
    """
    figures = document[key]
    if not isinstance(figures, Mapping):
        yield f"must be an object with value and bound, got {figures!r}"
        return
    if figures.get("value") != value:
        yield f"the document has value {figures.get('value')!r}, expected {value}"
    bound = figures.get("bound")
    if bound is None:
        return
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        yield f"the bound must be a number, got {bound!r}"
    elif bound < 0:
        yield f"the bound {bound} is below 0"
    elif bound > value:
        yield f"the bound {bound} is above the value {value}"
    elif proven is not None and bound != proven:
        yield f"the bound is {bound}, but the certificate has {proven}"


def _certified_record(
    group: Group, certificate: Certificate, solution: SolutionDocument
) -> dict[str, object]:
    """Return the bounds and the status that a certificate proves, or its errors, as JSON."""
    keys = level_keys(claim.level.name for claim in certificate.claims)
    claims = dict(zip(keys, certificate.claims, strict=True))
    is_proven = certificate.proof is Proof.CERTIFICATE
    record: dict[str, object] = {
        "optimal": False if certificate.chain else (True if is_proven else None),
        "proof": {key: str(claim.proof) for key, claim in claims.items()},
        "levels": [
            {
                "level": claim.level.name,
                "value": shown(claim.level.name, claim.value, group),
                "bound": shown(claim.level.name, claim.bound, group),
                "slack": shown(claim.level.name, claim.slack, group),
                "origin": str(claim.origin),
            }
            for claim in certificate.claims
        ],
    }
    unproven = list(_unproven_bounds(group, claims, solution))
    if unproven:
        record["unproven"] = unproven
    if certificate.chain:
        record["improvement"] = [str(transfer) for transfer in certificate.chain]
    return record


def _unproven_bounds(
    group: Group, claims: Mapping[str, LevelClaim], solution: SolutionDocument
) -> Iterator[str]:
    """Describe bounds of a document that exceed the proven bounds."""
    for key, claim in claims.items():
        figures = solution.document.get(key)
        bound = figures.get("bound") if isinstance(figures, Mapping) else None
        proven = shown(claim.level.name, claim.bound, group)
        if isinstance(bound, int | float) and bound > proven:
            yield f"{claim.level.name}: the bound {bound} is above the proven bound {proven}"
