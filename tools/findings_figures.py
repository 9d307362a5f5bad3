"""Draw the figures of the front page and of the findings, for light and dark pages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import kassay
from kassay import Assignment, Group, TopicPartition
from tools.published_tables import cell, number, tables

ROOT = Path(__file__).parents[1]
STREAMS, SINGLE, LIBRARIES, REMEDIES = (
    "event-streams",
    "single-groups",
    "implementations",
    "remedies",
)
HINDSIGHT = "moves-over-time"
FEWEST = "fewest moves at each rebalance"
_STYLE = """<style>
text { font: 14px sans-serif; fill: #1f2328 } .title { font-weight: bold }
.small { font-size: 12px }
.page { fill: #ffffff; stroke: #d0d7de } .bar { fill: #4878a8 } .least { fill: #3f8f5f }
.t0 { fill: #9ecae1 } .t1 { fill: #fdd0a2 } .t2 { fill: #c7e9c0 } .box { stroke: #57606a }
.box.moved { stroke: #b00020; stroke-width: 2.5 } .name { fill: #1f2328 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #161b22; stroke: #3d444d } .bar { fill: #6ea3d8 }
.least { fill: #63b483 } .box.moved { stroke: #ff7b72 } .t0 { fill: #2f5d7c } .t1 { fill: #8a5a2b }
.t2 { fill: #3c6e45 } .name { fill: #e6edf3 } }
</style>"""
_WIDTH, _LABEL, _LONGEST, _ROW = 720, 250, 300, 30


@dataclass(frozen=True, slots=True)
class Bar:
    """Labelled bar with its length and the text at its end."""

    label: str
    length: float
    text: str
    is_least: bool = False


def events() -> list[str]:
    """Return the kinds of events of the primary analysis."""
    return next(
        list(dict.fromkeys(row[0] for row in table.rows))
        for table in tables(STREAMS)
        if table.title.startswith("**By event**")
    )


def figures() -> dict[str, str]:
    """Return all figures as SVG, by the name of the file."""
    return {"billing": draw_plan(), **_findings()}


def _findings() -> dict[str, str]:
    equal, mixed = "Equal and mixed subscriptions", "mixed subscriptions"
    shares = "with unnecessary moves"
    unnecessary = "unnecessary moves"
    by_event = sorted(
        events(), key=lambda event: -number(STREAMS, "By event", f"{event} | sticky", unnecessary)
    )
    missed = "misses the minimum imbalance"
    return {
        "finding-equal": _bars(
            "Groups with unnecessary moves, equal subscriptions, %",
            [
                _bar(SINGLE, equal, f"{name} | equal", shares, label=name)
                for name in ("sticky", "cooperative-sticky", "uniform", "uniform-4.0", "range")
            ],
        ),
        "finding-mixed": _bars(
            "Rebalances above the minimum of the maximum load, mixed subscriptions, %",
            [
                _bar(
                    STREAMS,
                    "By size and subscriptions",
                    f"{mixed} | {name}",
                    "fullest member above the minimum, %",
                    label=name,
                    interval=True,
                )
                for name in ("sticky", "cooperative-sticky", "uniform")
            ],
        ),
        "finding-events": _bars(
            "Unnecessary moves of sticky per rebalance, all streams, by event",
            [
                _bar(STREAMS, "By event", f"{event} | sticky", unnecessary, label=event)
                for event in by_event
            ],
        ),
        "finding-moves": _bars(
            "Moves per rebalance, all streams",
            [
                _bar(STREAMS, "**Moves**", name, "moves", label=label)
                for name, label in (
                    (FEWEST, "fewest at each rebalance"),
                    ("uniform", "uniform"),
                    ("sticky", "sticky"),
                    ("range", "range"),
                    ("roundrobin", "roundrobin"),
                )
            ],
        ),
        "finding-remedy": _bars(
            "Moves per rebalance on 30 streams",
            [
                _bar(REMEDIES, "Whole streams", name, "moves", label=name)
                for name in (
                    "fewest at each rebalance",
                    "sticky with three transfers",
                    "sticky",
                    "uniform with three transfers",
                    "uniform",
                )
            ],
        ),
        "finding-hindsight": _bars(
            "Moves above the hindsight optimum, mixed subscriptions, % of its moves",
            [
                _bar(HINDSIGHT, "Seeds 0 to", "mixed, all", name, label=name, interval=True)
                for name in ("spread topics", "fewest at each", "uniform", "sticky")
            ],
        ),
        "finding-libraries": _bars(
            "Groups without minimum imbalance, % of the groups with a result",
            [
                _bar(LIBRARIES, "The tables contain", name, missed, label=name)
                for name in (
                    "franz-go@1.22.2:sticky",
                    "kafka-broker@4.4.0:uniform",
                    "kafka-clients@4.4.0:sticky",
                    "sarama@1.61.1:sticky",
                    "kafka-go@0.4.51:roundrobin",
                )
            ],
        ),
    }


def _bar(
    page: str, title: str, row: str, column: str, *, label: str, interval: bool = False
) -> Bar:
    length = number(page, title, row, column)
    is_least = label.startswith(("optimum", "fewest"))
    return Bar(label, length, cell(page, title, row, column, interval=interval), is_least)


def _bars(title: str, bars: Sequence[Bar]) -> str:
    longest = max(bar.length for bar in bars)
    parts = [_text(16, 26, title, "title")]
    for place, bar in enumerate(bars):
        y = 40 + place * _ROW
        width = max(1.0, _LONGEST * bar.length / longest)
        kind = "least" if bar.is_least else "bar"
        parts += [
            _text(16, y + 18, bar.label),
            f'<rect x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="20" class="{kind}"/>',
            _text(_LABEL + width + 8, y + 18, bar.text),
        ]
    return _page(_WIDTH, 52 + len(bars) * _ROW, title, parts)


def draw_plan() -> str:
    """Draw the loads of the group of examples/lagging-group before and after its plan."""
    [group] = kassay.load_captures(ROOT / "examples/lagging-group", subscriptions="equal")
    now = Assignment({member.id: member.owned for member in group.members})
    planned = kassay.solve(group).assignment or now
    moved = {tp for member in now for tp in now[member] if tp not in planned[member]}
    parts = [_text(16, 26, f"Group {group.id}: {len(moved)} moves balance it", "title")]
    panels = (("now", now, 16), (f"after {len(moved)} moves", planned, 376))
    for title, assignment, left in panels:
        parts.append(_text(left, 54, title))
        parts += _plan_panel(group, assignment, moved, left)
    parts.append(_text(16, 196, "Boxes are partitions; a red border marks the moves.", "small"))
    return _page(_WIDTH, 212, f"Loads of the group {group.id} before and after the plan", parts)


def _plan_panel(
    group: Group, assignment: Assignment, moved: Iterable[TopicPartition], left: int
) -> list[str]:
    topics = [topic.name for topic in group.topics]
    parts = []
    for row, member in enumerate(sorted(group.members, key=lambda member: member.id)):
        y = 66 + row * 28
        tps = sorted(assignment[member.id], key=lambda tp: (tp in moved, topics.index(tp.topic)))
        parts.append(_text(left, y + 16, f"{_short(member.id)}: {len(tps)}"))
        for place, tp in enumerate(tps):
            x = left + 96 + place * 36
            kind = f"box t{topics.index(tp.topic)}" + (" moved" if tp in moved else "")
            parts += [
                f'<rect x="{x}" y="{y}" width="32" height="22" rx="3" class="{kind}"/>',
                _text(x + 5, y + 15, f"{tp.topic[:2]}{tp.partition}", "name small"),
            ]
    return parts


def _short(member: str) -> str:
    """Return a member id without the random part that clients append."""
    return "-".join(member.split("-")[:2])


def _page(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">\n<title>{escape(title)}</title>\n'
        f'{_STYLE}\n<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6" '
        f'class="page"/>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    names = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{names}>{escape(text)}</text>'
