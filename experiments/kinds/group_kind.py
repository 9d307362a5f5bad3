"""Define the functions and results of kinds of groups."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from kassay.experiments.implementations.run_assignor import DocumentRunResult, Ending
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.solver.certificate.certificate import value_of
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import requested_levels
from kassay.solver.solution import Solution


@dataclass(frozen=True, slots=True)
class KindMeasure:
    """Value of one measure for an answer, and the minimum value of the measure.

    The minimum is None if the answer does not meet the measure's condition in docs/kinds.md.
    """

    name: str
    value: int
    minimum: int | None  # best known value
    bound: int | None  # proven lower bound
    optimum: int | None = None  # in the optimum of all levels in their order, if it is computed

    @property
    def is_above(self) -> bool:
        """Return whether a lower value is known."""
        return self.minimum is not None and self.value > self.minimum

    @property
    def is_unproven(self) -> bool:
        """Return whether no lower value is known, but one may exist."""
        return not self.is_above and self.bound is not None and self.value > self.bound


@dataclass(frozen=True, slots=True)
class UnnecessaryMove:
    """Move in an assignment that the optimum, with fewer moves, does not make."""

    partition: tuple[str, int]
    owners: tuple[str, ...]
    member: str


@dataclass(frozen=True, slots=True)
class KindComparison:
    """Measures and unnecessary moves of an assignment."""

    measures: tuple[KindMeasure, ...]
    unnecessary: tuple[UnnecessaryMove, ...] = ()
    step: int | None = None
    invalid: tuple[str, ...] = ()


def measure_level(
    group: Group,
    answer: Assignment,
    solution: Solution,
    name: str,
    chosen: Mapping[str, int],
    *,
    shown: str | None = None,
) -> KindMeasure:
    """Compare an answer with a solution on one level of the objective.

    ``chosen`` has the values of the measures in the optimum of all levels. ``shown`` is the name of
    the measure, by default the name of the level.
    """
    level = solution.level(name)
    value = value_of(group, answer, requested_levels(group, name)[0])
    shown = shown or name
    return KindMeasure(shown, value, level.value, level.bound, chosen.get(shown))


def unnecessary_moves(
    group: Group, answer: Assignment, solution: Solution
) -> tuple[UnnecessaryMove, ...]:
    """Return the moves in an answer that a solution with fewer moves does not make."""
    optimum, levels = solution.assignment, requested_levels(group, "movement")
    if optimum is None or value_of(group, answer, levels[0]) <= solution.movement.value:
        return ()
    holders: dict[tuple[str, int], list[str]] = {}
    for member in group.members:
        for tp in (*member.owned, *member.holds):
            if tp.topic in member.subscription:
                holders.setdefault(tp, []).append(member.id)
    return tuple(
        UnnecessaryMove((tp.topic, tp.partition), tuple(holders[tp]), member)
        for member, partitions in answer.items()
        for tp in partitions
        if tp in holders and member not in holders[tp] and tp not in set(optimum[member])
    )


def compare_balance(
    group: Group, answer: Assignment, solution: Solution, chosen: Mapping[str, int]
) -> tuple[list[KindMeasure], tuple[UnnecessaryMove, ...]]:
    """Compare the loads and moves of an answer with the optimum.

    Also return the unnecessary moves. Without minimum imbalance, the fewest moves are unknown.
    """
    loads = measure_level(group, answer, solution, "sum_of_squares", chosen)
    moves = measure_level(group, answer, solution, "movement", chosen)
    if loads.value > solution.imbalance.bound:
        return [loads, replace(moves, minimum=None, bound=None)], ()
    return [loads, moves], unnecessary_moves(group, answer, solution)


Answer = Mapping[str, Any]
"""Assignment as JSON, by an assignor or of current members (see docs/kinds.md)."""
Record = Mapping[str, Any]
"""JSON object."""


@dataclass(frozen=True, slots=True)
class CurrentState:
    """Current assignment in a document, in the format of an assignor's answer."""

    document: KindDocument
    answer: Answer


Places = Mapping[str, Sequence[tuple[str, int]]]
"""Tasks or partitions per place, as pairs of a name and a number, such as ("orders", 0)."""


def tasks_of(own: Any) -> list[tuple[str, int]]:
    """Return the active tasks or partitions of one member, process or worker."""
    tasks = own if isinstance(own, list) else own.get("tasks", own.get("active", ()))
    if isinstance(tasks, Mapping):
        return [(name, number) for name, numbers in tasks.items() for number in numbers]
    # A task is a name such as archive-0 or 1_3, or a list of a topic and a number.
    pairs = (re.split(r"[-_](?=\d+$)", one) if isinstance(one, str) else one for one in tasks)
    return [(name, int(number)) for name, number in pairs]


# On Spark workers, this package is in an archive.
_CAUSES = json.loads(files(__package__).joinpath("causes.json").read_text(encoding="utf-8"))
"""Sentence and remedy by kind of cause."""


@dataclass(frozen=True, slots=True)
class KindCause:
    """Cause of a problem, such as imbalance or missing tasks, and its remedy.

    ``is_assumed`` is true if the sentence depends on data that the source may not show.
    """

    kind: str
    text: str
    remedy: str
    is_assumed: bool = False

    @classmethod
    def of(cls, kind: str, **values: object) -> "KindCause":
        """Create a cause from ``causes.json``, with ``values`` inserted into its sentence."""
        fields = _CAUSES[kind]
        return cls(kind, **{**fields, "text": fields["text"].format(**values)})


KindOutcome = tuple[KindDocument, Mapping[str, float]]
"""Document after an action, and the costs of the action, such as {"rebalance": 2}."""


