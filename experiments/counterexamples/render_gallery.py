"""Render galleries of counterexamples, and find the worst groups of a study."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from kassay.experiments.counterexamples.find_counterexample import (
    CaseSearch,
    CounterexampleOptions,
    Shortcoming,
    measure_shortfall,
    reference_assignment,
)
from kassay.experiments.counterexamples.shrinking import GroupSize, size_of
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.run_assignor import run
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.plotting.svg_drawings import assignment_panels
from kassay.experiments.study.output_reader import StudySummary
from kassay.reference.documents import json_codec
from kassay.reference.model.assignment import Assignment, LivelockError, movement
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import leximax, load_vector
from kassay.solver.network.improving_chains import Transfer, explain

_SHOWN_CASES = 5
_SHOWN_ERRORS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryEntry:
    """Entry of a gallery: a counterexample with its assignment and the optimum."""

    group: Group
    kind: str  # see `group_kind`
    severity: Fraction
    cases: int  # number of cases that shrank to this kind
    first_cases: tuple[str, ...]
    verdict: str
    assigned: Assignment | None  # the repeated state if the assignor does not terminate
    optimum: Assignment | None
    explanation: tuple[str, ...]  # transfers that make the assignment optimal, or the other one

    def document(self) -> dict[str, object]:
        """Return the gallery entry as a JSON document."""
        return {
            "id": self.group.id,
            "kind": self.kind,
            "severity": str(self.severity),
            "verdict": self.verdict,
            **size_of(self.group)._asdict(),
            "cases": self.cases,
            "first_cases": list(self.first_cases),
            "assigned": _measured(self.group, self.assigned),
            "optimum": _measured(self.group, self.optimum),
            "explanation": list(self.explanation),
            "group": json_codec.group_document(self.group),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Result of a search for counterexamples: options, counts, gallery entries and errors."""

    options: CounterexampleOptions
    counts: dict[str, int]
    entries: tuple[GalleryEntry, ...]
    errors: tuple[tuple[str, str], ...]  # the first errors: case and description

    def document(self) -> dict[str, object]:
        """Return the gallery as a JSON document."""
        return {
            "options": asdict(self.options) | {"shortcoming": str(self.options.shortcoming)},
            "counts": self.counts,
            "entries": [entry.document() for entry in self.entries],
            "errors": [{"case": case, "error": error} for case, error in self.errors],
        }


def gallery(searches: Iterable[CaseSearch], options: CounterexampleOptions) -> Gallery:
    """Build a gallery with one counterexample per kind of group."""
    ordered = sorted(searches, key=lambda search: _case_key(search.case))
    by_kind: dict[str, list[CaseSearch]] = {}
    for search in ordered:
        if search.smallest is not None:
            by_kind.setdefault(str(search.kind), []).append(search)
    groups = {
        kind: json_codec.parse_group(json.loads(str(same[0].smallest)), where=same[0].case)
        for kind, same in by_kind.items()
    }

    def rank(kind: str) -> tuple[Fraction, GroupSize, str]:
        severity = Fraction(str(by_kind[kind][0].smallest_severity))
        first = -severity if options.is_largest_first else Fraction(0)
        return first, size_of(groups[kind]), kind

    return Gallery(
        options=options,
        counts=_counts(ordered),
        entries=tuple(
            _entry(
                replace(
                    groups[kind],
                    id=f"{shown_name(options.assignor)}/{options.shortcoming}/{position}",
                ),
                kind,
                by_kind[kind],
                options,
            )
            for position, kind in enumerate(sorted(groups, key=rank), start=1)
        ),
        errors=tuple((s.case, s.error) for s in ordered if s.error is not None)[:_SHOWN_ERRORS],
    )


def _counts(searches: Sequence[CaseSearch]) -> dict[str, int]:
    short = [search for search in searches if search.smallest is not None]
    return {
        "cases": len(searches),
        "short": len(short),
        "kinds": len({search.kind for search in short}),
        "namings": sum(search.namings for search in searches),
        "namings_short": sum(search.short for search in searches),
        "unproven": sum(not search.proven and search.error is None for search in searches),
        "errors": sum(search.error is not None for search in searches),
    }


def _entry(
    group: Group, kind: str, same_kind: Sequence[CaseSearch], options: CounterexampleOptions
) -> GalleryEntry:
    shortfall = measure_shortfall(group, options)
    assigned = shortfall.result.assignment
    explanation: tuple[str, ...] = ()
    optimum = reference_assignment(group, options)
    if assigned is not None and options.worse_than is not None:
        explanation = tuple(_transfers(assigned, optimum or assigned))
    elif assigned is not None and not group.is_weighted:
        explanation = tuple(str(step) for step in explain(group, assigned))
    if assigned is None:
        livelock = run(group, options.assignor).livelock
        assigned = livelock.state if isinstance(livelock, LivelockError) else None
    return GalleryEntry(
        group=group,
        kind=kind,
        severity=shortfall.severity,
        cases=len(same_kind),
        first_cases=tuple(search.case for search in same_kind[:_SHOWN_CASES]),
        verdict=_verdict(options, shortfall.severity, shortfall.result.detail),
        assigned=assigned,
        optimum=optimum,
        explanation=explanation,
    )


