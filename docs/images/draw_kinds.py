"""Draw the smallest counterexamples of each kind of groups: ``python docs/images/draw_kinds.py``.

A column is a member, a process or a worker, a box is a partition or a task, a dashed box is a move.
The ports compute the answers of Kafka's assignors; that for a Streams group is recorded.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from kassay.experiments.implementations.run_assignor import run_on_document
from kassay.experiments.kinds.group_kind import KindComparison
from kassay.experiments.kinds.registry import KINDS
from kassay.experiments.kinds.streams_forecast import run_application_until_stable
from kassay.reference.documents.kind_documents import KindDocument, parse_kind_document
from kassay.solver.limits import SearchLimits

HERE = Path(__file__).parent
RECORDED = HERE.parents[1] / "tests" / "data" / "kind_answers.jsonl"
COLOURS = ("#9ecae1", "#fdd0a2")
BOX, GAP, COLUMN, TOP, WIDTH = 26, 4, 92, 44, 78
_STYLE = (
    "text{fill:#1f2328}.box text{fill:#1f2328}"
    "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.box text{fill:#1f2328}}"
)
Columns = Mapping[str, Sequence[str]]
"""Boxes per column, such as ``t0-1`` or ``0_1``."""


@dataclass(frozen=True)
class KindFigure:
    """Figure with the answer of an assignor beside an optimum; ``values`` are of both."""

    name: str
    panels: tuple[tuple[str, Columns], ...]
    before: Columns
    compared: tuple[KindComparison, ...]


def figures() -> list[KindFigure]:
    """Return all figures."""
    return [_share(), _streams(), _streams_group(), _connect()]


def _share() -> KindFigure:
    document = _document(
        {
            "kind": "share",
            "topics": {"t0": 2, "t1": 2},
            "members": [{"id": "a", "topics": ["t0"]}, {"id": "b", "topics": ["t0", "t1"]}],
        }
    )
    answer: Any = run_on_document(document, "share").answer
    best = {"members": {"a": [["t0", 0], ["t0", 1]], "b": [["t1", 0], ["t1", 1]]}}
    panels = tuple(
        (title, {m: [f"{t}-{n}" for t, n in tps] for m, tps in one["members"].items()})
        for title, one in (("share, Kafka 4.4", answer), ("optimum", best))
    )
    return KindFigure("kind-share", panels, {}, _compare(document, answer, best))


def _streams() -> KindFigure:
    ids = {name: f"00000000-0000-0000-0000-00000000000{n}" for n, name in enumerate("AB", 1)}
    names = {id: name for name, id in ids.items()}
    before: dict[str, list[str]] = {"A": ["0_1"], "B": []}
    document = _document(
        {
            "kind": "streams",
            "subtopologies": {
                "0": {"partitions": 2, "stateful": True, "end_offsets": [50_000] * 2}
            },
            "processes": [
                {"id": ids[name], "threads": 1, "active": tasks} for name, tasks in before.items()
            ],
        }
    )
    stable: Any = run_application_until_stable(document, "streams-high-availability")
    answer = {
        "processes": {
            one["id"]: {"active": one["active"], "standby": one["standby"]}
            for one in stable.application.content["processes"]
        }
    }
    best = {
        "processes": {
            ids["A"]: {"active": ["0_1"], "standby": []},
            ids["B"]: {"active": ["0_0"], "standby": []},
        }
    }
    panels = tuple(
        (title, {names[id]: own["active"] for id, own in one["processes"].items()})
        for title, one in (("high availability", answer), ("optimum", best))
    )
    return KindFigure("kind-streams", panels, before, _compare(document, answer, best))


def _streams_group() -> KindFigure:
    lines = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    recorded = next(one for one in lines if one["problem"]["id"] == "restart with local state")
    best = {
        "members": {f"m{n + 1}": {"active": {"0": [n], "1": [n]}, "standby": {}} for n in range(2)}
    }
    panels = tuple(
        (
            title,
            {
                member: [f"{name}_{n}" for name, tasks in own["active"].items() for n in tasks]
                for member, own in one["members"].items()
            },
        )
        for title, one in (("broker, Kafka 4.4", recorded["answer"]), ("optimum", best))
    )
    document = _document(recorded["problem"])
    compared = _compare(document, recorded["answer"], best)
    return KindFigure("kind-streams-group", panels, {}, compared)


def _connect() -> KindFigure:
    connectors = {"a": 1, "b": 2}
    document = _document(
        {
            "kind": "connect",
            "steps": [
                {"workers": workers, "connectors": connectors} for workers in (["w0"], ["w0", "w1"])
            ],
        }
    )
    answer: Any = run_on_document(document, "connect-incremental").answer
    first, last = answer["steps"]
    best = {
        "steps": [
            first,
            {
                **last,
                "state": {
                    "w0": {"connectors": ["b"], "tasks": ["a-0", "b-0"]},
                    "w1": {"connectors": ["a"], "tasks": ["b-1"]},
                },
            },
        ]
    }
    panels = tuple(
        (title, {w: sorted(own["tasks"]) for w, own in one["steps"][-1]["state"].items()})
        for title, one in (("incremental, w1 joins", answer), ("optimum", best))
    )
    before = {w: own["tasks"] for w, own in first["state"].items()}
    return KindFigure("kind-connect", panels, before, _compare(document, answer, best))


def _document(content: Mapping[str, object]) -> KindDocument:
    return parse_kind_document(content, kind=None)


def _compare(document: KindDocument, *answers: Mapping[str, Any]) -> tuple[KindComparison, ...]:
    limits = SearchLimits(work=10)
    compare = KINDS[document.kind].compare
    return tuple(compare(document, answer, limits)[-1] for answer in answers)


def draw(figure: KindFigure) -> str:
    """Return a figure as SVG, with colours for light and dark pages."""
    owners = {box: name for name, boxes in figure.before.items() for box in boxes}
    groups = sorted(
        {_group(b) for _, columns in figure.panels for bs in columns.values() for b in bs}
    )
    colours = dict(zip(groups, COLOURS, strict=False))
    parts = [f"<style>{_STYLE}</style>"]
    left = tallest = 0
    for title, columns in figure.panels:
        parts.append(_text(left + 8, 16, title, "bold"))
        for column, (name, boxes) in enumerate(columns.items()):
            x = left + 8 + column * COLUMN
            parts.append(_text(x, TOP - 10, name))
            for level, box in enumerate(boxes):
                moved = owners.get(box, name) != name
                parts.append(
                    _box(x, TOP + level * (BOX + GAP), box, colours[_group(box)], moved=moved)
                )
            tallest = max(tallest, len(boxes))
        left += COLUMN * max(len(columns), 2) + 28
    height = TOP + tallest * (BOX + GAP) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" '
        f'font-family="sans-serif" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _group(box: str) -> str:
    """Return the topic, subtopology or connector of a box."""
    return box.replace("_", "-").rpartition("-")[0]


def _box(x: int, y: int, label: str, colour: str, *, moved: bool) -> str:
    border = 'stroke="#b00020" stroke-dasharray="4 2"' if moved else 'stroke="#555555"'
    return (
        f'<g class="box"><rect x="{x}" y="{y}" width="{WIDTH}" height="{BOX}" rx="4" '
        f'fill="{colour}" {border}/>' + _text(x + 8, y + 17, label) + "</g>"
    )


def _text(x: int, y: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{escape(text)}</text>'


def main() -> None:
    """Write all figures."""
    for figure in figures():
        (HERE / f"{figure.name}.svg").write_text(draw(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
