"""A group drawn: members as bars of partitions, moves as arrows."""

import html
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads, participants
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.topic_partitions import TopicPartition

_ROW = 26
_CELL_HEIGHT = 18
_LABEL_WIDTH = 62
_GUTTER = 22
_BAR_WIDTH, _WIDEST_CELL = 390, 30
_ARROWS_WIDTH, _WIDEST_LANE = 110, 14
_NAME_WIDTHS = ((30, 6), (25, 5), (21, 4))  # cells so wide have room for names so long


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPanel:
    """One assignment drawn.

    Parameters
    ----------
    title
        Whose assignment it is.
    facts
        Loads and moves, in words.
    svg
        The drawing.
    """

    title: str
    facts: str
    svg: str


@dataclass(frozen=True, slots=True)
class _Cell:
    tp: TopicPartition
    kind: str  # kept, moved, placed: the class that styles it


def draw_assignment(group: Group, assignment: Assignment, *, title: str, longest: int = 0) -> str:
    """Draw an assignment as SVG: a bar a member, an arrow a pair of members.

    Cells are partitions: kept by their owner, moved here from another member, or placed
    because nobody owned them. An arrow leads from the member that gave partitions to the
    one that got them, with their number where it is more than one. Styles are the page's.

    Parameters
    ----------
    group
        The rebalance.
    assignment
        Who gets what.
    title
        Text for those who cannot see it.
    longest
        Partitions of the longest bar to make room for, so that drawings of one group
        share a scale; at least this one's own.
    """
    owners = _owners(group)
    active = participants(group)
    bars = {member: _bar(member, assignment, owners) for member in active}
    moves = _moves(active, bars, owners)
    own = max((len(bar) for bar in bars.values()), default=0)
    cell = min(_WIDEST_CELL, max(5, _BAR_WIDTH // max(1, own, longest)))
    end = _LABEL_WIDTH + own * cell + 8
    lanes = _lanes(moves)
    lane_width = min(_WIDEST_LANE, max(3, _ARROWS_WIDTH // (max(lanes, default=0) + 1)))
    width = end + _GUTTER + lane_width * (max(lanes, default=0) + 1)
    height = _ROW * len(active) + 6
    weight = loads(group, assignment)
    label = html.escape(title, quote=True)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [f'<svg class="drawing" role="img" aria-label="{label}" {size}>']
    for position, member in enumerate(active):
        parts.extend(_row(position, member, bars[member], cell, weight[member]))
    for (giver, taker, count), lane in zip(moves, lanes, strict=True):
        parts.append(_arrow(giver, taker, count, end, 6 + lane_width * (lane + 1)))
    return "".join([*parts, "</svg>"])


def _owners(group: Group) -> dict[TopicPartition, str]:
    return {
        TopicPartition(topic, number): group.members[owner].id
        for topic, column in ownership(group).owners.items()
        for number, owner in enumerate(column.tolist())
        if owner != NO_OWNER
    }


def _bar(member: str, assignment: Assignment, owners: dict[TopicPartition, str]) -> list[_Cell]:
    cells = [
        _Cell(tp, "placed" if tp not in owners else "kept" if owners[tp] == member else "moved")
        for tp in sorted(assignment.get(member, ()))
    ]
    rank = {"kept": 0, "placed": 1, "moved": 2}
    return sorted(cells, key=lambda cell: rank[cell.kind])


def _moves(
    active: tuple[str, ...], bars: dict[str, list[_Cell]], owners: dict[TopicPartition, str]
) -> list[tuple[int, int, int]]:
    """Return (giver's row, taker's row, partitions), short arrows first."""
    row = {member: position for position, member in enumerate(active)}
    pairs = Counter(
        (row[owners[cell.tp]], row[member])
        for member, bar in bars.items()
        for cell in bar
        if cell.kind == "moved"
    )
    return sorted(
        ((giver, taker, count) for (giver, taker), count in pairs.items()),
        key=lambda move: (abs(move[0] - move[1]), move),
    )


def _lanes(moves: list[tuple[int, int, int]]) -> list[int]:
    """Give each arrow a lane of the gutter, no two that overlap the same."""
    taken: list[list[tuple[int, int]]] = []
    lanes = []
    for giver, taker, _ in moves:
        low, high = min(giver, taker), max(giver, taker)
        lane = next(
            (
                index
                for index, spans in enumerate(taken)
                if all(high < other_low or low > other_high for other_low, other_high in spans)
            ),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((low, high))
        lanes.append(lane)
    return lanes


def _row(position: int, member: str, bar: list[_Cell], cell: int, load: int) -> Iterator[str]:
    middle = _ROW * position + _ROW // 2
    name = html.escape(member if len(member) <= 7 else member[:6] + "…")
    yield (
        f'<text class="member" x="0" y="{middle + 4}">{name}<title>{html.escape(member)}</title>'
        f'</text><text class="load" x="{_LABEL_WIDTH - 8}" y="{middle + 4}">{load}</text>'
    )
    for index, item in enumerate(bar):
        x, y = _LABEL_WIDTH + index * cell, middle - _CELL_HEIGHT // 2
        label = html.escape(f"{item.tp.topic}-{item.tp.partition}")
        yield (
            f'<g class="{item.kind}"><title>{label}, {item.kind}</title>'
            f'<rect x="{x}" y="{y}" width="{cell - 2.5}" height="{_CELL_HEIGHT}" rx="2.5"/>'
        )
        if any(cell >= wide and len(label) <= long for wide, long in _NAME_WIDTHS):
            yield f'<text x="{x + cell / 2 - 1:g}" y="{middle + 3}">{label}</text>'
        yield "</g>"


def _arrow(giver: int, taker: int, count: int, x: int, reach: int) -> str:
    """Draw out of one row and into another, the corners rounded."""
    nudge = 4 if taker > giver else -4
    start, stop = _ROW * giver + _ROW // 2 + nudge, _ROW * taker + _ROW // 2 - nudge
    bend = min(6, abs(stop - start) // 2)
    turn = bend if stop > start else -bend
    out = x + reach
    path = (
        f"M{x} {start}H{out - bend}Q{out} {start} {out} {start + turn}"
        f"V{stop - turn}Q{out} {stop} {out - bend} {stop}H{x + 5}"
    )
    head = f"M{x} {stop}l7 -3.5v7z"
    label = f'<text x="{out + 3}" y="{(start + stop) / 2 + 3}">{count}</text>' if count > 1 else ""
    return (
        f'<g class="arrow"><path class="line" d="{path}"/><path class="head" d="{head}"/>'
        f'<circle cx="{x}" cy="{start}" r="2"/>{label}</g>'
    )
