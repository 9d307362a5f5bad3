"""Create the sentences and values of a plan for pages, tickets and texts."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.planning.cause_evidence import TopicShare, finding_of, worst_share
from kassay.experiments.planning.effective_actions import compared_measures
from kassay.experiments.planning.identify_assignor import (
    DEFAULT_LIST,
    identify_assignor,
    runs_in_client,
)
from kassay.experiments.planning.plan import (
    ALMOST_BALANCED,
    BALANCED,
    FEW_MOVES,
    RECOMMENDED,
    Plan,
    PlanOption,
)
from kassay.experiments.planning.plan_result import level_words, short_names, shorten
from kassay.experiments.planning.recommended_action import NOTHING, other_text
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.model import group_remarks
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Group, WeightSource
from kassay.reference.model.load_metrics import Measure, host_units, member_units, shown
from kassay.solver.constraints import MaxMoves
from kassay.solver.counting_bounds import level_bound
from kassay.solver.objective import HOST_LEVELS, HostImbalance, Movement, TopicSpread
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue

_TEMPLATES = Path(__file__).parent / "templates"
EVEN_TOPICS = "--even-topics"
"""Option of ``kassay plan`` that divides each topic evenly, then balances the loads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """Arguments of ``kassay plan``, from which further commands are built.

    ``source`` has the name of the source and the options for its data, ``selected`` the options
    that select the group, and ``objective`` the options of the objective.
    """

    source: tuple[str, ...] = ("SOURCE",)
    selected: tuple[str, ...] = ()
    objective: tuple[str, ...] = ()

    def with_levels(self, *levels: str) -> str:
        """Return the command for a plan of the same group with other levels."""
        kept, given = list[str](), iter(self.objective)
        for name in given:
            if name == "--level":
                next(given, None)
            elif name != EVEN_TOPICS:
                kept.append(name)
        return shlex.join(["kassay", "plan", *self.source, *self.selected, *kept, *levels])


_NO_ARGUMENTS = PlanArguments()


def verdict(plan: Plan, *, is_complete: bool = True) -> str:
    """Describe the result of a plan, with its test on time windows and its conditions.

    With windows, the peaks and the hold-out test follow, or precede if the test fails. With
    ``is_complete``, the result under the other assumption follows if its cause or action differs.
    """
    caveat = group_remarks.rebalance_caveat(plan.group) or group_remarks.assignor_caveat(plan.group)
    sentences = [str(plan.verdict)]
    if plan.windows is not None:
        texts = _macros("windows.j2", load=member_units(plan.group).shown)
        sentences = [texts.verdict(plan.windows, plan.group, sentences[0])]
    other = other_text(plan, plan.other_reading) if is_complete else None
    further = (one for one in (other, caveat) if one and one != str(plan.cause))
    return " ".join([*sentences, *further])


def _macros(template: str, **filters: Any) -> Any:
    jinja = environment(_TEMPLATES, autoescape=False)
    jinja.filters.update(filters)
    return jinja.get_template(template).make_module()


def proofs(levels: Iterable[LevelValue], group: Group | None = None) -> str:
    """List the proven levels of a solution, and the others with their bounds.

    The bound of a sum of squares after the maximum load holds for the solution's load and moves.

    Examples
    --------
    >>> proofs([LevelValue("makespan", 7, 5, slack=2), LevelValue("movement", 3, 3)])
    'proven: maximum load within its tolerance, moves'
    >>> proofs([LevelValue("makespan", 7, 7), LevelValue("sum_of_squares", 90, 82)])
    'proven: maximum load; not proven: sum of squares at this maximum load 90 (lower bound 82)'
    """
    proven, others, has_makespan = [], [], False
    for level in levels:
        name = level_words(level.name)
        has_makespan = has_makespan or level.name == Measure.MAKESPAN
        if has_makespan and level.name == Measure.SUM_OF_SQUARES:
            name += " at this maximum load"
        if level.is_proven:
            proven.append(f"{name} within its tolerance" if level.gap else name)
        else:
            others.append(f"{name} {value_text(level, group)}")
    parts = (("proven", proven), ("not proven", others))
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in parts if names)


def option_label(plan: Plan, option: PlanOption) -> str:
    """Return the title of an alternative of a plan."""
    if option.name == RECOMMENDED:
        return "this plan"
    has_limit = any(isinstance(one, MaxMoves) for one in plan.constraints)
    is_unlimited = has_limit and option.name in (BALANCED, ALMOST_BALANCED)
    return option.name + (" without the limit on moves" if is_unlimited else "")


