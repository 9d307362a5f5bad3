"""Speed of the simulation: ``python -m benchmarks.simulation_speed 10000 [POLICY]``.

A group of 100 members and 1,000 partitions; the members restart in turn, and each departure
and each return is a rebalance. Prints CPU seconds, without and of the assignor.
"""

import sys
import time

from kassay.experiments.simulation.policies import POLICIES, Policy
from kassay.experiments.simulation.script import Action, MemberPlan, Script, ScriptEvent, TopicPlan
from kassay.experiments.simulation.simulation import Simulation
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group

MEMBERS, PARTITIONS = 100, 1_000
_FIRST, _EVERY, _AWAY = 20_000, 8_000, 4_000


class _Timed:
    """An assignor that measures its CPU time."""

    def __init__(self, policy: Policy) -> None:
        self.seconds = 0.0
        self._assign = policy.assign

    def __call__(self, group: Group) -> Assignment:
        begun = time.process_time()
        try:
            return self._assign(group)
        finally:
            self.seconds += time.process_time() - begun


def measure(rebalances: int, policy: Policy = POLICIES["range"]) -> tuple[int, float, float]:
    """Simulate a number of rebalances.

    Returns
    -------
    tuple
        Number of rebalances, CPU seconds of the simulation, and of the assignor.

    Examples
    --------
    >>> done, _, _ = measure(4)
    >>> done
    5
    """
    assignor, generations = _Timed(policy), list[int]()
    simulation = Simulation(
        _script(rebalances),
        Policy(policy.name, policy.protocol, assignor),
        record=lambda rebalance: generations.append(rebalance.generation),
    )
    begun = time.process_time()
    simulation.run()
    spent = time.process_time() - begun
    return len(generations), spent - assignor.seconds, assignor.seconds


def _script(rebalances: int) -> Script:
    restarts = rebalances // 2
    return Script(
        name="speed",
        topics=(TopicPlan(name="t", partitions=PARTITIONS),),
        members=tuple(MemberPlan(id=f"c{n:02d}", topics=("t",)) for n in range(MEMBERS)),
        events=tuple(
            ScriptEvent(
                at=_FIRST + n * _EVERY,
                action=Action.RESTART,
                member=f"c{n % MEMBERS:02d}",
                duration=_AWAY,
            )
            for n in range(restarts)
        ),
        until=_FIRST + restarts * _EVERY,
    )


def main(rebalances: str = "10000", policy: str = "range") -> None:
    """Measure one policy and print the result."""
    done, spent, assigning = measure(int(rebalances), POLICIES[policy])
    print(
        f"{done} rebalances of {MEMBERS} members under {policy}: {spent:.1f} CPU s, "
        f"{1000 * spent / done:.2f} ms each; the assignor took {assigning:.1f} s more"
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
