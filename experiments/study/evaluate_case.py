"""Everything a study records of one case. Pure: Spark only decides where it runs."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from kassay.experiments.compare import (
    LIMITS,
    CaseLimits,
    Comparison,
    compare,
    fewest_moves_within,
    solve_optimum,
)
from kassay.experiments.implementations.convergence import Ending, StableResult, run_until_stable
from kassay.experiments.study.case import Case
from kassay.experiments.study.table_rows import (
    AssignmentRow,
    CaseRecord,
    GroupRow,
    OptimumRow,
    TimingRow,
)
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.derived_values import cached_for
from kassay.reference.model.external_metrics import (
    balancedness,
    kafka_balance_score,
    kafka_is_balanced,
    off_rack,
    per_topic_spread,
    range_spread,
    standard_deviation,
)
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import (
    leximax,
    load_vector,
    measures,
    movement_count,
    participant_indices,
)
from kassay.reference.model.ownership import ownership
from kassay.solver.solution import Solution

DRAWN_PARTITIONS = 60
DRAWN_MEMBERS = 12
SHOWN_LOADS = 64


OPTIMUM = "optimum"


def evaluate_case(case: Case, *, limits: CaseLimits = LIMITS, drawn: bool = True) -> CaseRecord:
    """Run every assignor of a case and the solver on its group.

    Whatever goes wrong with one of them becomes a row that says so: a study of a million
    groups does not fail for one of them.

    Parameters
    ----------
    case
        What to study.
    limits
        What each search may use up.
    drawn
        Whether small groups are kept whole, with every assignment of them.

    Returns
    -------
    Record
        The rows. Equal cases give equal rows, but for the timings.

    Examples
    --------
    >>> record = evaluate_case(Case(family="named", seed=1, assignors=("sticky",)))
    >>> record.optimum.loads, record.assignments[0].loads
    ('1/1/1', '2/1/0')
    """
    try:
        group = case.build()
        drawn = drawn and _is_drawable(group)
        row = _group_row(case, group, drawn=drawn)
    except Exception as error:  # noqa: BLE001 - whatever fails on one group is a row
        return failed_record(case, _words(error))
    begin = time.perf_counter()
    optimum, optimum_row = _optimum(case, group, limits, drawn=drawn)
    timings = [_timing(case, OPTIMUM, begin)]
    fewest = None
    if optimum is not None:
        # Assignors that reach the same imbalance share the search.
        fewest = cache(partial(fewest_moves_within, group, optimum=optimum, limits=limits))
    assignments: list[AssignmentRow] = []
    comparisons: list[Comparison] = []
    for assignor in case.assignors:
        begin = time.perf_counter()
        settled = _settled(group, assignor)
        timings.append(_timing(case, assignor, begin))
        assignments.append(_assignment_row(case, group, assignor, settled, drawn=drawn))
        comparisons.append(
            _comparison(case, group, assignor, optimum=optimum, settled=settled, fewest=fewest)
        )
    return CaseRecord(
        group=row,
        optimum=optimum_row,
        assignments=tuple(assignments),
        comparisons=tuple(comparisons),
        timings=tuple(timings),
    )


def failed_record(case: Case, why: str) -> CaseRecord:
    """Return the record of a case that gave no figures, with the reason."""
    return CaseRecord(group=replace(_bare_row(case), error=why))


def _settled(group: Group, assignor: str) -> StableResult:
    try:
        return run_until_stable(group, assignor)
    except Exception as error:  # noqa: BLE001 - whatever fails on one group is a row
        return StableResult(ending=Ending.ERROR, assignment=None, rounds=0, detail=_words(error))


def _timing(case: Case, contestant: str, begin: float) -> TimingRow:
    return TimingRow(case=case.name, contestant=contestant, seconds=time.perf_counter() - begin)


def _optimum(
    case: Case, group: Group, limits: CaseLimits, *, drawn: bool
) -> tuple[Solution | None, OptimumRow]:
    try:
        solution = solve_optimum(group, limits=limits)
    except Exception as error:  # noqa: BLE001 - whatever fails on one group is a row
        return None, OptimumRow(case=case.name, status="error", detail=_words(error))
    row = OptimumRow(
        case=case.name,
        status=str(solution.status),
        method=str(solution.method),
        measure=solution.imbalance.name,
        imbalance_value=solution.imbalance.value,
        imbalance_bound=solution.imbalance.bound,
        movement_value=solution.movement.value,
        movement_bound=solution.movement.bound,
        loads=_shown_loads(group, solution.assignment),
        assignment=_drawn(solution.assignment) if drawn else None,
    )
    return solution, row


def _comparison(
    case: Case,
    group: Group,
    assignor: str,
    *,
    optimum: Solution | None,
    settled: StableResult,
    fewest: Callable[[int], int | None] | None,
) -> Comparison:
    unknown = Comparison(
        case=case.name,
        assignor=assignor,
        ending=str(settled.ending),
        detail=settled.detail,
        rounds=settled.rounds,
    )
    if optimum is None:
        return unknown
    try:
        found = compare(group, assignor, optimum=optimum, settled=settled, fewest=fewest)
    except Exception as error:  # noqa: BLE001 - whatever fails on one group is a row
        return replace(unknown, ending=str(Ending.ERROR), detail=_words(error))
    return found if found.case == case.name else replace(found, case=case.name)


def _bare_row(case: Case) -> GroupRow:
    return GroupRow(case=case.name, family=case.family, seed=case.seed, start=case.start)


def _group_row(case: Case, group: Group, *, drawn: bool) -> GroupRow:
    owners = ownership(group)
    subscribers = group.subscribers()
    counts = {topic.name: topic.partitions for topic in group.topics}
    participants = participant_indices(group)
    wanted = [
        frozenset(topic for topic in group.members[index].subscription if counts.get(topic))
        for index in participants
    ]
    return replace(
        _bare_row(case),
        group_id=group.id,
        members=len(group.members),
        topics=len(group.topics),
        participants=len(participants),
        partitions=sum(counts[topic] for topic, members in subscribers.items() if members),
        consumed=len(frozenset().union(*wanted)),
        subscriptions=sum(map(len, wanted)),
        owned=owners.owned_count,
        stale=len(owners.stale),
        contested=len(owners.contested),
        mixed=len(set(wanted)) > 1,
        weighted=group.is_weighted,
        document=_json(group_document(group)) if drawn else None,
    )


def _assignment_row(
    case: Case, group: Group, assignor: str, settled: StableResult, *, drawn: bool
) -> AssignmentRow:
    assignment = settled.assignment
    figures = {} if assignment is None else cached_for(_figures, group, assignment)
    return AssignmentRow(
        case=case.name,
        assignor=assignor,
        ending=str(settled.ending),
        terminated=settled.ending is not Ending.NONTERMINATING,
        detail=settled.detail,
        rounds=settled.rounds,
        assignment=_drawn(assignment) if drawn else None,
        **figures,
    )


def _figures(group: Group, assignment: Assignment) -> dict[str, Any]:
    """Measure an assignment in every way; the keys are columns."""
    vector = load_vector(group, assignment)
    moves = movement_count(group, assignment)
    return {
        **{str(name): value for name, value in measures(group, assignment).items()},
        "kept": moves.kept,
        "moved": moves.moved,
        "placed": moves.placed,
        "kafka_balance_score": kafka_balance_score(group, assignment),
        "kafka_is_balanced": kafka_is_balanced(group, assignment),
        "per_topic_spread": per_topic_spread(group, assignment),
        "standard_deviation": standard_deviation(vector),
        "range_spread": range_spread(vector),
        "balancedness": balancedness(vector),
        "off_rack": off_rack(group, assignment),
        "loads": _shown_loads(group, assignment),
    }


def _shown_loads(group: Group, assignment: Assignment | None) -> str | None:
    if assignment is None or len(group.members) > SHOWN_LOADS:
        return None
    return "/".join(map(str, leximax(load_vector(group, assignment))))


def _drawn(assignment: Assignment | None) -> str | None:
    return None if assignment is None else _json(assignment_document(assignment))


def _is_drawable(group: Group) -> bool:
    return group.partition_count <= DRAWN_PARTITIONS and len(group.members) <= DRAWN_MEMBERS


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
