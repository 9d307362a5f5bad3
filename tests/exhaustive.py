"""Compare both methods with brute force on hundreds of thousands of small groups.

``make exhaustive`` checks every group up to symmetry with at most 3 members and 5 partitions,
and random groups with up to 4 members, 4 topics and 8 partitions. Differences are printed and give
exit code 1. ``make adversary`` checks weights up to 2**62, all levels and constraints.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain

from kassay import Group, Method, solve, violations
from kassay.experiments.study.families.finite_families import exhaustive_groups
from kassay.reference.documents.json_codec import group_document
from tests import brute_force
from tests.random_groups import random_group
from tests.seeded_checks import print_errors, seed_parser

MEMBERS, PARTITIONS = 3, 5


def small_groups(most_partitions: int = PARTITIONS) -> Iterator[Group]:
    """Yield all groups up to `MEMBERS` members and the given partitions, up to symmetry."""
    for members in range(1, MEMBERS + 1):
        for partitions in range(1, most_partitions + 1):
            yield from exhaustive_groups(members=members, partitions=partitions)


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


def differences(group: Group) -> list[str]:
    """Describe the differences of one group."""
    found = difference(group)
    return [] if found is None else [found]


def main() -> int:
    """Check every group and print differences."""
    parser = seed_parser(__doc__, groups=680_000)
    parser.add_argument("--small", action=argparse.BooleanOptionalAction, default=True)
    chosen = parser.parse_args()
    seeds = range(chosen.seed, chosen.seed + chosen.groups)
    groups = chain(small_groups() if chosen.small else (), map(random_group, seeds))
    count = print_errors(differences, chosen, chunksize=200, cases=groups)
    sys.stdout.write(f"{count} differences\n")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