def value_text(level: LevelValue, group: Group | None = None) -> str:
    """Format the value of a level and its bound. The rank of leximax is omitted."""
    is_rank = level.name.endswith(Measure.LEXIMAX)
    value = "" if is_rank else f"{shown(level.name, level.value, group):,} "
    return f"{value}({bound_text(level, group)})"


def bound_text(level: LevelValue | None, group: Group | None = None) -> str:
    """Format the lower bound of a value, or ``proven`` if the value is optimal."""
    if level is None:
        return "not found within the time limit"
    if level.gap == 0:
        return "proven"
    if level.name.endswith(Measure.LEXIMAX):
        return "not proven"
    return f"lower bound {shown(level.name, level.bound, group):,}"


def not_considered(plan: Plan, given: PlanArguments = _NO_ARGUMENTS) -> list[str]:
    """List objectives that the plan ignores, such as racks, with commands that consider them.

    ``given`` has the arguments of the plan, from which the commands are built.
    """
    names = {level.name for level in plan.levels}
    topics = None if TopicSpread.name in names else spread_of_topics(plan)
    least = level_bound(build_problem(plan.group), HostImbalance(Measure.MAKESPAN))
    can_improve = max(plan.current.host_makespan, plan.planned.host_makespan) > least
    text: str = _macros("sentences.j2").not_considered(
        plan,
        given.with_levels,
        ignores_racks="cross_rack" not in names,
        ignores_hosts=names.isdisjoint(HOST_LEVELS) and bool(plan.hosts()) and can_improve,
        has_equal_speeds=host_units(plan.group).has_equal_speeds,
        loads=[
            shown("host_makespan", one.host_makespan, plan.group)
            for one in (plan.current, plan.planned)
        ],
        topics=topics and f"{topics}; divide topics with: {given.with_levels(EVEN_TOPICS)}",
    )
    return text.splitlines()


def spread_of_topics(plan: Plan) -> str | None:
    """Describe the most uneven topic now and in the plan, or return None."""
    now, then = (worst_share(plan.group, one) for one in (keep_owners(plan.group), plan.assignment))
    if now is None and then is None:
        return None
    texts = [_share_text(one, plan.group) for one in (now, then)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} now; in this plan, {texts[1]}"


def _share_text(share: TopicShare | None, group: Group) -> str:
    if share is None:
        return "every topic is divided evenly"
    share = replace(share, member=short_names(group.members)[share.member])
    even = f"{count_of(share.even, 'partition')} per member would be even"
    if share.others:
        verb = "is" if share.others == 1 else "are"
        even += f"; {count_of(share.others, 'further topic')} {verb} uneven"
    return f"{share} ({even})"


def _action_note(plan: Plan) -> str | None:
    actions, own = plan.actions[:SHOWN_ACTIONS], identify_assignor(plan.group)
    measures = compared_measures(plan.current, plan.planned, plan.levels)
    texts, words = _macros("sentences.j2"), list(map(level_words, measures))
    return texts.action_note(plan, actions, own, _has_forecast(plan), words) or None


SHOWN_ACTIONS = 3
"""Number of effective actions that a plan shows."""


def _further_commands(plan: Plan, directory: str | None, given: PlanArguments) -> Iterator[str]:
    group = [*given.source, *given.selected]
    arguments = shlex.join([*group, *given.objective])
    if directory is None:
        yield f"kassay plan {arguments} -o plan"
    else:
        yield f"kassay compare {shlex.quote(f'{directory}/after.jsonl')} --format table"
    if plan.movement > FEW_MOVES and plan.is_recommended:
        yield f"kassay plan {arguments} --max-moves {FEW_MOVES} -o plan-{FEW_MOVES}"
    own = identify_assignor(plan.group)
    if _has_forecast(plan):
        current = [] if own.name else ["--current", DEFAULT_LIST[0]]
        yield f"kassay forecast {shlex.join([*group, *current])} --format table"
    is_simulated = plan.group.members and (own.name is None or own.port is not None)
    if plan.group.weight_source is not WeightSource.LAG and is_simulated:
        first = shlex.quote(plan.group.members[0].id)
        like = "" if plan.group.has_equal_speeds else f" --like {first}"
        objective = [
            part
            for name, value in pairwise(given.objective)
            if name in ("--imbalance", "--tolerance")
            for part in (name, value)
        ]
        changed = shlex.join([*group, *objective])
        yield f"kassay forecast {changed} --members +0..+2{like} --format table"


