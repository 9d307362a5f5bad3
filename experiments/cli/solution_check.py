"""What a document of ``kassay solve`` tells of its assignment, measured again."""

from collections.abc import Iterator, Mapping

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads
from kassay.solver.certificate.certificate import Certificate
from kassay.solver.certificate.claims import value_of
from kassay.solver.objective import FURTHER_LEVELS, Imbalance, Level, Measure, Movement


def solution_errors(
    group: Group,
    assignment: Assignment,
    told: Mapping[str, object],
    certificate: Certificate | None,
) -> Iterator[str]:
    """Say which figures of a document are not those of its valid assignment.

    Parameters
    ----------
    group
        The rebalance.
    assignment
        What the figures are about.
    told
        The document, as ``kassay solve`` writes it. Keys that it lacks are not missed.
    certificate
        Its certificate, if any: bounds must be those that it proves.
    """
    bounds = {} if certificate is None else {c.level.name: c.bound for c in certificate.claims}
    for key, level in _told_levels(told):
        value = value_of(group, assignment, level)
        figures = told[key]
        if not isinstance(figures, Mapping):
            yield f"{key}: expected value and bound, got {figures!r}"
            continue
        if figures.get("value") != value:
            yield f"{key}: the document says {figures.get('value')!r}, it is {value}"
        yield from _wrong_bound(key, figures.get("bound"), value, told, bounds.get(level.name))
    if "loads" in told:
        measured = loads(group, assignment)
        if told["loads"] != measured:
            yield f"loads: the document says {told['loads']!r}, they are {measured!r}"
    if told.get("status") == "optimal" and certificate is not None and not certificate.is_optimal:
        yield "status: the document says optimal, its certificate does not"


def _told_levels(told: Mapping[str, object]) -> Iterator[tuple[str, Level]]:
    first = told.get("imbalance")
    measure = first.get("measure") if isinstance(first, Mapping) else None
    if measure in list(Measure):
        yield "imbalance", Imbalance(Measure(measure))
    for level in (Movement(), *(further() for further in FURTHER_LEVELS.values())):
        if level.name in told:
            yield level.name, level


def _wrong_bound(
    key: str, bound: object, value: int, told: Mapping[str, object], proven: int | None
) -> Iterator[str]:
    if bound is None:
        return
    if not isinstance(bound, int) or isinstance(bound, bool):
        yield f"{key}: the bound is {bound!r}, not an integer"
    elif bound > value:
        yield f"{key}: the bound {bound} is above the value {value}"
    elif told.get("method") == "flow" and bound != value:
        yield f"{key}: the bound {bound} of a flow is not its value {value}"
    elif proven is not None and bound != proven:
        yield f"{key}: the bound is {bound}, in the certificate {proven}"