@dataclass(frozen=True, slots=True)
class KindAction:
    """Action of an operator, and the simulated results of the action.

    Outcomes are samples that differ in the random ids of workers. Without outcomes, no task moves.
    """

    text: str
    outcomes: Sequence[KindOutcome] = ()
    commands: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class KindEvidence:
    """Data from which the causes of problems in the current state are found.

    ``sizes`` has the number of tasks per connector or subtopology. ``is_improvable`` is true if a
    simulated action improves the state.
    """

    document: KindDocument
    places: Places
    sizes: Mapping[str, int]
    above: set[str]  # measures above their minimum
    is_improvable: bool = False

    def missing(self) -> list[tuple[str, int]]:
        """Return the tasks that no member, process or worker has."""
        placed = {task for own in self.places.values() for task in own}
        each = ((name, number) for name, size in self.sizes.items() for number in range(size))
        return [task for task in each if task not in placed]

    def loads(self) -> str:
        """Format the minimum and maximum number of tasks per place, such as ``2 to 5``."""
        loads = [len(own) for own in self.places.values()]
        return f"{min(loads)} to {max(loads)}"

    def most_uneven(self) -> str:
        """Describe the connector or subtopology with the least even distribution of tasks."""
        texts: dict[int, str] = {}
        for name in self.sizes:
            own = {place: [t for t, _ in tasks].count(name) for place, tasks in self.places.items()}
            most, least = max(own, key=own.__getitem__), min(own, key=own.__getitem__)
            text = f"{name} are uneven, {own[most]} on {most} and {own[least]} on {least}"
            texts.setdefault(own[most] - own[least], text)
        return texts[max(texts)]


def listed(names: Sequence[str]) -> str:
    """Format up to three names and the number of remaining names."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@dataclass(frozen=True, slots=True)
class StableRun:
    """Result of running an assignor until its answer is stable.

    ``measures`` are about the rebalances, and have no minimum. If no answer is stable, ``detail``
    is the reason.
    """

    ending: Ending
    detail: str | None = None
    rebalances: int = 1
    compare: Callable[[SearchLimits], KindComparison] | None = None
    measures: Sequence[KindMeasure] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRequest:
    """Settings, assignors and times that a forecast simulates.

    ``changes`` has values per setting, and each combination of them is compared with the current
    settings. By default, the kind selects the changes, and the forecast recommends one of them.
    """

    limits: SearchLimits
    downtime_ms: int = 30_000  # from the stop of a worker to its return
    pause_ms: int = 30_000  # from the return of a worker to the stop of the next one
    assignors: Sequence[str] = ()  # compared with the current one
    changes: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class KindForecast:
    """Forecast as JSON, with a sentence that summarises it."""

    record: Record
    sentence: str


ForecastFunction = Callable[[KindDocument, ForecastRequest], KindForecast]


def render_sentence(kind: Kind, **values: object) -> str:
    """Render the summary sentence of a forecast from ``forecast_sentences.j2``."""
    # Spark workers import this module without Jinja.
    from kassay.experiments.plotting.page_templates import environment  # noqa: PLC0415

    jinja = environment(Path(__file__).parent / "templates", autoescape=False)
    macro: Any = getattr(jinja.get_template("forecast_sentences.j2").module, kind)
    return str(macro(**values)).strip()


def integer_setting(key: str, text: str, *, minimum: int = 0) -> int:
    """Parse an integer value of --set, or raise UsageError."""
    if not text.isdecimal() or int(text) < minimum:
        raise UsageError(f"--set: {key} must be an integer of at least {minimum}, got {text!r}")
    return int(text)


def ending_without_answer(result: DocumentRunResult) -> tuple[Ending, str]:
    """Return the ending of a run without a valid answer, and its reason."""
    if result.livelock is not None:
        return Ending.NONTERMINATING, result.livelock
    if result.answer is not None:
        return Ending.INVALID, str(result.answer["error"])
    return Ending.FAILED, ": ".join(filter(None, (result.failed, result.reason)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKind:
    """Kind of groups, such as Connect clusters, with the functions that process them.

    ``places`` is the key in a document of the members, processes or workers, ``topics`` the key of
    the topics, subtopologies or connectors. The cells of a row of ``event_rows`` are: setting,
    event, rebalances, task starts, stopped seconds, stopped seconds per task, minutes of probing
    rebalances, state moves, and fewest state moves.
    """

    kind: Kind
    title: str
    places: str
    topics: str
    no_action: str  # why no action of an operator helps
    # Compare an answer with the optimum: once, or once per stable state.
    compare: Callable[[KindDocument, Answer, SearchLimits], list[KindComparison]]
    current_state: Callable[[KindDocument], CurrentState]
    separator: str = "_"  # of the names of tasks
    sizes: Callable[[KindDocument], Mapping[str, int]] = lambda _: {}  # tasks per topic
    threads: Callable[[KindDocument], Mapping[str, int]] = lambda _: {}  # per place; default 1
    causes: Callable[[KindEvidence], Iterator[KindCause]] = lambda _: iter(())
    actions: Callable[[KindEvidence], Iterator[KindAction]] = lambda _: iter(())
    # None: the first answer of an assignor is stable.
    run_until_stable: Callable[[KindDocument, str], StableRun] | None = None
    # Measures of a stable answer that have no minimum.
    answer_measures: Callable[[KindDocument, Answer], Sequence[KindMeasure]] = lambda *_: ()
    forecast: ForecastFunction | None = None
    no_forecast: str | None = None  # reason
    settings: Sequence[str] = ()  # that a forecast can change
    assumption: str | None = None  # the simulated events in one sentence
    event_rows: Callable[[Record], Iterator[Sequence[object]]] = lambda _: iter(())
