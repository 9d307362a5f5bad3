"""Draw assignments and moves as SVG, and collect the data for figures of frontiers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kassay.experiments.plotting.page_templates import environment, text_width
from kassay.reference.model.assignment import NO_OWNER, Assignment, movement, ownership
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import leximax, load_vector, loads, participants
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.frontier import Frontier

# Sizes are pixels.
_ROW = 26
_CELL_HEIGHT = 18
_MAX_LABEL = 22
"""Maximum length of a name in characters, as in the tables of plans."""
_GUTTER = 22
_BAR_WIDTH, _MAX_CELL = 390, 30
_ARROWS_WIDTH, _MAX_LANE = 110, 14
_NAME_LENGTHS = ((30, 6), (25, 5), (21, 4))
"""Pairs of minimum cell width in pixels and maximum name length in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentPanel:
    """Drawing of one assignment on a page, with a title, loads and moves."""

    title: str
    facts: str
    svg: str


class _Cell(NamedTuple):
    tp: TopicPartition
    kind: str  # kept, moved or placed: its CSS class


class _Move(NamedTuple):
    """Arrow that shows moves between two members, with the number of partitions."""

    giver: int
    taker: int
    partitions: int


def assignment_panels(
    group: Group, assignments: Mapping[str, Assignment | None], *, name: str
) -> tuple[AssignmentPanel, ...]:
    """Draw several assignments of a group on the same scale."""
    drawn = {title: given for title, given in assignments.items() if given is not None}
    longest = max((load for given in drawn.values() for load in given.counts().values()), default=0)
    return tuple(
        AssignmentPanel(
            title=title,
            facts=f"loads {'/'.join(map(str, leximax(load_vector(group, assignment))))}, "
            + count_of(movement(group, assignment), "move"),
            svg=draw_assignment(group, assignment, title=f"{name}, {title}", longest_bar=longest),
        )
        for title, assignment in drawn.items()
    )


def draw_assignment(
    group: Group,
    assignment: Assignment,
    *,
    title: str,
    longest_bar: int = 0,
    names: Mapping[str, str] | None = None,
) -> str:
    """Draw an assignment as SVG, with one bar per member and arrows for moves.

    ``longest_bar`` is the highest number of cells of a bar in all drawings with this scale.
    ``names`` maps the id of each member to the shown name, in the shown order. The style sheet of
    the page sets the colours of cells: kept, moved or placed.
    """
    owners = _owners(group)
    active = participants(group) if names is None else tuple(names)
    bars = {member: _bar(member, assignment, owners) for member in active}
    moves = _moves(active, bars, owners)
    longest = max((len(bar) for bar in bars.values()), default=0)
    cell = min(_MAX_CELL, max(5, _BAR_WIDTH // max(1, longest, longest_bar)))
    labels = {member: _label(member if names is None else names[member]) for member in active}
    lanes = _lanes(moves)
    last_lane = max(lanes, default=0)
    lane_width = min(_MAX_LANE, max(3, _ARROWS_WIDTH // (last_lane + 1)))
    load = {member: f"{load:,}" for member, load in loads(group, assignment).items()}
    left = 20 + sum(max(map(text_width, one.values()), default=0) for one in (labels, load))
    end = left + longest * cell + 8
    template = environment(autoescape=True).get_template("assignment.svg.j2")
    return template.render(
        title=title,
        width=end + _GUTTER + lane_width * (last_lane + 1),
        height=_ROW * len(active) + 6,
        rows=[(member, labels[member], load[member], bars[member]) for member in active],
        arrows=list(zip(moves, lanes, strict=True)),
        row=_ROW,
        cell=cell,
        cell_height=_CELL_HEIGHT,
        longest_name=max((most for width, most in _NAME_LENGTHS if cell >= width), default=0),
        left=left,
        end=end,
        lane_width=lane_width,
    )


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
    """Choose a column for each arrow so that arrows in one column do not overlap."""
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
    """Shorten a long name in the middle, because names of members often differ at their ends."""
    half = _MAX_LABEL // 2
    return name if len(name) <= _MAX_LABEL else f"{name[: half - 1]}…{name[-half:]}"


Point = tuple[int, int]
"""Point of a frontier: number of moves and imbalance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierCurve:
    """Points of a frontier for drawings, with lower bounds.

    ``prefixes`` has the pair (moves, imbalance) after each move of a list of moves.
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
