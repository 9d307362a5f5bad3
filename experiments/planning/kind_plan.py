"""Plan share groups, Streams applications and Connect clusters.

The matrix counts tasks by place and topic. Places are workers, threads or processes; topics can be
connectors or subtopologies. The planned state is always the simulated result of an action.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from io import StringIO
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from kassay.experiments.kinds import group_kind
from kassay.experiments.kinds.registry import KINDS
from kassay.experiments.planning.plan_result import short_names, shorten
from kassay.experiments.plotting.page_templates import environment, escape_markdown
from kassay.experiments.prediction.predict import Distribution
from kassay.reference.documents.files import write_csv
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.group import Member
from kassay.solver.limits import SearchLimits

_TEMPLATES = Path(__file__).parent / "templates"
PAGE, TICKET, TEXT = "kind_plan.html.j2", "kind_ticket.md.j2", "kind_summary.txt.j2"
"""Templates for the HTML page, the ticket and the text output of a plan."""
_OMITTED = ("movement", "moves", "stopped_ms", "replaced_copies", "unused_directories")
"""Ends of the names of measures of events, which a state without an event lacks."""
_LOAD = "maximum load"
_SHOWN_ACTIONS = 3
_COLUMNS, _PAGE_COLUMNS = 6, 40
"""Maximum number of topics in the matrix of a text output, and of a page."""
Move = tuple[tuple[str, int], str | None, str]
"""Task, the place that loses it (None if it has none), and the place that gets it."""
_Rank = tuple[Fraction | int, ...]


@dataclass(frozen=True, slots=True)
class KindState:
    """Assignment of a share group, Streams application or Connect cluster.

    ``answer`` has the tasks or partitions per member, process or worker, in the JSON format.
    """

    document: KindDocument
    answer: Mapping[str, Any]
    measures: Sequence[group_kind.KindMeasure]
    invalid: Sequence[str]

    @classmethod
    def of(cls, document: KindDocument, limits: SearchLimits) -> "KindState":
        """Compare the current assignment in a document with the optimum."""
        kind = KINDS[document.kind]
        current = kind.current_state(document)
        compared = kind.compare(current.document, current.answer, limits)[-1]
        measures = [one for one in compared.measures if not one.name.endswith(_OMITTED)]
        return cls(current.document, _answer(kind, current.answer), measures, compared.invalid)

    @property
    def places(self) -> group_kind.Places:
        """Return the active tasks or partitions of each member, process or worker."""
        return {place: group_kind.tasks_of(own) for place, own in self.answer.items()}

    @property
    def loads(self) -> dict[str, dict[str, int]]:
        """Return the numbers of tasks or partitions of each member, process or worker."""
        return {
            place: {"partitions": len(own)}
            if isinstance(own, list)
            else {
                key: len(entries) if isinstance(entries, list) else sum(map(len, entries.values()))
                for key, entries in own.items()
            }
            for place, own in self.answer.items()
        }

    @property
    def matrix(self) -> dict[str, dict[str, int]]:
        """Count the tasks or partitions in `places` by topic, connector or subtopology."""
        return {place: dict(Counter(t for t, _ in own)) for place, own in self.places.items()}

    @property
    def above(self) -> list[group_kind.KindMeasure]:
        """Return the measures for which a lower value is known."""
        return [one for one in self.measures if one.is_above]


@dataclass(frozen=True, slots=True)
class PageTable:
    """Table for a page or text output, with names in the first column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def csv(self) -> str:
        """Convert the table to CSV."""
        return write_csv(self.columns, self.rows)

    def markdown(self, escape: Callable[[str], str] = str) -> str:
        """Return the table as aligned Markdown text."""
        # Rich is slow to import.
        from rich.box import MARKDOWN  # noqa: PLC0415
        from rich.console import Console  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415

        # Names can contain [ ] and :word:, which Rich would interpret.
        console = Console(file=StringIO(), width=10**6, markup=False, emoji=False)
        table = Table(*map(escape, self.columns), box=MARKDOWN)
        for row in self.rows:
            table.add_row(*("" if cell is None else escape(str(cell)) for cell in row))
        with console.capture() as found:
            console.print(table)
        return found.get().strip()


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """Action of an operator, with the states before and after it."""

    action: group_kind.KindAction
    before: tuple[group_kind.Places, _Rank]
    after: Sequence[tuple[group_kind.Places, _Rank]]

    @property
    def is_effective(self) -> bool:
        """Return whether the action improves at least three of four samples, and worsens none.

        An action without simulated results is effective.
        """
        ranks, now = [rank for _, rank in self.after], self.before[1]
        is_better = 4 * sum(one < now for one in ranks) >= 3 * len(ranks)
        return is_better and all(one <= now for one in ranks)

    @property
    def order(self) -> tuple[object, ...]:
        """Return the sort key of the action: its worst result, then its highest cost."""
        costs = [tuple(own.values()) for _, own in self.action.outcomes]
        return max((rank for _, rank in self.after), default=()), max(costs, default=())

    def predicted(self) -> dict[str, Distribution]:
        """Return the maximum load, moves and costs as distributions over the samples."""
        found: dict[str, list[float]] = {}
        for (places, _), (_, costs) in zip(self.after, self.action.outcomes, strict=True):
            moves = [one for one in _moves(self.before[0], places) if one[1] is not None]
            values = {_LOAD: max(map(len, places.values())), "move": len(moves), **costs}
            for name, value in values.items():
                found.setdefault(name, []).append(value)
        return {name: Distribution.of(values) for name, values in found.items()}

    def __str__(self) -> str:
        parts = [v.count(k) if k != _LOAD else f"{k} {v}" for k, v in self.predicted().items()]
        return f"{self.action.text}: {', '.join(parts)}" if parts else self.action.text

    def record(self) -> dict[str, object]:
        """Convert the action to JSON."""
        return {"action": self.action.text, "commands": list(self.action.commands)} | {
            name.replace(" ", "_") + ("" if name == _LOAD else "s"): one.record()
            for name, one in self.predicted().items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPlan:
    """Plan with the causes of an imbalance, effective actions and a planned state.

    ``planned`` and ``moves`` are a simulated result of the first action that moves tasks.
    """

    kind: group_kind.GroupKind
    current: KindState
    planned: KindState | None = None
    causes: tuple[group_kind.KindCause, ...] = ()
    actions: tuple[PlannedAction, ...] = ()
    moves: tuple[Move, ...] = ()

    @property
    def id(self) -> str | None:
        """Return the id of the document."""
        return self.current.document.id

    @property
    def short(self) -> dict[str, str]:
        """Return short names of the members, processes or workers."""
        return short_names(Member(place, ()) for place in self.current.answer)

    @property
    def verdict(self) -> str:
        """Return the result of the plan in one sentence."""
        return _text("kind_verdict.txt.j2", plan=self)

    def cause_texts(self) -> list[str]:
        """Return one sentence per cause, with the condition that results from assumed data."""
        condition = self.current.document.condition
        texts = [shorten(cause.text, self.short) for cause in self.causes]
        return [
            f"If {condition}: {text[:1].lower()}{text[1:]}"
            if condition and cause.is_assumed
            else text
            for cause, text in zip(self.causes, texts, strict=True)
        ]

    @property
    def summary(self) -> str:
        """Return the first cause, the action or the remedy, and the result of the plan."""
        causes = [f"{one} To do: {self.to_do}." for one in self.cause_texts()[:1]]
        return " ".join([*causes, self.verdict])

    @property
    def to_do(self) -> str:
        """Return the best action. Without one, return the remedy of the first cause, if any."""
        actions = [one.action.text for one in self.actions]
        return next(iter([*actions, *(one.remedy for one in self.causes)]), "")

    def record(self) -> dict[str, object]:
        """Convert the plan to JSON."""
        planned = {one.name: one.value for one in self.planned.measures} if self.planned else {}
        texts = zip(self.causes, self.cause_texts(), strict=True)
        causes = [{"kind": cause.kind, "text": text} for cause, text in texts]
        return {
            "id": self.id,
            "kind": str(self.kind.kind),
            self.kind.places: len(self.current.loads),
            "verdict": self.verdict,
            "condition": self.current.document.condition,
            "cause": causes[0] if causes else None,
            "further_causes": causes[1:],
            "to_do": self.to_do or "nothing",
            "actions": [one.record() for one in self.actions],
            "measures": {
                one.name: {"value": one.value, "minimum": one.minimum, "bound": one.bound}
                | ({"planned": planned[one.name]} if one.name in planned else {})
                for one in self.current.measures
            },
            "matrix": self.current.matrix,
            "planned_matrix": None if self.planned is None else self.planned.matrix,
            "moves": [
                {"topic": task[0], "partition": task[1], "from": source, "to": target}
                for task, source, target in self.moves
            ],
        }

    def matrix(self, columns: int) -> PageTable:
        """Return a table of the numbers of tasks, with ``current → planned`` in changed cells.

        At most ``columns`` topics are shown: those with changes, then the most uneven ones.
        """
        before, after = self.current, self.planned or self.current
        pairs = _columns(before.matrix, after.matrix)
        order = sorted(pairs, key=lambda name: _order(pairs[name]))[:columns]
        shown = {name: column for name, column in pairs.items() if name in order}
        loads = _columns(before.loads, after.loads)
        shown |= {f"all {name}": column for name, column in loads.items()}
        places = [self.short[place] for place in before.answer]
        cells = [
            [str(old) if old == new else f"{old} → {new}" for old, new in column]
            for column in shown.values()
        ]
        rows = list(zip(places, *cells, strict=True))
        return PageTable((self.kind.places, *shown), rows)


def plan_kind(document: KindDocument, *, limits: SearchLimits) -> KindPlan:
    """Plan a share group, Streams application or Connect cluster."""
    kind, current = KINDS[document.kind], KindState.of(document, limits)
    before = _ranked(kind, current.document)
    given = group_kind.KindEvidence(
        current.document,
        current.places,
        kind.sizes(current.document),
        {one.name for one in current.above},
    )
    simulated = [
        PlannedAction(one, before, [_ranked(kind, each) for each, _ in one.outcomes])
        for one in kind.actions(given)
    ]
    actions = sorted((one for one in simulated if one.is_effective), key=attrgetter("order"))
    moving = next((one for one in actions if one.after), None)
    causes = tuple(kind.causes(replace(given, is_improvable=moving is not None)))
    plan = KindPlan(kind=kind, current=current, causes=causes, actions=tuple(actions))
    if moving is None:
        return plan
    ranks = [rank for _, rank in moving.after]
    usual = ranks.index(Counter(ranks).most_common(1)[0][0])
    planned = KindState.of(moving.action.outcomes[usual][0], limits)
    return replace(plan, planned=planned, moves=_moves(before[0], moving.after[usual][0]))


def _answer(kind: group_kind.GroupKind, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    places: Mapping[str, Any] = (
        answer["steps"][-1]["state"] if "steps" in answer else answer[kind.places]
    )
    return places


def _ranked(kind: group_kind.GroupKind, document: KindDocument) -> tuple[group_kind.Places, _Rank]:
    """Return the tasks of each place, and the values that actions must lower.

    These values are the numbers of tasks without a place and of idle threads or workers, then sums
    of squares: of tasks per place, of tasks per topic and place, and of connectors per worker.
    """
    answer = _answer(kind, kind.current_state(document).answer)
    places = {place: group_kind.tasks_of(own) for place, own in answer.items()}
    threads = kind.threads(document)
    loads = [(len(own), threads.get(place, 1)) for place, own in places.items()]
    topics = [Counter(name for name, _ in own) for own in places.values()]
    connectors = [own["connectors"] for own in answer.values() if "connectors" in own]
    return places, (
        sum(kind.sizes(document).values()) - len({task for own in places.values() for task in own}),
        sum(max(0, count - load) for load, count in loads),
        sum(Fraction(load**2, count) for load, count in loads),
        sum(number**2 for one in topics for number in one.values()),
        sum(len(one) ** 2 for one in connectors),
    )


def _moves(before: group_kind.Places, after: group_kind.Places) -> tuple[Move, ...]:
    """Return the tasks that move, with tasks without a place first."""
    owners = {task: place for place, own in before.items() for task in own}
    moves = [(task, owners.get(task), place) for place, own in after.items() for task in own]
    moves = [one for one in moves if one[1] != one[2]]
    return tuple(sorted(moves, key=lambda one: (one[1] is not None, one)))


_Table = Mapping[str, Mapping[str, int]]
_Column = list[tuple[int, int]]


def _columns(before: _Table, after: _Table) -> dict[str, _Column]:
    names = dict.fromkeys(chain.from_iterable([*before.values(), *after.values()]))
    return {
        name: [(row.get(name, 0), after[place].get(name, 0)) for place, row in before.items()]
        for name in names
    }


def _order(column: _Column) -> tuple[bool, int]:
    now = [old for old, _ in column]
    return all(old == new for old, new in column), min(now) - max(now)


def render_kind_plan(
    plan: KindPlan, template: str, *, commands: Sequence[str] = (), **values: object
) -> str:
    """Render a plan with a template for a page, a ticket or text.

    ``commands`` are appended to the commands of the actions. For a page, ``values`` are the
    simulated costs of ``events`` with their ``recommendation`` and ``assumption``.
    """
    planned = {one.name: one.value for one in plan.planned.measures} if plan.planned else {}
    measures = [
        (one.name.replace("_", " "), one.value, planned.get(one.name), one.minimum, one.bound)
        for one in plan.current.measures
    ]
    moves = [
        (plan.kind.separator.join(map(str, task)), plan.short.get(source or ""), plan.short[target])
        for task, source, target in plan.moves
    ]
    moving = next((one for one in plan.actions if one.after), None)
    own = [one.action.commands for one in plan.actions if one is moving or not one.after]
    return _text(
        template,
        plan=plan,
        escape=escape_markdown,
        commands=[*chain.from_iterable(own), *commands],
        causes=plan.cause_texts(),
        actions=[shorten(str(one), plan.short) for one in plan.actions[:_SHOWN_ACTIONS]],
        matrix=plan.matrix(_PAGE_COLUMNS if template == PAGE else _COLUMNS),
        measures=PageTable(("measure", "current", "planned", "minimum", "bound"), measures),
        moves=PageTable(("task", "from", "to"), moves),
        **{"events": None, "recommendation": None, "assumption": None, **values},
    )


def _text(template: str, **values: object) -> str:
    jinja = environment(_TEMPLATES, autoescape=template == PAGE)
    return jinja.get_template(template).render(**values)