def _transfers(assigned: Assignment, other: Assignment) -> Iterator[str]:
    takers = {tp: member for member, tps in other.items() for tp in tps}
    for giver, tps in assigned.items():
        for tp in tps:
            if takers.get(tp, giver) != giver:
                yield str(Transfer(tp, giver, takers[tp]))


def _verdict(options: CounterexampleOptions, severity: Fraction, detail: str | None) -> str:
    if options.worse_than is not None:
        other = shown_name(options.worse_than)
        words = {Shortcoming.MOVES: f"moves above those of {other}, with an equal imbalance"}
        return f"{severity} {words.get(options.shortcoming, f'above the imbalance of {other}')}"
    text = _VERDICTS[options.shortcoming]
    return text.format(severity=severity, factor=severity + 1, detail=detail)


_VERDICTS = {
    Shortcoming.IMBALANCE: "imbalance {severity} above the minimum",
    Shortcoming.MOVES: "{severity} unnecessary moves per partition",
    Shortcoming.RATIO: "maximum load {factor} times the minimum possible maximum load",
    Shortcoming.LIVELOCK: "does not terminate: {detail}",
    Shortcoming.FAILURE: "no valid assignment: {detail}",
}


def _measured(group: Group, assignment: Assignment | None) -> dict[str, object] | None:
    if assignment is None:
        return None
    return {
        "loads": list(leximax(load_vector(group, assignment))),
        "moves": movement(group, assignment),
        "assignment": json_codec.assignment_document(assignment),
    }


def _case_key(case: str) -> tuple[str, int, str]:
    family, _, rest = case.partition("/")
    seed, _, start = rest.partition("@")
    return family, int(seed), start


_TEMPLATES = Path(__file__).parent / "templates"


def render_gallery(gallery: Gallery, *, about: Mapping[str, str], top: int) -> str:
    """Render the first ``top`` entries of a gallery as an HTML page."""
    template = environment(_TEMPLATES, autoescape=True).get_template("gallery.html.j2")
    return template.render(
        gallery=gallery,
        assignor=shown_name(gallery.options.assignor),
        largest_first=gallery.options.is_largest_first,
        about=about,
        views=[_view(entry, gallery) for entry in gallery.entries[:top]],
    )


def _view(entry: GalleryEntry, gallery: Gallery) -> dict[str, object]:
    size = size_of(entry.group)
    title = shown_name(gallery.options.assignor)
    if gallery.options.shortcoming is Shortcoming.LIVELOCK:
        title += ", a repeated state"
    other = shown_name(gallery.options.worse_than or "an optimum")
    drawn = {title: entry.assigned, other: entry.optimum}
    return {
        "entry": entry,
        "size": f"{count_of(size.members, 'member')}, {count_of(size.topics, 'topic')}, "
        f"{count_of(size.partitions, 'partition')}, {size.owned or 'none'} of them owned",
        "panels": assignment_panels(entry.group, drawn, name=str(entry.group.id)),
        "document": json.dumps(json_codec.group_document(entry.group), ensure_ascii=False),
    }


_KINDS = {
    "imbalance": "largest imbalance gap",
    "moves": "most unnecessary moves",
    "endless": "does not terminate",
}


def worst_groups(results: StudySummary, assignors: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield, for each assignor, the groups of a study with its largest gaps.

    Each item has a title, its rows of the tables ``groups`` and ``comparisons``, and drawings of
    the result and of an optimum. No group occurs twice.
    """
    shown: set[str] = set()
    for assignor in assignors:
        for kind, shortcoming in _KINDS.items():
            for candidate in results.worst:  # worst first
                case, name = candidate["group"]["case"], candidate["comparison"]["assignor"]
                if (candidate["kind"], name) == (kind, assignor) and case not in shown:
                    shown.add(case)
                    yield _worst_group(candidate, f"{assignor}: {shortcoming}")
                    break


def _worst_group(candidate: Mapping[str, Any], title: str) -> dict[str, object]:
    properties, row = candidate["group"], candidate["comparison"]
    group = json_codec.parse_group(json.loads(properties["document"]))
    drawn = {
        row["assignor"]: _stored(candidate["assignment"]),
        "an optimum": _stored(candidate["optimum"]),
    }
    panels = assignment_panels(group, drawn, name=properties["case"])
    return {"title": title, "group": properties, "comparison": row, "panels": panels}


def _stored(text: str | None) -> Assignment | None:
    return None if text is None else json_codec.parse_assignment(json.loads(text))
