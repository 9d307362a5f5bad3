"""Both methods against brute force on hundreds of thousands of small groups.

``make exhaustive``: every group up to symmetry with at most 3 members and 5 partitions,
and random ones with up to 4 members, 4 topics and 8 partitions, a quarter of the
ownership missing. Runs in parallel processes; a shortfall is printed as a group document
and ends the run with exit code 1.
"""

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

from rich.progress import track

from kassay.experiments.study.families.exhaustive_groups import exhaustive_groups
from kassay.reference import Group, violations
from kassay.reference.documents.json_codec import group_document
from kassay.solver import Method, solve
from tests import brute_force
from tests.random_groups import random_group

MEMBERS, PARTITIONS = 3, 5


def every_small_world() -> Iterator[Group]:
    """All groups of at most `MEMBERS` members and `PARTITIONS` partitions, up to symmetry."""
    for members in range(1, MEMBERS + 1):
        for partitions in range(1, PARTITIONS + 1):
            yield from exhaustive_groups(members=members, partitions=partitions)


def random_groups(seeds: Iterable[int]) -> Iterator[Group]:
    """One random group a seed."""
    return (random_group(seed) for seed in seeds)


def shortfall(group: Group) -> str | None:
    """Say where a method differs from brute force; None if none does."""
    expected = brute_force.optimum(group)
    for method in (Method.FLOW, Method.CP_SAT):
        solution = solve(group, method=method)
        found = (solution.imbalance.value, solution.movement.value)
        broken = next(violations(group, solution.assignment), None)
        if found != expected or not solution.is_optimal or broken is not None:
            document = json.dumps(group_document(group))
            return f"{method}: {found}, {solution.status}, {broken}; wanted {expected}: {document}"
    return None


def main() -> int:
    """Check every group and report shortfalls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=580_000, help="random groups")
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.random)
    groups = chain(every_small_world(), random_groups(seeds))
    checked = short = 0
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        results = pool.imap_unordered(shortfall, groups, chunksize=200)
        for said in track(results, description="groups", total=None):
            checked += 1
            if said is not None:
                short += 1
                sys.stdout.write(said + "\n")
    sys.stdout.write(f"{checked} groups, {short} shortfalls\n")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
