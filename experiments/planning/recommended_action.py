"""Choose the action that plans and surveys recommend for a group."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.planning.assignor_outcomes import (
    AssignmentMetrics,
    assignment_metrics,
    rebalance,
)
from kassay.experiments.planning.cause_evidence import CIRCULAR, Cause, CauseKind, finding_of
from kassay.experiments.planning.causes import find_cause
from kassay.experiments.planning.change_forecast import Forecast, default_assignors
from kassay.experiments.planning.effective_actions import (
    FACTORS,
    EffectiveAction,
    effective_actions,
    is_simulated,
)
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_result import Verdict, has_lost_rebalance, verdict_of
from kassay.experiments.prediction.scenario import Configuration
from kassay.reference import assignors
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.solver.capacity_planning import LimitingPartition, limiting_partition
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import group_constraints
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

PENDING = (CauseKind.PENDING_REBALANCE, CauseKind.STATIC_MEMBERS)
_LOST = (CauseKind.NO_OWNER, *PENDING)
_INCOMPLETE = CauseKind.INCOMPLETE_REBALANCE
_BY_ASSIGNOR = (CauseKind.RANGE_REMAINDERS, CauseKind.MIXED_SUBSCRIPTIONS)
_MAX_PARTITIONS = 10_000
"""Partitions above which a survey runs no assignor, because a run takes seconds."""


class ToDo(NamedTuple):
    """Recommended action, as a sentence and in few words.

    ``action`` is None if the text is the general remedy of a cause. ``is_open`` states that only
    the simulation of a plan decides between several actions.
    """

    text: str
    short: str
    action: EffectiveAction | None = None
    is_open: bool = False

    def __str__(self) -> str:
        return f"{self.text[:1].upper()}{self.text[1:]}."


NOTHING = ToDo("nothing", "nothing")
_SEE_PLAN = ToDo(
    "run kassay plan, which simulates restarts and assignors and names the best one",
    "run kassay plan",
    is_open=True,
)


def to_do(
    cause: Cause | None,
    actions: Sequence[EffectiveAction],
    verdict: Verdict,
    finding: Cause | None = None,
    *,
    is_interrupted: bool = False,
) -> ToDo:
    """Return the best effective action or, without one, the remedy of the cause or finding."""
    kind, first = None if cause is None else cause.kind, next(iter(actions), None)
    if kind is None and not verdict.moves:
        return NOTHING if finding is None else ToDo(finding.remedy, finding.short_remedy)
    if is_contradicted(cause, verdict):
        actions, first = (), None
    elif kind in (*_LOST, CauseKind.CONTRADICTION):
        # A change of the assignor is no answer to a rebalance that did not happen.
        first = next((one for one in actions if not one.changes_assignor), None)
    if first is not None and kind is not _INCOMPLETE:
        lowest = min(actions, key=lambda one: one.makespan)
        is_lower = FACTORS["makespan"] * lowest.makespan < first.makespan
        further = f"; {lowest.short} for a lower maximum load" if is_lower else ""
        return ToDo(f"{first.text}{further}", first.short, first)
    is_open = actions or verdict.placed or is_interrupted or (cause and cause.is_slight)
    if cause is None or (kind in (*_LOST, *_BY_ASSIGNOR) and verdict.moves and not is_open):
        # The note on actions has the reason.
        cause = Cause(CauseKind.LOCAL_OPTIMUM, "")
    return ToDo(cause.remedy, cause.short_remedy)


def is_contradicted(cause: Cause | None, verdict: Verdict) -> bool:
    """Return whether the source contradicts an assumption that the user must check."""
    return verdict.condition is not None and cause is not None and cause.kind == "contradiction"


class Reading(NamedTuple):
    """Result of a plan, its cause and its action, for one assumption about subscriptions."""

    solution: Solution
    assignment: Assignment
    verdict: Verdict
    current: AssignmentMetrics
    planned: AssignmentMetrics
    limiting: LimitingPartition | None
    cause: Cause | None
    finding: Cause | None
    to_do: ToDo


def other_text(shown: Any, other: Any) -> str | None:
    """Describe the other reading of a group, or return None without another cause or action.

    Both have a cause, an action and a verdict: readings, plans or surveyed groups.
    """
    if other is None:
        return None
    kinds = {one.cause and one.cause.kind for one in (shown, other)}
    now, then = shown.to_do, other.to_do
    is_same = now.short == then.short or now.is_open or (then.is_open and now.action)
    if len(kinds) == 1 and is_same:
        return None
    why = "" if len(kinds) == 1 or other.cause is None else f" {other.cause}"
    action_then = "" if then == NOTHING or then.is_open else f" To do then: {then}"
    return f"{other.verdict}{why}{action_then}"


def read_group(
    group: Group,
    levels: Sequence[Level],
    constraints: Sequence[Constraint] = (),
    *,
    limits: SearchLimits,
    seed: int = 0,
    forecasts: Sequence[Forecast] = (),
) -> Reading:
    """Find the result, the cause and the action that a plan of the group reports.

    ``forecasts`` are the results of `change_forecasts`. Without them, nothing is simulated, to save
    time: the action can then be to make a plan. Raise LookupError if no assignment is found.
    """
    solution = solve(group, levels=levels, constraints=constraints, limits=limits, seed=seed)
    verdict, limiting = verdict_of(group, solution, levels, constraints), limiting_partition(group)
    if solution.assignment is None or verdict is None:
        raise LookupError("; ".join(solution.conflict) or "no assignment found within the limits")
    planned, current = solution.assignment, keep_owners(group)
    cause = find_cause(group, planned, levels=levels, limiting=limiting, limits=limits)
    found = Reading(
        solution=solution,
        assignment=planned,
        verdict=verdict,
        current=assignment_metrics(group, current),
        planned=assignment_metrics(group, planned),
        limiting=limiting,
        cause=cause,
        finding=finding_of(group),
        to_do=_SEE_PLAN,
    )
    rules = (*group_constraints(group), *constraints)
    return found._replace(to_do=_quick_to_do(group, found, levels, rules, forecasts))


def _quick_to_do(
    group: Group,
    found: Reading,
    levels: Sequence[Level],
    rules: Sequence[Constraint],
    forecasts: Sequence[Forecast],
) -> ToDo:
    """Return the action that a plan recommends, or the possible actions without ``forecasts``."""
    cause, kind = found.cause, None if found.cause is None else found.cause.kind
    is_uneven = found.planned.measures != found.current.measures or has_lost_rebalance(group)
    if group.partition_count > _MAX_PARTITIONS and is_uneven and not forecasts:
        return _SEE_PLAN
    runs = assignors.DEFAULT_ASSIGNORS if is_uneven and group.members else ()
    actions = effective_actions(
        group,
        current=found.current,
        planned=found.planned,
        outcomes=[rebalance(group, one, rules=rules) for one in runs],
        forecast=lambda _: forecasts if is_uneven else (),
        levels=levels,
        rules=rules,
        is_pending=kind in PENDING,
    )
    is_known = not is_uneven or not is_simulated(group) or is_contradicted(cause, found.verdict)
    if forecasts or is_known:
        return to_do(cause, actions, found.verdict, found.finding)
    if cause is not None and (cause.is_slight or kind is _INCOMPLETE):
        return ToDo(cause.remedy, cause.short_remedy)
    keeps = kind in PENDING or any(not one.changes_assignor for one in actions)
    if cause is not None and keeps and kind in (*_LOST, CauseKind.CONTRADICTION):
        if kind not in PENDING:
            cause = Cause(CauseKind.PENDING_REBALANCE, "")
        text = f"{cause.remedy}; kassay plan names the cheapest way"
        return ToDo(text, cause.short_remedy, is_open=True)
    is_circular = identify_assignor(group).port in CIRCULAR
    offered = default_assignors(group, Configuration.of(group))
    named = [one for one in actions if one.configuration in offered]
    if kind not in _BY_ASSIGNOR or not is_circular or not named:
        return _SEE_PLAN
    *others, last = (assignors.kafka_name(str(one.configuration)) for one in named)
    text = f"switch the assignor to {' or '.join(filter(None, (', '.join(others), last)))}"
    text += "; kassay plan compares their costs" if others else ""
    return ToDo(text, "switch the assignor" if others else named[0].short, is_open=bool(others))
