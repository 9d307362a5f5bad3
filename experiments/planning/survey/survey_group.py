"""Survey one group: compute the gain of a plan."""

from dataclasses import replace

from kassay.experiments.comparison.optimum import keep_owners
from kassay.experiments.kinds.current_state import current_state
from kassay.experiments.planning.preparation.plan_verdict import Verdict, other_verdict
from kassay.experiments.planning.preparation.planning_levels import makespan_of, planning_levels
from kassay.experiments.planning.preparation.planning_start import (
    StreamsApplicationError,
    check_planning_start,
)
from kassay.experiments.planning.survey.survey_result import (
    LoadSummary,
    MoveHistory,
    SurveyedGroup,
    SurveyResult,
    UnsurveyedGroup,
)
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.assignment import movement
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import other_reading, rebalance_caveat, target_assignment
from kassay.reference.model.metrics import load_vector, member_units
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing.limiting_partition import limiting_partition
from kassay.solver.solution import LevelValue
from kassay.solver.solve import solve


def survey_group(
    group: Group,
    *,
    history: MoveHistory | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> SurveyResult:
    """Compute the gain of a plan for one group.

    The plan has the objective of `plan`. Its searches stop at the time limit; the result then
    has the best plan found and its bounds.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> result = survey_group(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.planned.makespan, float(result.gap)
    (11, 10, 0.1)
    """
    try:
        check_planning_start(group)
        return _surveyed(group, history, limits, seed)
    except StreamsApplicationError as error:
        return UnsurveyedGroup(id=group.id, reason=str(error), is_other_type=True)
    except KassayError as error:
        return UnsurveyedGroup(id=group.id, reason=str(error))
    except Exception as error:  # noqa: BLE001 - one bad group must not end the survey
        reason = f"internal error: {type(error).__name__}: {error}"
        return UnsurveyedGroup(id=group.id, reason=reason)


def survey_other_kind(
    document: KindDocument, *, limits: SearchLimits = SearchLimits()
) -> SurveyResult:
    """Compare the current state of a group of another kind than consumers with the optimum."""
    try:
        return current_state(document, limits=limits)
    except KassayError as error:
        return UnsurveyedGroup(id=document.id, reason=str(error), is_other_type=True)


def _surveyed(
    group: Group, history: MoveHistory | None, limits: SearchLimits, seed: int
) -> SurveyResult:
    levels = planning_levels(group)
    other = other_reading(group)
    share = limits if other is None else replace(limits, work=limits.work / 2)
    solution = solve(group, levels=levels, limits=share, seed=seed)
    makespan = makespan_of(group, solution)
    if solution.assignment is None or makespan is None:
        reason = "; ".join(solution.conflict) or "no assignment found within the time limit"
        return UnsurveyedGroup(id=group.id, reason=reason)
    current, planned = keep_owners(group), LoadSummary.of(group, solution.assignment)
    relative = member_units(group).relative_loads(load_vector(group, current))
    subscribers = group.subscribers()
    consumed = [topic for topic in group.topics if subscribers[topic.name]]
    owners = ownership(group).owners
    moved = movement(group, solution.assignment)
    return SurveyedGroup(
        id=group.id,
        state=group.status.state,
        assignor=group.status.assignor,
        weights=None if group.weight_source is None else str(group.weight_source),
        members=len(group.members),
        partitions=sum(topic.partitions for topic in consumed),
        current=LoadSummary.of(group, current),
        planned=planned,
        makespan=LevelValue("makespan", planned.makespan, min(planned.makespan, makespan.bound)),
        moves=LevelValue("movement", moved, min(moved, solution.movement.bound)),
        placed=sum(int((owners[topic.name] == NO_OWNER).sum()) for topic in consumed),
        hot=sum(load > planned.makespan for load in relative),
        history=history,
        verdict=Verdict.of(group, solution, makespan, levels),
        other_reading=other_verdict(group, levels, (), limits=share, seed=seed),
        target=target_assignment(group),
        caveat=rebalance_caveat(group),
        limiting_partition=limiting_partition(group, limits=share, seed=seed),
    )
