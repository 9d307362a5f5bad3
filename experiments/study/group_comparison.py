"""Comparison of the assignors of a study with the optimum of one group."""

from dataclasses import dataclass, field
from functools import cache, partial

from kassay.experiments.compare import (
    CaseLimits,
    Comparison,
    MovesWithin,
    compare,
    fewest_moves_within,
)
from kassay.experiments.implementations.convergence import StableResult, run_until_stable
from kassay.experiments.study.front_distance import FrontDistance, front_distance, without_racks
from kassay.experiments.study.table_rows import FrontDistanceRow
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.external_metrics import has_racks, off_rack
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, measures, movement
from kassay.reference.model.ownership import ownership
from kassay.solver.solution import Solution


@dataclass(slots=True)
class GroupComparison:
    """Comparison of assignors with the optimum of a group. Equal results share the searches."""

    group: Group
    optimum: Solution
    limits: CaseLimits
    moves_within: MovesWithin = field(init=False)
    _distances: dict[tuple[int, ...], FrontDistance] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the cache of the fewest moves within an imbalance."""
        self.moves_within = cache(
            partial(fewest_moves_within, self.group, optimum=self.optimum, limits=self.limits)
        )

    def compare(
        self, assignor: str, *, result: StableResult
    ) -> tuple[Comparison, FrontDistanceRow | None]:
        """Compare the result of an assignor with the optimum, and with the front.

        The front is computed for groups with racks and owned partitions.
        """
        row, assignment, find = None, result.assignment, self.moves_within
        if assignment is not None and has_racks(self.group) and ownership(self.group).owned_count:
            distance = self._distance(assignment)
            row = self._row(assignor, distance)

            def find(imbalance: int, off_rack_reads: int | None) -> int | None:
                is_plain = off_rack_reads is None
                return self.moves_within(imbalance, None) if is_plain else distance.moves.best

        comparison = compare(
            self.group, assignor, optimum=self.optimum, result=result, moves_within=find
        )
        return comparison, row

    def _distance(self, assignment: Assignment) -> FrontDistance:
        key = (
            self._imbalance(self.group, assignment),
            off_rack(self.group, assignment),
            movement(self.group, assignment),
        )
        if key not in self._distances:
            self._distances[key] = front_distance(
                self.group,
                assignment,
                optimum=self.optimum,
                limits=self.limits,
                min_moves=self._fewest_moves(key[0]) or 0,
            )
        return self._distances[key]

    def _row(self, assignor: str, distance: FrontDistance) -> FrontDistanceRow:
        imbalance, reads, moves = distance.imbalance, distance.off_rack, distance.moves
        plain = without_racks(self.group)
        other = run_until_stable(plain, assignor).assignment
        return FrontDistanceRow(
            assignor=assignor,
            on_front=distance.is_on_front,
            imbalance=imbalance.value,
            imbalance_within=imbalance.within,
            imbalance_bound=imbalance.bound,
            off_rack=reads.value,
            off_rack_within=reads.within,
            off_rack_bound=reads.bound,
            moves=moves.value,
            moves_within=moves.within,
            moves_bound=moves.bound,
            fewest_moves=self._fewest_moves(imbalance.value),
            moves_without_racks=None if other is None else movement(plain, other),
            fewest_moves_without_racks=(
                None if other is None else self._fewest_moves(self._imbalance(plain, other))
            ),
        )

    def _imbalance(self, group: Group, assignment: Assignment) -> int:
        return measures(group, assignment)[Measure(self.optimum.imbalance.name)]

    def _fewest_moves(self, imbalance: int) -> int | None:
        """Return the fewest moves with at most an imbalance, and any number of off-rack reads."""
        is_proven = self.optimum.imbalance.gap == 0 and self.optimum.movement.gap == 0
        return self.moves_within(imbalance, None) if is_proven else None
