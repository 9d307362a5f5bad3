"""Benchmark typical weighted groups: fewest moves within 2% of the minimum makespan.

Run it with ``python -m benchmarks.typical_weights [--groups N] [--seconds S]``, with
``--constraints`` for groups with a kind of constraint each. Each group is
solved by kassay, and by a plain CP-SAT model with variables for moves. The plain model receives the
load limit from kassay's bound on the makespan, so that it solves only the second level. Both use
one worker. Times are processor seconds.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median

from benchmarks.plain_cpsat_model import FewestMoves, plain_fewest_moves
from benchmarks.timing import KASSAY, Timing
from benchmarks.typical_groups import Case, cases, constrained_cases, named_groups, zipf_group
from kassay.solver.evaluation import group_constraints
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Movement
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

# kassay may take this many times as long as the plain model, plus some seconds.
_RATIO, _EXTRA = 1.5, 0.3
_GROUPS_IN_BENCH = 12


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results and processor seconds of kassay and of the plain model on one group."""

    case: Case
    solution: Solution
    seconds: float
    plain: FewestMoves
    plain_seconds: float

    @property
    def is_worse(self) -> bool:
        """Return whether kassay's moves or bound are worse than those of the plain model."""
        moves = self.solution.movement
        found = self.plain.moves
        return (found is not None and found < moves.value) or self.plain.bound > moves.bound

    @property
    def is_slow(self) -> bool:
        """Return whether kassay exceeds 1.5 times the time of the plain model plus 0.3 s."""
        return self.seconds > _RATIO * self.plain_seconds + _EXTRA

    def __str__(self) -> str:
        """Format the comparison as a row of a Markdown table."""
        moves, found = self.solution.movement, self.plain.moves
        marks = " slow" * self.is_slow + " worse" * self.is_worse
        return (
            f"| {self.case.group.id} | {'–' if found is None else found}/{self.plain.bound} "
            f"| {self.plain_seconds:.2f} | {moves.value}/{moves.bound} "
            f"| {self.seconds:.2f}{marks} |"
        )


def compare(case: Case, *, seconds: float) -> Comparison:
    """Solve a group by kassay and by the plain model, with the same limit and one worker."""
    start = time.process_time()
    solution = solve(
        case.group,
        levels=(*case.levels, Movement()),
        constraints=case.rules,
        limits=SearchLimits(time=seconds),
    )
    solved = time.process_time()
    problem = build_problem(case.group)
    limits = [
        (level, level.tolerance.limit(found.bound))
        for level, found in zip(case.levels, solution.levels, strict=False)
    ]
    rules = (*case.rules, *group_constraints(case.group))
    plain = plain_fewest_moves(problem, limits, rules=rules, seconds=seconds)
    end = time.process_time()
    return Comparison(case, solution, solved - start, plain, end - solved)


def _load_libraries() -> None:
    """Load the libraries of both contestants, so that the first one does not pay for it."""
    compare(Case("", zipf_group(random.Random(0), 100, 12, 0.6)), seconds=5)


def timings() -> Iterator[Timing]:
    """Compare kassay and the plain model on the named groups and some random groups."""
    _load_libraries()
    named = (Case("named", group) for group in named_groups())
    for case in (*named, *cases(_GROUPS_IN_BENCH)):
        found = compare(case, seconds=60)
        moves = found.solution.movement
        for name, seconds, value, bound in (
            (KASSAY, found.seconds, moves.value, moves.bound),
            ("plain CP-SAT", found.plain_seconds, found.plain.moves, found.plain.bound),
        ):
            note = f"{value} moves of at least {bound}"
            yield Timing(
                benchmark="typical-weights",
                case=case.group.id or "",
                implementation=name,
                seconds=seconds,
                note=note,
            )


def _summary(kind: str, rows: Sequence[Comparison]) -> str:
    """Return the row of a kind of groups in the last table: counts, and seconds of both."""
    proven = sum(row.solution.is_optimal for row in rows)
    plain_proven = sum(row.plain.moves == row.plain.bound for row in rows)
    seconds = [row.seconds for row in rows], [row.plain_seconds for row in rows]
    middle = ", ".join(f"{median(one):.2f}" for one in seconds)
    longest = ", ".join(f"{max(one):.1f}" for one in seconds)
    return (
        f"| {kind} | {len(rows)} | {proven}, {plain_proven} | {sum(row.is_slow for row in rows)} "
        f"| {sum(row.is_worse for row in rows)} | {middle} | {longest} |"
    )


def main() -> None:
    """Compare kassay and the plain model on the command line; print a table and a summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.typical_weights")
    parser.add_argument("--groups", type=int, default=200, help="random groups (default 200)")
    parser.add_argument("--first", type=int, default=0, help="groups to leave out (default 0)")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit per run (default 20)")
    parser.add_argument(
        "--constraints",
        action="store_true",
        help="the same groups with one kind of constraint each",
    )
    parser.add_argument("--named", action="store_true", help="add the groups of the documentation")
    chosen = parser.parse_args()
    _load_libraries()
    print("| group | plain CP-SAT | seconds | kassay | seconds |")
    print("|---|--:|--:|--:|--:|")
    named = [Case("named", group) for group in named_groups()] if chosen.named else []
    of_kind: dict[str, list[Comparison]] = {}
    drawn = constrained_cases if chosen.constraints else cases
    for case in (*named, *islice(drawn(chosen.groups), chosen.first, None)):
        row = compare(case, seconds=chosen.seconds)
        of_kind.setdefault(case.kind, []).append(row)
        print(row, flush=True)
    of_kind["all"] = [row for rows in of_kind.values() for row in rows]
    print("\n| kind | groups | proven: kassay, plain | slower | worse | median seconds | maximum |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for kind, rows in of_kind.items():
        print(_summary(kind, rows))


if __name__ == "__main__":
    main()
