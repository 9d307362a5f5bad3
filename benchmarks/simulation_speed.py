"""How fast rebalances simulate: ``python -m benchmarks.simulation_speed 10000``.

A group of 100 members and 1,000 partitions; one member after the other restarts, and each
departure and each return is a rebalance. CPU seconds, those of the assignor aside.
"""

import sys
import time

from kassay.experiments.simulation.policies import POLICIES, Policy
from kassay.experiments.simulation.script import Action, MemberPlan, Script, ScriptEvent, TopicPlan
from kassay.experiments.simulation.simulation import Simulation
from kassay.experiments.simulation.simulation_result import Step
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group

MEMBERS, PARTITIONS = 100, 1_000
_FIRST, _EVERY, _AWAY = 20_000, 8_000, 4_000


class _Timed:
    """An assignor that takes the time it takes."""

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
    """Simulate so many rebalances.

    Returns
    -------
    tuple
        Rebalances that there were, CPU seconds of the simulation, and of the assignor.

    Examples
    --------
    >>> done, _, _ = measure(4)
    >>> done
    5
    """
    assignor, steps = _Timed(policy), list[int]()
    world = Simulation(
        _script(rebalances),
        Policy(policy.name, policy.protocol, assignor),
        sink=lambda step: steps.append(_generation(step)),
    )
    begun = time.process_time()
    world.run()
    spent = time.process_time() - begun
    return len(steps), spent - assignor.seconds, assignor.seconds


def _generation(step: Step) -> int:
    return step.generation


def _script(rebalances: int) -> Script:
    restarts = rebalances // 2
    return Script(
        name="speed",
        topics=(TopicPlan(name="t", partitions=PARTITIONS),),
        members=tuple(MemberPlan(id=f"c{n:02d}", topics=("t",)) for n in range(MEMBERS)),
        events=tuple(
            ScriptEvent(
                at=_FIRST + n * _EVERY,
                act=Action.RESTART,
                member=f"c{n % MEMBERS:02d}",
                lasts=_AWAY,
            )
            for n in range(restarts)
        ),
        until=_FIRST + restarts * _EVERY,
    )


def main(rebalances: str = "10000", policy: str = "range") -> None:
    """Measure and print."""
    done, spent, assigning = measure(int(rebalances), POLICIES[policy])
    print(
        f"{done} rebalances of {MEMBERS} members under {policy}: {spent:.1f} CPU s, "
        f"{1000 * spent / done:.2f} ms each; the assignor took {assigning:.1f} s more"
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
