"""What a history cost, and what of that the optimum would have spared."""

from dataclasses import dataclass

from kassay.experiments.compare import LIMITS, CaseLimits, compare
from kassay.experiments.implementations.convergence import Ending, StableResult
from kassay.experiments.simulation.policies import Policy
from kassay.experiments.simulation.simulation_result import SimulationResult, Step
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationCost:
    """Accounts of one history from its first event on. Fields are columns.

    Parameters
    ----------
    script, policy, protocol
        What was run.
    rebalances
        Generations, or target assignments, that came to be.
    rounds
        Most rebalances in a row until nothing was withheld.
    moves
        Partitions that went from one member of the group to another.
    needed
        Fewest moves to the least imbalance, summed over the rebalances as they came.
    unnecessary
        Moves beyond the fewest to an assignment as balanced as the one made.
    imbalance_gap
        Sum of squared loads above the least possible, summed over the rebalances.
    proven
        Whether every optimum in these sums is proven.
    stopped
        Partition-seconds without a consumer.
    unread
        Messages that came to partitions while those had no consumer.
    rereads
        Messages read twice.
    lag_peak
        Most messages not read yet at any poll.
    """

    script: str
    policy: str
    protocol: str
    rebalances: int
    rounds: int
    moves: int
    needed: int
    unnecessary: int
    imbalance_gap: int
    proven: bool
    stopped: float
    unread: int
    rereads: int
    lag_peak: int


def cost_of(
    history: SimulationResult, policy: Policy, *, begins: int, limits: CaseLimits = LIMITS
) -> SimulationCost:
    """Sum up what a history cost, every rebalance of it solved.

    Parameters
    ----------
    history
        What happened.
    policy
        Under which policy.
    begins
        Moment from which on rebalances count, in milliseconds.
    limits
        What each search for an optimum may use up.
    """
    episodes = [e for e in history.episodes() if e[0].at >= begins]
    needed = unnecessary = gap = 0
    proven = True
    for group, assignment in filter(None, map(_rebalance, episodes)):
        settled = StableResult(ending=Ending.OK, assignment=assignment, rounds=1)
        found = compare(group, policy.name, settled=settled, limits=limits)
        proven = proven and found.unnecessary_moves is not None
        needed += found.movement_optimum or 0
        unnecessary += found.unnecessary_moves or 0
        gap += found.sum_of_squares_gap or 0
    return SimulationCost(
        script=history.script,
        policy=history.policy,
        protocol=str(policy.protocol),
        rebalances=sum(map(len, episodes)),
        rounds=max(map(len, episodes), default=0),
        moves=history.moves,
        needed=needed,
        unnecessary=unnecessary,
        imbalance_gap=gap,
        proven=proven,
        stopped=history.stopped_ms / 1000,
        unread=history.unread,
        rereads=history.rereads,
        lag_peak=history.lag_peak,
    )


def _rebalance(episode: list[Step]) -> tuple[Group, Assignment] | None:
    """Return the rebalance that an episode amounts to: from before its rounds to after them.

    Where members or topics changed between two rounds, it begins with the first round that
    saw them as they were at the end.
    """
    last = episode[-1]
    if last.assignment is None or not last.complete or not last.group.members:
        return None
    first = next(step for step in episode if _setting(step.group) == _setting(last.group))
    return first.group, last.assignment


def _setting(group: Group) -> object:
    return group.topics, [(member.id, member.subscription) for member in group.members]
