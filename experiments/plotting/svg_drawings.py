"""Drawings as SVG without Matplotlib: assignments with moves, and frontiers."""

import html
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kassay.reference.model.assignment import NO_OWNER, Assignment, movement, ownership
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import leximax, load_vector, loads, participants
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.frontier import Frontier

# Sizes are pixels.
_ROW = 26
_CELL_HEIGHT = 18
_LABEL_WIDTH = 62
_CHARACTER = 8
"""Additional width of the labels per character of the longest name beyond 7 characters."""
_MAX_LABEL = 16
"""Maximum length of a name in characters."""
_GUTTER = 22
_BAR_WIDTH, _MAX_CELL = 390, 30
_ARROWS_WIDTH, _MAX_LANE = 110, 14
_NAME_LENGTHS = ((30, 6), (25, 5), (21, 4))
"""Pairs of minimum cell width in pixels and maximum name length in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPanel:
    """Panel of a page that shows one assignment: title, loads and moves, and SVG drawing."""

    title: str
    facts: str
    svg: str


@dataclass(frozen=True, slots=True)
class _Cell:
    tp: TopicPartition
    kind: str  # kept, moved or placed: its CSS class


class _Move(NamedTuple):
    """Arrow of a drawing: the rows of two members, and the number of moved partitions."""

    giver: int
    taker: int
    partitions: int


def assignment_panels(
    group: Group, assignments: Mapping[str, Assignment | None], *, name: str
) -> tuple[AssignmentPanel, ...]:
    """Draw the known assignments of a group on one scale, in panels with the given titles.

    ``name`` is the name of the group in the labels of the drawings.
    """
    drawn = {title: given for title, given in assignments.items() if given is not None}
    longest = max((load for given in drawn.values() for load in given.counts().values()), default=0)
    return tuple(
        AssignmentPanel(
            title=title,
            facts=f"loads {'/'.join(map(str, leximax(load_vector(group, assignment))))}, "
            + plural(movement(group, assignment), "move"),
            svg=draw_assignment(group, assignment, title=f"{name}, {title}", longest_bar=longest),
        )
        for title, assignment in drawn.items()
    )


def plural(count: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless the number is 1."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def draw_assignment(
    group: Group,
    assignment: Assignment,
    *,
    title: str,
    longest_bar: int = 0,
    names: Mapping[str, str] | None = None,
) -> str:
    """Draw an assignment as SVG with one bar per member, and arrows for moves.

    ``longest_bar`` is the largest number of cells in all drawings with this scale. ``names`` maps
    the id of each member to the name to show. The page's style sheet sets the colours of cells:
    kept, moved or placed.
    """
    owners = _owners(group)
    active = participants(group)
    bars = {member: _bar(member, assignment, owners) for member in active}
    moves = _moves(active, bars, owners)
    longest = max((len(bar) for bar in bars.values()), default=0)
    cell = min(_MAX_CELL, max(5, _BAR_WIDTH // max(1, longest, longest_bar)))
    labels = {member: _label(member if names is None else names[member]) for member in active}
    left = _LABEL_WIDTH + _CHARACTER * max(0, max(map(len, labels.values()), default=0) - 7)
    end = left + longest * cell + 8
    lanes = _lanes(moves)
    last_lane = max(lanes, default=0)
    lane_width = min(_MAX_LANE, max(3, _ARROWS_WIDTH // (last_lane + 1)))
    width = end + _GUTTER + lane_width * (last_lane + 1)
    height = _ROW * len(active) + 6
    load = loads(group, assignment)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [f'<svg class="drawing" role="img" aria-label="{html.escape(title)}" {size}>']
    for position, member in enumerate(active):
        label = (
            f'<text class="member" x="0" y="{_ROW * position + _ROW // 2 + 4}">'
            f"{html.escape(labels[member])}<title>{html.escape(member)}</title></text>"
        )
        parts.extend([label, *_row(position, bars[member], left, cell, load[member])])
    for move, lane in zip(moves, lanes, strict=True):
        parts.append(_arrow(move, end, 6 + lane_width * (lane + 1)))
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
) -> list[_Move]:
    """Count the moves between each pair of members, sorted by the length of the arrows."""
    row = {member: position for position, member in enumerate(active)}
    pairs = Counter(
        (row[owners[cell.tp]], row[member])
        for member, bar in bars.items()
        for cell in bar
        if cell.kind == "moved"
    )
    moves = [_Move(giver, taker, count) for (giver, taker), count in pairs.items()]
    return sorted(moves, key=lambda move: (abs(move.giver - move.taker), move))


def _lanes(moves: list[_Move]) -> list[int]:
    """Choose a lane for each arrow so that arrows in the same lane do not overlap."""
    occupied: list[list[tuple[int, int]]] = []
    lanes = []
    for move in moves:
        low, high = sorted((move.giver, move.taker))
        lane = 0
        occupied.append([])
        while any(low <= end and high >= start for start, end in occupied[lane]):
            lane += 1
        occupied[lane].append((low, high))
        lanes.append(lane)
    return lanes


def _label(name: str) -> str:
    """Shorten a long name in the middle, because names of members often differ at the end."""
    half = _MAX_LABEL // 2
    return name if len(name) <= _MAX_LABEL else f"{name[: half - 1]}…{name[-half:]}"


def _row(position: int, bar: list[_Cell], left: int, cell: int, load: int) -> Iterator[str]:
    middle = _ROW * position + _ROW // 2
    yield f'<text class="load" x="{left - 8}" y="{middle + 4}">{load}</text>'
    for index, item in enumerate(bar):
        x, y = left + index * cell, middle - _CELL_HEIGHT // 2
        label = html.escape(f"{item.tp.topic}-{item.tp.partition}")
        yield (
            f'<g class="{item.kind}"><title>{label}, {item.kind}</title>'
            f'<rect x="{x}" y="{y}" width="{cell - 2.5}" height="{_CELL_HEIGHT}" rx="2.5"/>'
        )
        if any(cell >= width and len(label) <= length for width, length in _NAME_LENGTHS):
            yield f'<text x="{x + cell / 2 - 1:g}" y="{middle + 3}">{label}</text>'
        yield "</g>"


def _arrow(move: _Move, x: int, reach: int) -> str:
    """Draw an arrow from the row of the previous owner to the row of the new owner."""
    nudge = 4 if move.taker > move.giver else -4
    start = _ROW * move.giver + _ROW // 2 + nudge
    stop = _ROW * move.taker + _ROW // 2 - nudge
    bend = min(6, abs(stop - start) // 2)
    turn = bend if stop > start else -bend
    out = x + reach
    path = (
        f"M{x} {start}H{out - bend}Q{out} {start} {out} {start + turn}"
        f"V{stop - turn}Q{out} {stop} {out - bend} {stop}H{x + 5}"
    )
    head = f"M{x} {stop}l7 -3.5v7z"
    count = move.partitions
    label = f'<text x="{out + 3}" y="{(start + stop) / 2 + 3}">{count}</text>' if count > 1 else ""
    return (
        f'<g class="arrow"><path class="line" d="{path}"/><path class="head" d="{head}"/>'
        f'<circle cx="{x}" cy="{start}" r="2"/>{label}</g>'
    )


Point = tuple[int, int]
"""Point of a frontier: number of moves and imbalance."""

LINEAR_MOVES = 40
"""Maximum number of moves with a linear axis. Above, the axis is logarithmic."""
MOVE_TICKS = tuple(digit * 10**power for power in range(7) for digit in (1, 2, 5))
"""Ticks of the logarithmic axis of moves, except 0."""

# Sizes are pixels.
_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 14, 34, 48
_MARGIN = 0.06
"""Space above and below the points, as a fraction of the range of imbalance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierCurve:
    """Data of a frontier drawing: pairs of moves and imbalance, with lower bounds.

    ``prefixes`` are the pairs after each move of a list of moves.
    """

    points: Sequence[Point]
    bounds: Sequence[Point] = ()
    prefixes: Sequence[Point] = ()

    @classmethod
    def of(cls, frontier: Frontier, prefixes: Sequence[Point] = ()) -> "FrontierCurve":
        """Create the drawing data of a frontier."""
        return cls(
            points=[(one.movement.value, one.imbalance.value) for one in frontier.points],
            bounds=[(one.movement.value, one.imbalance.bound) for one in frontier.points],
            prefixes=prefixes,
        )

    @property
    def unproven(self) -> list[Point]:
        """Return the lower bounds of the points that are not proven optimal."""
        return [bound for bound in self.bounds if bound not in set(self.points)]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Axis of a drawing: positions of values in pixels, and values of the ticks."""

    position: Callable[[int], float]
    ticks: list[int]


def frontier_svg(curve: FrontierCurve, *, measure: str) -> str:
    """Draw the frontier as SVG. The style sheet of the page sets the colours.

    ``measure`` is the name of the imbalance measure. The frontier must have at least one point.
    """
    everything = [*curve.points, *curve.unproven, *curve.prefixes]
    x = _move_axis(max(moves for moves, _ in everything))
    y = _imbalance_axis([imbalance for _, imbalance in everything])
    name = measure.replace("_", " ")
    (first, start), (last, end) = curve.points[0], curve.points[-1]
    label = f"{name} from {start} at {first} moves to {end} at {last} moves"
    size = f'viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    parts = [
        f'<svg class="frontier" role="img" aria-label="{html.escape(label)}" {size}>',
        *_grid(x, y),
        f'<text class="title" x="{_WIDTH / 2:g}" y="{_HEIGHT - 6}">partitions moved</text>',
        f'<text class="measure" x="4" y="14">{html.escape(name)}</text>',
        *(_mark("bound", "M{0:.1f} {1:.1f}m-5 0h10", point, x, y) for point in curve.unproven),
        f'<path class="prefixes" d="{_steps(curve.prefixes, x, y)}"/>',
        f'<path class="points" d="{_steps(curve.points, x, y)}"/>',
        *(_mark("point", _DOT, point, x, y) for point in curve.points),
        *_legend(curve),
        "</svg>",
    ]
    return "".join(parts)


_DOT = "M{0:.1f} {1:.1f}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0"


def _move_axis(most: int) -> _Axis:
    if most <= LINEAR_MOVES:
        ticks = _round_ticks(0, max(1, most), 8)
        top = max(ticks[-1], most)
        return _Axis(lambda moves: _along_x(moves / top), ticks)
    scale = math.asinh(most / 2)
    ticks = [0, *(tick for tick in MOVE_TICKS if tick <= most)]
    return _Axis(lambda moves: _along_x(math.asinh(moves / 2) / scale), ticks)


def _along_x(share: float) -> float:
    return _LEFT + 8 + share * (_WIDTH - _LEFT - _RIGHT - 16)


def _imbalance_axis(values: Sequence[int]) -> _Axis:
    low, high = min(values), max(values)
    if low == high:
        low, high = max(low - 1, 0), high + 1
    margin = (high - low) * _MARGIN
    bottom, height = low - margin, high - low + 2 * margin

    def position(value: int) -> float:
        return _HEIGHT - _BOTTOM - (value - bottom) / height * (_HEIGHT - _TOP - _BOTTOM)

    return _Axis(position, _round_ticks(low, high, 6))


def _round_ticks(low: int, high: int, most: int) -> list[int]:
    """Choose at most ``most`` round integers from ``low`` to ``high`` as axis ticks.

    Examples
    --------
    >>> _round_ticks(3, 27, 6), _round_ticks(0, 1, 6)
    ([5, 10, 15, 20, 25], [0, 1])
    """
    steps = (digit * 10**power for power in range(len(str(high)) + 1) for digit in (1, 2, 5))
    step = next(one for one in steps if (high - low) // one < most)
    return list(range(-(-low // step) * step, high + 1, step))


def _grid(x: _Axis, y: _Axis) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for tick in y.ticks:
        at = y.position(tick)
        yield f'<path class="rule" d="M{_LEFT} {at:.1f}H{right}"/>'
        yield f'<text class="y" x="{_LEFT - 8}" y="{at + 4:.1f}">{_number(tick)}</text>'
    for tick in x.ticks:
        at = x.position(tick)
        yield f'<path class="rule" d="M{at:.1f} {_TOP}V{bottom}"/>'
        yield f'<text class="x" x="{at:.1f}" y="{bottom + 18}">{_number(tick)}</text>'


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f") if value < 10**9 else f"{value:.2e}"


def _steps(points: Sequence[Point], x: _Axis, y: _Axis) -> str:
    """Return the SVG path of a step function through the points."""
    path = ""
    for moves, imbalance in points:
        command = "H{0:.1f}V{1:.1f}" if path else "M{0:.1f} {1:.1f}"
        path += command.format(x.position(moves), y.position(imbalance))
    return path


def _mark(style: str, shape: str, point: Point, x: _Axis, y: _Axis) -> str:
    moves, imbalance = point
    path = shape.format(x.position(moves), y.position(imbalance))
    title = f"{_number(moves)} moves: {style} {_number(imbalance)}"
    return f'<path class="{style}" d="{path}"><title>{title}</title></path>'


def _legend(curve: FrontierCurve) -> Iterator[str]:
    shown = [
        ("point", _DOT, "best found", True),
        ("bound", "M{0:.1f} {1:.1f}m-5 0h10", "lower bound", bool(curve.unproven)),
        ("prefixes", "M{0:.1f} {1:.1f}m-10 0h20", "list of moves", bool(curve.prefixes)),
    ]
    at = _WIDTH - _RIGHT - 330
    for style, shape, text, is_shown in shown:
        if is_shown:
            yield f'<path class="{style}" d="{shape.format(at, 10.0)}"/>'
            yield f'<text x="{at + 14}" y="14">{text}</text>'
        at += 112
