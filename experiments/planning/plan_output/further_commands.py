"""Commands for a plan and its group, which a plan prints for further use."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from kassay.experiments.planning.group_plan.plan_alternatives import FEW_MOVES
from kassay.experiments.planning.group_plan.plan_result import Plan
from kassay.experiments.planning.preparation.identify_assignor import (
    identify_assignor,
    runs_in_client,
)
from kassay.reference.model.group_annotations import WeightSource

SHOWN_ACTIONS = 3
"""Number of effective actions that a plan shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """Arguments of ``kassay plan`` for a group, to be used in further commands.

    ``source`` has the source and the options of its data. ``selected`` selects the group, and
    ``objective`` has the options of the objective.
    """

    source: tuple[str, ...] = ("SOURCE",)
    selected: tuple[str, ...] = ()
    objective: tuple[str, ...] = ()


NO_ARGUMENTS = PlanArguments()
"""Arguments for a plan whose source is not known."""


def further_commands(plan: Plan, directory: str | None, given: PlanArguments) -> Iterator[str]:
    """Yield commands for the written plan in ``directory``, if given, and for the plan's source."""
    group = [*given.source, *given.selected]
    arguments = shlex.join([*group, *given.objective])
    if directory is None:
        yield f"kassay plan {arguments} -o plan"
    else:
        yield f"kassay compare {shlex.quote(f'{directory}/after.jsonl')} --format table"
    if plan.movement > FEW_MOVES:
        few = f"--max-moves {FEW_MOVES} -o plan-{FEW_MOVES}"
        yield f"kassay plan {arguments} {few}"
    if has_forecast(plan):
        own = identify_assignor(plan.group).name
        current = "" if own is not None else " --current ASSIGNOR"
        yield f"kassay forecast {shlex.join(group)}{current} --format table"
    if plan.group.weight_source is not WeightSource.LAG:
        like = "" if plan.group.has_equal_speeds else " --like MEMBER"
        yield f"kassay what-if {arguments} --members +0..+2{like} --format table"


def has_forecast(plan: Plan) -> bool:
    """Return whether an effective action is a change that ``kassay forecast`` simulates."""
    own = identify_assignor(plan.group)
    is_known = own.name is None or (own.port is not None and runs_in_client(own.port))
    return is_known and any(one.changes_assignor for one in plan.actions[:SHOWN_ACTIONS])
