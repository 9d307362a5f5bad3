"""How many rounds cooperative rebalances take over random scripts.

``python -m tests.experiments.simulation.count_rounds 2000`` prints, for each number of
rounds in a row that saw the same members, subscriptions and topics, how often it came.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise

from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.simulation import Simulation
from kassay.experiments.simulation.simulation_result import Step
from kassay.reference.model.group import Group
from tests.experiments.simulation.random_scripts import random_script


def rounds(episode: list[Step]) -> int:
    """Count the most steps in a row between which nobody came, went or changed."""
    longest = run = 1
    for before, after in pairwise(episode):
        run = run + 1 if _setting(before.group) == _setting(after.group) else 1
        longest = max(longest, run)
    return longest


def _setting(group: Group) -> object:
    return group.topics, [(member.id, member.subscription) for member in group.members]


def count(seeds: range) -> Counter[int]:
    """Run the scripts of some seeds, and count their episodes by rounds."""
    counts: Counter[int] = Counter()
    for seed in seeds:
        history = Simulation(random_script(seed), POLICIES["cooperative-sticky"]).run()
        counts.update(rounds(episode) for episode in history.episodes())
    return counts


if __name__ == "__main__":
    for number, times in sorted(count(range(int(sys.argv[1]))).items()):
        print(f"{number} rounds: {times}")  # noqa: T201
