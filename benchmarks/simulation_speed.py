"""Benchmark of the simulator: CPU time per simulated rebalance.

A group of 100 members and 1,000 partitions. The members restart in turn; each departure and
each return is a rebalance.
"""

import time
from collections.abc import Iterator, Sequence

from benchmarks.timing import Timing
from kassay.experiments.simulation.assignor_policies import POLICIES, Policy
from kassay.experiments.simulation.run_simulation import Simulation
from kassay.experiments.simulation.script import Action, MemberPlan, Script, ScriptEvent, TopicPlan
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group

REBALANCES = 2_000
_POLICIES = ("range", "cooperative-sticky", "uniform")
_MEMBERS, _PARTITIONS = 100, 1_000
_FIRST_MS, _INTERVAL_MS, _DOWNTIME_MS = 20_000, 8_000, 4_000


def simulated_rebalances(
    rebalances: int = REBALANCES, policies: Sequence[str] = _POLICIES
) -> Iterator[Timing]:
    """Measure the CPU time of the simulator per policy, without the time of the assignor.

    Examples
    --------
    >>> [timing.case for timing in simulated_rebalances(4, ["range"])]
    ['5 rebalances, range']
    """
    for name in policies:
        policy = POLICIES[name]
        assignor = _TimedAssignor(policy)
        simulation = Simulation(_script(rebalances), Policy(name, policy.protocol, assignor))
        start = time.process_time()
        count = len(simulation.run().rebalances)
        seconds = time.process_time() - start - assignor.seconds
        yield Timing(
            benchmark="simulation",
            case=f"{count:,} rebalances, {name}",
            seconds=seconds,
            note=f"{1e3 * seconds / count:.1f} ms per rebalance, "
            f"assignor {1e3 * assignor.seconds / count:.1f} ms",
        )


class _TimedAssignor:
    """Wrapper of an assignor that measures the CPU time of the assignor."""

    def __init__(self, policy: Policy) -> None:
        self.seconds = 0.0
        self._assign = policy.assign

    def __call__(self, group: Group) -> Assignment:
        start = time.process_time()
        try:
            return self._assign(group)
        finally:
            self.seconds += time.process_time() - start


def _script(rebalances: int) -> Script:
    restarts = rebalances // 2
    return Script(
        name="speed",
        topics=(TopicPlan(name="t", partitions=_PARTITIONS),),
        members=tuple(MemberPlan(id=f"c{n:02d}", topics=("t",)) for n in range(_MEMBERS)),
        events=tuple(
            ScriptEvent(
                at=_FIRST_MS + n * _INTERVAL_MS,
                action=Action.RESTART,
                member=f"c{n % _MEMBERS:02d}",
                duration=_DOWNTIME_MS,
            )
            for n in range(restarts)
        ),
        until=_FIRST_MS + restarts * _INTERVAL_MS,
    )
