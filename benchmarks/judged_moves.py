"""Compare the table of lowest maximum loads with simple searches, per number of moves.

``python -m benchmarks.judged_moves 200 --moves 20 --seconds 30`` prints one line per group, then
a table: the gaps to the bound by size of the groups, and the cells (a group and a number of moves)
in which a simple search or the plain CP-SAT model finds a lower maximum load. ``--size 12x400``
gives all groups the same size.
"""

import argparse
import time
from dataclasses import dataclass

from ortools.sat.python import cp_model

from kassay import Group
from kassay.solver.frontier import frontier
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import Problem, build_problem
from tests.solver.move_judges import beam, by_maximum, by_squares, seeded_groups

_SIZES = ((0, 15_000), (15_000, 60_000), (60_000, 10**9))
"""Ranges of members times partitions."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """Maximum load and bound for one number of moves, and the loads of the judges."""

    moves: int
    value: int
    bound: int
    judges: tuple[int, ...]
    plain: int  # maximum load of the plain CP-SAT model; the time for all cells is the same

    @property
    def gap(self) -> float:
        return self.value / max(1, self.bound) - 1


class _PlainModel:
    """CP-SAT model of the moved partitions, solved for one number of moves after the other."""

    def __init__(self, problem: Problem) -> None:
        self.model, members = cp_model.CpModel(), range(problem.member_count)
        owned = problem.loads(problem.owner)
        change: list[list[object]] = [[] for _ in members]
        moved = []
        for at, (owner, weight) in enumerate(
            zip(problem.owner.tolist(), problem.weight.tolist(), strict=True)
        ):
            consumers = problem.consumer_sets[problem.consumer_set[at]].tolist()
            to = {member: self.model.new_bool_var("") for member in consumers if member != owner}
            self.model.add_at_most_one(to.values())
            moved += to.values()
            for member, variable in to.items():
                change[member].append(weight * variable)
                change[owner].append(-weight * variable)
        self.highest = max(owned)
        maximum = self.model.new_int_var(0, self.highest, "")
        for member in members:
            self.model.add(owned[member] + cp_model.LinearExpr.sum(change[member]) <= maximum)
        self.most_moves = self.model.add(cp_model.LinearExpr.sum(moved) <= len(moved))
        self.model.minimize(maximum)

    def lowest(self, moves: int, seconds: float) -> tuple[int, int]:
        """Return the maximum load and the bound within a number of moves."""
        self.most_moves.proto.linear.domain[1] = moves
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1
        if solver.solve(self.model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return self.highest, 0
        return round(solver.objective_value), round(solver.best_objective_bound)


def main() -> None:
    """Run the comparison, print its lines and its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", type=int, nargs="?", default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first group")
    parser.add_argument("--size", type=_size, help="members and partitions, such as 12x400")
    parser.add_argument("--moves", type=int, default=20, help="greatest number of moves")
    parser.add_argument("--partitions", type=int, default=3_000, help="greatest number per group")
    parser.add_argument("--seconds", type=float, default=30.0, help="time limit per group")
    options = parser.parse_args()
    sizes: dict[tuple[int, int], list[_Cell]] = {size: [] for size in _SIZES}
    for group in seeded_groups(
        options.groups, first=options.first, most_partitions=options.partitions, size=options.size
    ):
        start = time.monotonic()
        cells = _cells(group, options.moves, options.seconds)
        product = len(group.members) * group.partition_count
        sizes[next(size for size in _SIZES if size[0] <= product < size[1])] += cells
        lost = [(one.moves, one.value, min(one.judges), one.plain) for one in cells if _worse(one)]
        print(
            f"{group.id}: {len(group.members)} x {group.partition_count}, greatest gap "
            f"{max(one.gap for one in cells):.3%}, {sum(one.gap == 0 for one in cells)} of "
            f"{len(cells)} proven, {time.monotonic() - start:.0f} s, worse: {lost}",
            flush=True,
        )
    print("members x partitions  cells  proven  mean gap  greatest gap  worse: judges  CP-SAT")
    for size, cells in sizes.items():
        gaps = [one.gap for one in cells]
        if cells:
            print(
                f"{f'from {size[0]}':>20}  {len(cells):5}  {gaps.count(0):6}  "
                f"{sum(gaps) / len(gaps):8.3%}  {max(gaps):12.3%}  "
                f"{sum(one.value > min(one.judges) for one in cells):13}  "
                f"{sum(one.value > one.plain for one in cells):6}"
            )


def _size(text: str) -> tuple[int, int]:
    members, partitions = text.split("x")
    return int(members), int(partitions)


def _cells(group: Group, most: int, seconds: float) -> list[_Cell]:
    """Return the cells of one group for 0 to ``most`` moves."""
    problem, begin = build_problem(group), time.monotonic()
    points = frontier(group, limits=SearchLimits(time=seconds)).points
    used = time.monotonic() - begin
    judges = [judge(problem, most) for judge in (by_maximum, by_squares, beam)]
    deadline, cells = time.monotonic() + used, []
    plain = _PlainModel(problem)
    for moves in range(most + 1):
        value = [one for one in points if one.movement.value <= moves][-1].imbalance.value
        # The bound of a point holds for its number of moves; a later bound is not higher.
        later = [one.imbalance.bound for one in points if one.movement.value >= moves]
        bound = later[0] if later else points[-1].imbalance.bound
        lowest = tuple(values[moves] for values in judges)
        left = deadline - time.monotonic()
        found, _ = (
            plain.lowest(moves, left / (most + 1 - moves)) if left > 0 else (plain.highest, 0)
        )
        cells.append(_Cell(moves, value, bound, lowest, found))
    return cells


def _worse(cell: _Cell) -> bool:
    return cell.value > min(cell.plain, *cell.judges)


if __name__ == "__main__":
    main()
