"""Draw the figures of docs/assignors.md: ``python docs/images/draw_assignors.py [NAME...]``.

A column is a member, a box is a partition, a colour is a topic, a dashed box is a move.
"""

import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

from kassay import Assignment, Group, Member, Topic, TopicPartition
from kassay.reference.assignors import assign

_STYLE = (
    "text{fill:#1f2328}@media (prefers-color-scheme: dark)"
    "{text{fill:#e6edf3}rect+text{fill:#1f2328}}"
)
"""Style of names and of partitions: partitions have the same colours in dark pages."""

HERE = Path(__file__).parent
COLOURS = ("#9ecae1", "#fdd0a2", "#c7e9c0", "#dadaeb")
BOX, GAP, COLUMN, TOP = 26, 4, 92, 44


@dataclass(frozen=True)
class AssignorFigure:
    """Figure with one panel per title, assignor and group."""

    name: str
    panels: tuple[tuple[str, str, Group], ...]


def group(topics: dict[str, int], members: dict[str, str], claims: Assignment | None) -> Group:
    """Build a group in which members own the partitions of ``claims``."""
    return Group(
        topics=tuple(Topic(name=name, partitions=count) for name, count in topics.items()),
        members=tuple(
            Member(
                id=member,
                subscription=tuple(subscribed.split()),
                owned=claims[member] if claims is not None and member in claims else (),
                generation=-1 if claims is None or member not in claims else 1,
            )
            for member, subscribed in members.items()
        ),
    )


def figures() -> list[AssignorFigure]:
    """Return all figures."""
    two = {"T0": 4, "T1": 4}
    three = {"C0": "T0 T1", "C1": "T0 T1", "C2": "T0 T1"}
    mixed = {"C0": "T0", "C1": "T0 T1", "C2": "T0 T1 T2"}
    steps = {"T0": 1, "T1": 2, "T2": 3}
    alone = Assignment({"a": [("t", number) for number in range(4)]})
    pair = {"a": "t", "b": "t"}
    joined = group({"t": 4}, pair, alone)
    first = assign(joined, "cooperative-sticky")
    uneven = Assignment({"a": [("t", 0)], "b": [("t", 1), ("t", 2)]})
    chain = Assignment({"c1": [("t0", 0)], "c2": [("t1", 0), ("t2", 0)]})
    stuck = group(
        {"t0": 1, "t1": 1, "t2": 1}, {"c0": "t0", "c1": "t0 t1 t2", "c2": "t0 t1 t2"}, chain
    )
    fresh = group(steps, mixed, None)
    left = group(steps, {m: mixed[m] for m in ("C1", "C2")}, assign(fresh, "sticky"))
    return [
        AssignorFigure("range", (("range", "range", group(two, three, None)),)),
        AssignorFigure(
            "roundrobin",
            (
                ("roundrobin", "roundrobin", fresh),
                ("sticky", "sticky", fresh),
                ("sticky, C0 has left", "sticky", left),
            ),
        ),
        AssignorFigure("sticky-misses", (("sticky", "sticky", stuck),)),
        AssignorFigure(
            "cooperative-sticky",
            (
                ("b joins: first round", "cooperative-sticky", joined),
                ("second round", "cooperative-sticky", group({"t": 4}, pair, first)),
            ),
        ),
        AssignorFigure(
            "uniform",
            (
                ("uniform, 4.0", "uniform-4.0", group({"t": 3}, pair, uneven)),
                ("uniform, 4.1 and later", "uniform", group({"t": 3}, pair, uneven)),
            ),
        ),
    ]


def draw(figure: AssignorFigure) -> str:
    """Return a figure as SVG."""
    parts: list[str] = []
    left = 0
    tallest = 0
    for title, assignor, shown in figure.panels:
        assignment = assign(shown, assignor)
        parts.append(_text(left + 8, 16, title, "bold"))
        parts += _panel(left, shown, assignment)
        tallest = max(tallest, 1, *(len(assignment[member]) for member in assignment))
        left += COLUMN * len(shown.members) + 28
    height = TOP + tallest * (BOX + GAP) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" '
        f'font-family="sans-serif" font-size="12">\n<style>{_STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _panel(left: int, shown: Group, assignment: Assignment) -> list[str]:
    colours = {topic.name: COLOURS[i % len(COLOURS)] for i, topic in enumerate(shown.topics)}
    owners = {tp: member.id for member in shown.members for tp in member.owned}
    parts: list[str] = []
    for column, member in enumerate(shown.members):
        x = left + 8 + column * COLUMN
        parts.append(_text(x, TOP - 10, f"{member.id} [{' '.join(member.subscription)}]"))
        for level, tp in enumerate(assignment[member.id]):
            y = TOP + level * (BOX + GAP)
            parts.append(_box(x, y, tp, colours[tp.topic], owners.get(tp, member.id) != member.id))
    return parts


def _box(x: int, y: int, tp: TopicPartition, colour: str, moved: bool) -> str:
    border = 'stroke="#b00020" stroke-dasharray="4 2"' if moved else 'stroke="#555555"'
    return (
        f'<rect x="{x}" y="{y}" width="64" height="{BOX}" rx="4" fill="{colour}" {border}/>'
        + _text(x + 8, y + 17, str(tp))
    )


def _text(x: int, y: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{escape(text)}</text>'


def main() -> None:
    """Write all figures, or the named ones."""
    for figure in figures():
        if len(sys.argv) == 1 or figure.name in sys.argv[1:]:
            (HERE / f"{figure.name}.svg").write_text(draw(figure), encoding="utf-8")


if __name__ == "__main__":
    main()
