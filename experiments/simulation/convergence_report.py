"""Which groups never settle: cooperative rebalances that follow each other, counted.

A cooperative rebalance withholds what changes hands, so two rounds are the rule. A third
or later one means that the assignor changed its mind, and a state that comes back means
that it never ends.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kassay.experiments.implementations.convergence import Ending, withheld_partitions
from kassay.experiments.study.families.registry import FAMILIES, USUAL
from kassay.reference.assignors import run_assignor
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import rejoin

MOST = 50
"""Rounds after which a group that never repeated itself is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceCounts:
    """How a group came to rest.

    Parameters
    ----------
    group
        Its id.
    ending
        ok, or why it has no end: `Ending.NONTERMINATING` for one round that never ends or
        rounds that repeat, `Ending.FAILED` where the real class throws.
    rounds
        Rebalances until nothing was withheld, or until that end.
    """

    group: str
    ending: Ending
    rounds: int


def count_convergence(group: Group, assignor: str = "cooperative-sticky") -> ConvergenceCounts:
    """Rebalance a group until nothing is withheld any more.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> count_convergence(NAMED_GROUPS["B"].group).rounds
    1
    """
    seen: set[tuple[object, ...]] = set()
    now, name = group, group.id or ""
    for number in range(1, MOST + 1):
        outcome = run_assignor(now, assignor)
        if outcome.failed is not None:
            return ConvergenceCounts(group=name, ending=Ending.FAILED, rounds=number)
        if outcome.assignment is None:
            return ConvergenceCounts(group=name, ending=Ending.NONTERMINATING, rounds=number)
        if not withheld_partitions(now, outcome.assignment):
            return ConvergenceCounts(group=name, ending=Ending.OK, rounds=number)
        state = tuple((member, tuple(tps)) for member, tps in outcome.assignment.items())
        if state in seen:
            return ConvergenceCounts(group=name, ending=Ending.NONTERMINATING, rounds=number)
        seen.add(state)
        now = rejoin(now, outcome.assignment)
    return ConvergenceCounts(group=name, ending=Ending.NONTERMINATING, rounds=MOST)


def sweep(families: Iterable[str], seeds: int) -> Iterator[tuple[str, Counter[str]]]:
    """Count, family by family, rounds and endings over the first seeds of each."""
    for name in families:
        family = FAMILIES[name]
        counts: Counter[str] = Counter()
        for seed in range(seeds if family.size is None else min(seeds, family.size)):
            found = count_convergence(family.build(seed, start="cooperative-sticky"))
            known = found.ending is Ending.OK
            counts[f"{found.rounds} rounds" if known else str(found.ending)] += 1
        yield name, counts


def main(seeds: str = "200") -> None:
    """Print the counts of every family."""
    for name, counts in sweep(USUAL, int(seeds)):
        told = ", ".join(f"{key}: {count}" for key, count in sorted(counts.items()))
        print(f"{name}: {told}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:2])
