"""Compare both methods with brute force on hundreds of thousands of small groups.

``make exhaustive`` checks every group up to symmetry with at most 3 members and 5 partitions,
and random groups with up to 4 members, 4 topics and 8 partitions. It also checks random groups
with weights up to 2**62, tolerances and constraints. Differences are printed and give exit code 1.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

from rich.progress import track

from kassay import Group, Method, solve, violations
from kassay.experiments.study.families.fixed_groups import exhaustive_groups
from kassay.reference.documents.json_codec import group_document
from tests import brute_force
from tests.random_groups import random_group
from tests.solver.adversarial_cases import adversarial_error
from tests.solver.big_weight_cases import big_weight_case

MEMBERS, PARTITIONS = 3, 5


def small_groups(most_partitions: int = PARTITIONS) -> Iterator[Group]:
    """Yield all groups up to `MEMBERS` members and the given partitions, up to symmetry."""
    for members in range(1, MEMBERS + 1):
        for partitions in range(1, most_partitions + 1):
            yield from exhaustive_groups(members=members, partitions=partitions)


def random_groups(seeds: Iterable[int]) -> Iterator[Group]:
    """Yield one random group per seed."""
    return (random_group(seed) for seed in seeds)


def difference(group: Group) -> str | None:
    """Describe the difference between a method and brute force; None if equal."""
    expected = brute_force.optimum(group)
    for method in (Method.FLOW, Method.CP_SAT):
        solution = solve(group, method=method)
        found = (solution.imbalance.value, solution.movement.value)
        broken = next(violations(group, solution.assignment), None)
        if found != expected or not solution.is_optimal or broken is not None:
            document = json.dumps(group_document(group))
            return (
                f"{method}: {found}, {solution.status}, {broken}; expected {expected}: {document}"
            )
    return None


def big_weight_error(seed: int) -> str | None:
    """Describe the difference of one group with large weights; None if equal."""
    found = adversarial_error(big_weight_case(seed), "auto")
    return None if found is None else f"big weights, seed {seed}: {found}"


def main() -> int:
    """Check every group and print differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=580_000, help="random groups")
    parser.add_argument(
        "--big-weights", type=int, default=100_000, help="random groups with weights up to 2**62"
    )
    parser.add_argument("--small", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.random)
    groups = chain(small_groups() if chosen.small else (), random_groups(seeds))
    heavy = range(chosen.seed, chosen.seed + chosen.big_weights)
    checked = differences = 0
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        results = chain(
            pool.imap_unordered(difference, groups, chunksize=200),
            pool.imap_unordered(big_weight_error, heavy, chunksize=200),
        )
        for error in track(results, description="groups", total=None):
            checked += 1
            if error is not None:
                differences += 1
                sys.stdout.write(error + "\n")
    sys.stdout.write(f"{checked} groups, {differences} differences\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
