"""Rebalances of a trajectory one by one: permitted loads, and the fewest moves at each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import RebalanceEvidence
from kassay.solver.certify import certify
from kassay.solver.constraints import group_constraints
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import is_feasible, level_sets, optimal_counts
from kassay.solver.network.subscription_network import SubscriptionNetwork, build_network
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import Ints, build_problem
from kassay.solver.solution import LevelValue, Solution, Status
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True)
class _EqualStep:
    """Network and level sets of a group with equal weights."""

    group: Group
    level: Imbalance
    network: SubscriptionNetwork
    counts: Ints  # partitions per arc of an optimal assignment
    sets: tuple[tuple[int, ...], ...]  # level sets of members

    @classmethod
    def of(cls, number: int, group: Group, level: Imbalance) -> "_EqualStep":
        network = build_network(build_problem(group), group_constraints(group))
        if not is_feasible(network):
            raise InputError(f"groups[{number}]: no assignment meets the capacities of the members")
        counts = optimal_counts(network)
        return cls(group, level, network, counts, level_sets(network, counts))

    @property
    def limit(self) -> None:
        return None

    def loads(self) -> tuple[tuple[str, ...], ...]:
        """Return the ids of the members of each level set, by descending load."""
        names = self.network.member_ids
        return tuple(tuple(names[member] for member in one) for one in self.sets)

    def evidence(
        self,
        prices: dict[str, int],
        assignment: Assignment,
        budget: SearchBudget,  # noqa: ARG002
    ) -> RebalanceEvidence:
        """Return the evidence for the certificate, with the prices of this group's members."""
        own = {name: prices[name] for name in self.network.member_ids}
        evidence = RebalanceEvidence(self.loads(), own)
        least = int(self.network.loads(self.counts).max(initial=0))
        if max(map(len, assignment.values()), default=0) <= least:
            return evidence
        return replace(evidence, best=self.any_assignment())

    def any_assignment(self) -> Assignment:
        return self.network.problem.to_assignment(self.network.place(self.counts))

    def fewest_moves(self, past: Assignment | None, budget: SearchBudget) -> Assignment:
        group = self.group if past is None else rejoin(self.group, past)
        found = solve(group, levels=(self.level, Movement()), limits=budget.rest())
        return found.assignment or self.any_assignment()


@dataclass(frozen=True, slots=True)
class _WeightedStep:
    """Solution with the minimum makespan of a group with different weights or speeds."""

    group: Group
    level: Imbalance
    solution: Solution
    best: Assignment

    @classmethod
    def of(
        cls, number: int, group: Group, level: Imbalance, budget: SearchBudget
    ) -> "_WeightedStep":
        free = rejoin(group, Assignment({}))
        solution = solve(free, levels=(Imbalance(Measure.MAKESPAN),), limits=budget.rest())
        if solution.assignment is None:
            if solution.status is Status.INFEASIBLE:
                reason = "no assignment meets the capacities of the members"
            else:
                reason = "no assignment within the capacities was found; raise the work limit"
            raise InputError(f"groups[{number}]: {reason}")
        return cls(group, level, solution, solution.assignment)

    @property
    def limit(self) -> LevelValue:
        found, tolerance = self.solution.imbalance, self.level.tolerance
        bound = tolerance.limit(found.bound)
        return LevelValue("limit", tolerance.limit(found.value), bound, origin=found.origin)

    def loads(self) -> Assignment:
        return self.best

    def evidence(
        self,
        prices: dict[str, int],
        assignment: Assignment,  # noqa: ARG002
        budget: SearchBudget,
    ) -> RebalanceEvidence:
        names = build_problem(self.group).member_index
        free = rejoin(self.group, Assignment({}))
        least = certify(free, self.solution) if budget.has_work else None
        own = {name: prices[name] for name in names}
        return RebalanceEvidence((), own, best=self.best, least=least)

    def any_assignment(self) -> Assignment:
        return self.best

    def fewest_moves(self, past: Assignment | None, budget: SearchBudget) -> Assignment:
        group = self.group if past is None else rejoin(self.group, past)
        level = Imbalance(Measure.MAKESPAN, Tolerance(up_to=self.limit.value))
        found = solve(
            group, levels=(level, Movement()), initial_assignment=self.best, limits=budget.rest()
        )
        return found.assignment or self.best


RebalanceStep = _EqualStep | _WeightedStep
"""Group at one rebalance, with the permitted loads."""


def rebalance_steps(
    groups: Sequence[Group], level: Imbalance, budget: SearchBudget, *, weighted: bool
) -> list[RebalanceStep]:
    """Compute the permitted loads of each group.

    Raises
    ------
    InputError
        If no assignment of a group meets the capacities of its members.
    """
    if not weighted:
        return [_EqualStep.of(number, group, level) for number, group in enumerate(groups)]
    steps: list[RebalanceStep] = []
    for number, group in enumerate(groups):
        part = budget.part(0.3 / (len(groups) - number))
        steps.append(_WeightedStep.of(number, group, level, part))
    return steps
