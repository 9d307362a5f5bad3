"""Cost of a simulation: time without consumers, moves, and gaps to the optimum."""

from dataclasses import dataclass

from kassay.experiments.comparison.compare import compare
from kassay.experiments.implementations.convergence import Ending, StableResult
from kassay.experiments.simulation.policies import Policy
from kassay.experiments.simulation.results.simulation_result import (
    SimulatedRebalance,
    SimulationResult,
)
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationCost:
    """Costs of one simulation from its first event on; ``result`` has its moves and lag."""

    result: SimulationResult
    protocol: str
    rebalances: int  # generations, or target assignments under the consumer protocol
    rounds: int  # maximum number of rebalances until nothing was withheld
    # Summed over the rebalances:
    needed_moves: int  # fewest moves to minimum imbalance
    unnecessary_moves: int  # moves beyond the fewest that give the same imbalance
    imbalance_gap: int  # sum of squared loads above the minimum
    proven: bool  # whether every optimum in these sums is proven

    @property
    def unowned_seconds(self) -> float:
        """Return the partition-seconds without a consumer."""
        return self.result.unowned_ms / 1000


def cost_of(result: SimulationResult, policy: Policy, *, measured_from: int) -> SimulationCost:
    """Compute the cost of a simulation, and compare each rebalance with the optimum.

    Only rebalances from ``measured_from`` (ms) on count.
    """
    sequences = [s for s in result.sequences() if s[0].at >= measured_from]
    needed = unnecessary = gap = 0
    proven = True
    for group, assignment in filter(None, map(_combined, sequences)):
        stable = StableResult(ending=Ending.OK, assignment=assignment, rounds=1)
        comparison = compare(group, policy.name, result=stable)
        proven = proven and comparison.unnecessary_moves is not None
        needed += comparison.movement.optimum or 0
        unnecessary += comparison.unnecessary_moves or 0
        gap += comparison.imbalance[Measure.SUM_OF_SQUARES].gap or 0
    return SimulationCost(
        result=result,
        protocol=str(policy.protocol),
        rebalances=sum(map(len, sequences)),
        rounds=max(map(len, sequences), default=0),
        needed_moves=needed,
        unnecessary_moves=unnecessary,
        imbalance_gap=gap,
        proven=proven,
    )


def _combined(sequence: list[SimulatedRebalance]) -> tuple[Group, Assignment] | None:
    """Return the group and the result of a sequence of rebalances, seen as one rebalance.

    The group is the first after the last change of members or topics. The result is the last
    assignment.
    """
    last = sequence[-1]
    if last.assignment is None or not last.complete or not last.group.members:
        return None
    final = _membership(last.group)
    first = next(rebalance for rebalance in sequence if _membership(rebalance.group) == final)
    return first.group, last.assignment


def _membership(group: Group) -> object:
    return group.topics, [(member.id, member.subscription) for member in group.members]
