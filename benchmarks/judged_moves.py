"""Compare the table of lowest maximum loads with simple searches, per number of moves.

``python -m benchmarks.judged_moves 200 --moves 20 --seconds 30`` prints one line per number of
moves: the mean and the greatest gap to the bound, and the number of groups in which a simple
search or the plain CP-SAT model finds a lower maximum load.
"""

import argparse
import time

from kassay.solver.frontier.frontier import frontier
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from tests.solver.move_judges import beam, by_cpsat, by_maximum, by_squares, seeded_groups


def main() -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", type=int, nargs="?", default=200)
    parser.add_argument("--moves", type=int, default=20, help="greatest number of moves")
    parser.add_argument("--partitions", type=int, default=3_000, help="greatest number per group")
    parser.add_argument("--seconds", type=float, default=30.0, help="time limit per group")
    options = parser.parse_args()
    gaps: list[list[float]] = [[] for _ in range(options.moves + 1)]
    worse = [0] * (options.moves + 1)
    for group in seeded_groups(options.groups, most_partitions=options.partitions):
        problem, start = build_problem(group), time.monotonic()
        rows = frontier(group, limits=SearchLimits(time=options.seconds)).table()
        seconds = time.monotonic() - start
        judges = [judge(problem, options.moves) for judge in (by_maximum, by_squares, beam)]
        for moves in range(options.moves + 1):
            row = [one for one in rows if one.moves <= moves][-1]
            plain, _ = by_cpsat(problem, moves, seconds / (options.moves + 1))
            worse[moves] += row.imbalance > min(plain, *(values[moves] for values in judges))
            # The bound of a point holds for its number of moves; a later bound is not higher.
            later = [one.imbalance_bound for one in rows if one.moves >= moves]
            bound = later[0] if later else rows[-1].imbalance_bound
            gaps[moves].append(row.imbalance / max(1, bound) - 1)
    print("moves  mean gap  greatest gap  worse than a judge")
    for moves, (found, count) in enumerate(zip(gaps, worse, strict=True)):
        print(f"{moves:5}  {sum(found) / len(found):8.3%}  {max(found):12.3%}  {count:18}")


if __name__ == "__main__":
    main()
