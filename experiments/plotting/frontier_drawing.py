"""Draw the frontier (imbalance by number of moves) as SVG without Matplotlib."""

import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kassay.solver.frontier.frontier_points import Frontier

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
            points=[(one.moves, one.imbalance) for one in frontier.table()],
            bounds=[(one.moves, one.imbalance_bound) for one in frontier.table()],
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