def _has_forecast(plan: Plan) -> bool:
    own = identify_assignor(plan.group)
    is_known = own.name is None or (own.port is not None and runs_in_client(own.port))
    return is_known and any(one.changes_assignor for one in plan.actions[:SHOWN_ACTIONS])


_MAX_LISTED_STEPS = 40
"""Maximum number of moves in the text of a plan without files."""


def _cause_text(plan: Plan) -> str:
    if plan.cause is not None:
        return str(plan.cause)
    if not plan.is_recommended:
        return "No cause: the plan fails its hold-out."
    finding = finding_of(plan.group)
    is_shown = plan.moves or plan.to_do != NOTHING
    if finding is not None and is_shown and plan.planned.makespan >= plan.current.makespan:
        return str(finding)
    if plan.moves:
        return "No cause that kassay knows explains the loads."
    if plan.condition is not None:
        return "No cause: no moves are planned."  # The result has the condition.
    quality = plan.verdict.quality.replace("that is", "the maximum load is", 1)
    return f"No cause: {quality}."


_SCOPE = "(the source does not show this; all values, bounds and proofs depend on it)"


def plan_summary(plan: Plan, directory: str | None, arguments: PlanArguments) -> dict[str, object]:
    """Return the texts and values that the page, the ticket and the text share.

    ``directory`` is the path of the plan's files.
    """
    group, levels, short = plan.group, plan.solution.levels, short_names(plan.group.members)
    names = [level.name for level in levels]
    before = names[: names.index(Movement.name)]
    other = other_text(plan, plan.other_reading) or ""
    reason = None if plan.limiting_partition is None else str(plan.limiting_partition)
    if reason is not None and plan.constraints:
        reason += " The constraints of the plan do not apply to these values."
    return {
        "cause": shorten(_cause_text(plan), short),
        "to_do": shorten(str(plan.to_do), short),
        "more_members": _macros("sentences.j2").more_members(
            plan.more_members, identify_assignor(group)
        ),
        "verdict": shorten(verdict(plan, is_complete=False), short).replace(
            f"If {plan.condition}:", f"If {plan.condition} {_SCOPE}:", 1
        ),
        "other_subscriptions": shorten(other, short),
        "topics": spread_of_topics(plan) if TopicSpread.name in names else None,
        "quality": plan.verdict.quality,
        "reason": reason,
        "settings": _macros("sentences.j2").settings(plan.to_do.action, identify_assignor(group)),
        "notes": [
            shorten(one, short)
            for one in group_remarks.shown_notes(group)
            if f"{one}." != _cause_text(plan)
        ],
        "target": group_remarks.target_assignment(group),
        "actions": [replace(one, text=shorten(one.text, short)) for one in plan.actions],
        "action_note": _action_note(plan),
        "is_recommended": (one := plan.to_do.action) and one.moves is not None and plan.movement,
        "first_steps": [
            {
                "text": shorten(str(step), short),
                "makespan": [step.units.shown(one) for one in step.makespan],
            }
            for step in plan.steps[:_MAX_LISTED_STEPS]
        ],
        "further_levels": [one for one in levels if one.name not in (*Measure, Movement.name)],
        # A command at the end of a text has no full stop, which would be part of it.
        "not_considered": [
            text if ": kassay " in text else f"{text}." for text in not_considered(plan, arguments)
        ],
        "weights": _macros("sentences.j2").weights(group),
        "assignor": identify_assignor(group, client=plan.client),
        "levels": ", then ".join(_level_text(level, group) for level in levels),
        "proofs": proofs(levels, group),
        "before_moves": " and ".join(map(level_words, before)),
        "further_before_moves": " and ".join(
            level_words(name) for name in before if name != plan.solution.imbalance.name
        ),
        "commands": list(_further_commands(plan, directory, arguments)),
    }


def _level_text(level: LevelValue, group: Group) -> str:
    name, slack = level_words(level.name), shown(level.name, level.slack, group)
    tolerance = f", {slack:,} above the bound allowed" if level.slack else ""
    return f"{name} {value_text(level, group).removesuffix(')')}{tolerance})"
