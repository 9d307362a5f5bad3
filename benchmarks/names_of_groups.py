"""Measure how the results on the small groups depend on names and numbers.

``python -m benchmarks.names_of_groups`` runs the sticky and the uniform assignor on every group of
the family ``worlds-3x3`` with all names of its members and topics and all numbers of its
partitions. It prints the groups whose sum of squared loads is above the minimum with the names of
the family, and with at least one choice of names.
"""

import argparse
from collections import Counter

from kassay.experiments.comparison.compare import solve_optimum
from kassay.experiments.counterexamples.find_counterexample import namings
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.reference.assignors import run_assignor
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import sum_of_squares

ASSIGNORS = ("sticky", "uniform")
HEADER = ("assignor", "groups", "missed", "missed with some names", "copies", "missed copies")


def count_missed(family: str, assignor: str) -> Counter[str]:
    """Count the groups of a finite family, and their copies, that an assignor does not balance."""
    groups = FAMILIES[family]
    if groups.size is None:
        raise InternalError(f"{family} has no fixed number of groups")
    counts: Counter[str] = Counter()
    for seed in range(groups.size):
        group = groups.build(seed)
        optimum = solve_optimum(group)
        if optimum.assignment is None or not optimum.is_optimal:
            raise InternalError(f"the optimum of {group.id} is not proven")
        least = sum_of_squares(optimum.assignment.counts().values())
        missed = [_squares(copy, assignor) > least for copy in namings(group)]
        values = (1, int(missed[0]), int(any(missed)), len(missed), sum(missed))
        counts.update(dict(zip(HEADER[1:], values, strict=True)))
    return counts


def _squares(group: Group, assignor: str) -> int:
    assignment = run_assignor(group, assignor).assignment
    if assignment is None:
        raise InternalError(f"{assignor} has no result on {group.id}")
    return sum_of_squares(assignment.counts().values())


def main() -> None:
    """Print one line per assignor, as a Markdown table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.names_of_groups")
    parser.add_argument("--family", default="worlds-3x3", help="finite family (default worlds-3x3)")
    family = parser.parse_args().family
    print(f"| {' | '.join(HEADER)} |\n|---{'|--:' * (len(HEADER) - 1)}|")
    for assignor in ASSIGNORS:
        found = count_missed(family, assignor)
        print(f"| {assignor} | {' | '.join(str(found[name]) for name in HEADER[1:])} |")


if __name__ == "__main__":
    main()
