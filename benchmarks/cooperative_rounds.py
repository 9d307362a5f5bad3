"""Count consecutive rebalances until a cooperative assignor has assigned all partitions.

``python -m benchmarks.cooperative_rounds families 200`` runs ``cooperative-sticky`` on the
first 200 groups of each family; ``... scripts 2000`` simulates 2,000 random scripts. A third
round means that the assignor changed its own result.
"""

import argparse
from collections import Counter
from itertools import pairwise

from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.experiments.simulation.run_simulation import simulate
from kassay.experiments.simulation.simulation_result import SimulatedRebalance
from kassay.experiments.study.families.all_families import FAMILIES, USUAL
from kassay.reference.model.group import Group
from tests.experiments.simulation.random_scripts import random_script

_ASSIGNOR = "cooperative-sticky"


def family_rounds(name: str, seeds: int) -> Counter[str]:
    """Count the groups of a family per number of rebalances until the assignment is stable.

    Failures are counted per kind of failure.
    """
    family = FAMILIES[name]
    counts: Counter[str] = Counter()
    for seed in range(seeds if family.size is None else min(seeds, family.size)):
        result = run_until_stable(family.build(seed, start=_ASSIGNOR), _ASSIGNOR)
        is_stable = result.ending is Ending.OK
        counts[f"{result.rounds} rounds" if is_stable else str(result.ending)] += 1
    return counts


def script_rounds(seeds: int) -> Counter[str]:
    """Simulate random scripts, and count their sequences of rebalances by length."""
    counts: Counter[str] = Counter()
    for seed in range(seeds):
        result = simulate(random_script(seed), POLICIES[_ASSIGNOR])
        counts.update(f"{_rounds(sequence)} rounds" for sequence in result.sequences())
    return counts


def _rounds(sequence: list[SimulatedRebalance]) -> int:
    """Return the maximum number of consecutive rebalances with an unchanged group."""
    longest = length = 1
    for before, after in pairwise(sequence):
        length = length + 1 if _membership(before.group) == _membership(after.group) else 1
        longest = max(longest, length)
    return longest


def _membership(group: Group) -> object:
    return group.topics, [(member.id, member.subscription) for member in group.members]


def main() -> None:
    """Print the number of groups per number of rebalances, for families or random scripts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", choices=["families", "scripts"])
    parser.add_argument("seeds", type=int, help="groups of each family, or scripts")
    chosen = parser.parse_args()
    if chosen.source == "scripts":
        counts = {"random scripts": script_rounds(chosen.seeds)}
    else:
        counts = {name: family_rounds(name, chosen.seeds) for name in USUAL}
    for name, rounds in counts.items():
        print(f"{name}: {', '.join(f'{key}: {n}' for key, n in sorted(rounds.items()))}")


if __name__ == "__main__":
    main()
