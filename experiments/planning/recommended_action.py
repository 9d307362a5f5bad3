"""Choose the action that plans and surveys recommend for a group."""

from collections.abc import Sequence
from typing import NamedTuple

from kassay.experiments.planning.cause_evidence import CIRCULAR, Cause, CauseKind
from kassay.experiments.planning.change_forecast import default_assignors
from kassay.experiments.planning.effective_actions import (
    AssignmentMetrics,
    RecommendedAction,
    effective_actions,
    is_simulated,
    rebalance,
)
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_result import Verdict, has_lost_rebalance
from kassay.experiments.prediction.scenario import Configuration
from kassay.reference import assignors
from kassay.reference.model.group import Group
from kassay.solver.evaluation import group_constraints
from kassay.solver.objective import Level

PENDING = (CauseKind.PENDING_REBALANCE, CauseKind.STATIC_MEMBERS)
_LOST = (CauseKind.NO_OWNER, *PENDING)
_INCOMPLETE = CauseKind.INCOMPLETE_REBALANCE
_BY_ASSIGNOR = (CauseKind.RANGE_REMAINDERS, CauseKind.MIXED_SUBSCRIPTIONS)
_MAX_PARTITIONS = 10_000
"""Partitions above which a survey runs no assignor, because a run takes seconds."""


class ToDo(NamedTuple):
    """Recommended action as a sentence, and in few words.

    ``action`` is None if the text is the general remedy of a cause.
    """

    text: str
    short: str
    action: RecommendedAction | None = None

    def __str__(self) -> str:
        return f"{self.text[:1].upper()}{self.text[1:]}."


NOTHING = ToDo("nothing", "nothing")
_SEE_PLAN = ToDo("let kassay plan compare the restarts and assignors", "run kassay plan")


def to_do(
    cause: Cause | None,
    actions: Sequence[RecommendedAction],
    verdict: Verdict,
    *,
    is_interrupted: bool = False,
) -> ToDo:
    """Return the best effective action, or the general remedy of the cause."""
    kind, first = None if cause is None else cause.kind, next(iter(actions), None)
    if kind is None and not verdict.moves:
        return NOTHING
    if kind in (*_LOST, CauseKind.CONTRADICTION):
        # A change of the assignor is no answer to a rebalance that did not happen.
        first = next((one for one in actions if not one.changes_assignor), None)
    if first is not None and first.metrics is not None and kind is not _INCOMPLETE:
        return _under(verdict.condition, first.text, first.short)._replace(action=first)
    is_open = actions or verdict.placed or is_interrupted or (cause and cause.is_slight)
    if cause is None or (kind in (*_LOST, *_BY_ASSIGNOR) and verdict.moves and not is_open):
        # The note on actions has the reason.
        cause = Cause(CauseKind.LOCAL_OPTIMUM, "", condition=verdict.condition)
    return _under(cause.condition, cause.remedy, cause.short_remedy)


def _under(condition: str | None, text: str, short: str) -> ToDo:
    return ToDo(text if condition is None else f"if {condition}: {text}", short)


def quick_to_do(
    group: Group,
    cause: Cause | None,
    verdict: Verdict,
    levels: Sequence[Level],
    *,
    current: AssignmentMetrics,
    planned: AssignmentMetrics,
) -> ToDo:
    """Return a recommended action without simulation.

    A simulation takes seconds. Without one, all assignors with low loads are named if the own one
    cannot have lower loads after a restart. Otherwise the action is a plan.
    """
    is_uneven = planned.measures != current.measures or has_lost_rebalance(group)
    if group.partition_count > _MAX_PARTITIONS and is_uneven:
        return _SEE_PLAN
    rules = group_constraints(group)
    runs = assignors.DEFAULT_ASSIGNORS if is_uneven and group.members else ()
    actions = effective_actions(
        group,
        current=current,
        planned=planned,
        makespan=verdict.makespan,
        outcomes=[rebalance(group, one, rules=rules) for one in runs],
        levels=levels,
        rules=rules,
        is_pending=cause is not None and cause.kind in PENDING,
    )
    if not is_uneven or not is_simulated(group):
        return to_do(cause, actions, verdict)
    if cause is not None and (cause.is_slight or cause.kind is _INCOMPLETE):
        return _under(cause.condition, cause.remedy, cause.short_remedy)
    is_circular = identify_assignor(group).port in CIRCULAR
    offered = default_assignors(group, Configuration.of(group))
    named = [one for one in actions if one.configuration in offered]
    if cause is None or cause.kind not in _BY_ASSIGNOR or not is_circular or not named:
        return _SEE_PLAN
    *others, last = (assignors.kafka_name(str(one.configuration)) for one in named)
    text = f"switch the assignor to {' or '.join(filter(None, (', '.join(others), last)))}"
    text += "; kassay plan compares their costs" if others else ""
    return _under(verdict.condition, text, "switch the assignor" if others else named[0].short)
