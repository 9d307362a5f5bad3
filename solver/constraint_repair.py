"""Repair of a placement that violates constraints: few partitions get other members."""

from collections.abc import Sequence

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.constraints import Constraint, Separated
from kassay.solver.evaluation import level_value, separated_partitions
from kassay.solver.initial_solutions import Room, within_pins
from kassay.solver.objective import Imbalance
from kassay.solver.problem import Ints, Placement, Problem

_MAX_CHOICES = 3_000_000
"""Partitions times members up to which a repair takes about 0.3 s."""


def meet_constraints(
    problem: Problem, rules: Sequence[Constraint], placement: Placement
) -> Placement | None:
    """Give some partitions other members, so that pins, separations and limits of members hold.

    A partition gets only members that pins and exclusions permit; the limits are capacities and
    maximum numbers of partitions. Other constraints may be violated. Return None if a partition
    finds no member, if the partitions that a member must keep exceed its capacity, if a group is
    very large, or if sums of loads may exceed 64 bits.
    """
    if problem.has_big_loads or problem.partition_count * problem.member_count > _MAX_CHOICES:
        return None
    repair = _Repair(problem, rules, placement)
    repair.release()
    if not repair.place() or (repair.loads > repair.max_loads).any():
        return None
    repair.lower_loads(level_value(problem, Imbalance(Measure.MAKESPAN), placement))
    return repair.found


class _Repair:
    """Placement in which released partitions have no member until they are placed again."""

    def __init__(self, problem: Problem, rules: Sequence[Constraint], placement: Placement) -> None:
        pinned, room = within_pins(problem, rules), Room(problem, rules)
        self.problem, self.found = problem, placement.copy()
        self.allowed = pinned.may_consume[pinned.consumer_set]
        self.max_loads = np.array(room.loads, dtype=np.int64)
        self.max_counts = np.array(room.counts, dtype=np.int64)
        self.separated = [
            np.array(separated_partitions(problem, rule), dtype=np.int64)
            for rule in rules
            if isinstance(rule, Separated)
        ]
        self.has_choice = self.allowed.sum(axis=1) > 1
        members = (problem.group.members[index] for index in problem.members)
        self.speeds = np.array([member.speed for member in members], dtype=float)

    def release(self) -> None:
        """Release partitions, so that the others meet the constraints."""
        partitions = np.arange(self.problem.partition_count)
        self.found[~self.allowed[partitions, self.found]] = NO_OWNER
        for inside in self.separated:
            # Each member keeps a pinned partition, or else an owned one, or else the heaviest one.
            heaviest = -self.problem.weight[inside]
            keys = heaviest, self._is_moved(inside), self.has_choice[inside]
            order = inside[np.lexsort(keys)]
            _, kept = np.unique(self.found[order], return_index=True)
            self.found[np.delete(order, kept)] = NO_OWNER
        self._count()
        for member in np.flatnonzero(self.counts > self.max_counts).tolist():
            inside = np.flatnonzero(self.found == member)
            order = inside[np.lexsort((self.problem.weight[inside], ~self.has_choice[inside]))]
            self.found[order[: int(self.counts[member] - self.max_counts[member])]] = NO_OWNER
        self._count()
        for member in np.flatnonzero(self.loads > self.max_loads).tolist():
            self._release_load(member)
        self._count()

    def _release_load(self, member: int) -> None:
        """Release partitions of a member until its load is permitted, if possible.

        The lightest one that suffices is released, or else the heaviest one, among those that are
        not pinned and not heavier than the largest free capacity.
        """
        free, weight = (self.max_loads - self.loads).max(), self.problem.weight
        has_room = self.has_choice & (weight <= free)
        inside = np.flatnonzero((self.found == member) & has_room)
        order = inside[np.argsort(self.problem.weight[inside], kind="stable")].tolist()
        excess = int(self.loads[member] - self.max_loads[member])
        while excess > 0 and order:
            weights = self.problem.weight[order]
            at = min(int(np.searchsorted(weights, excess)), len(order) - 1)
            excess -= int(weights[at])
            self.found[order.pop(at)] = NO_OWNER

    def lower_loads(self, makespan: int) -> None:
        """Lower the loads to a maximum relative load if released partitions have room elsewhere."""
        units, total = self.problem.member_units, self.problem.total
        factors = (units.factors[unit] for unit in units.unit_of)
        most = np.array([min(makespan // factor, total) for factor in factors], dtype=np.int64)
        self.max_loads = np.minimum(self.max_loads, most)
        before = self.found.copy()
        for member in np.flatnonzero(self.loads > self.max_loads).tolist():
            self._release_load(member)
        self._count()
        if not self.place():
            self.found = before

    def place(self) -> bool:
        """Place released partitions, heaviest first; return whether each has a member.

        A partition returns to its owner if that does not raise the maximum relative load.
        Otherwise, it goes to the member with the lowest new relative load.
        """
        weight, owner = self.problem.weight, self.problem.owner
        released = np.flatnonzero(self.found == NO_OWNER)
        for partition in released[np.argsort(-weight[released], kind="stable")].tolist():
            members = self._members_with_room(partition)
            if not len(members):
                return False
            loads = (self.loads[members] + weight[partition]) / self.speeds[members]
            highest = (self.loads / self.speeds).max()
            is_owner = (members == owner[partition]) & (loads <= highest)
            at = int(np.argmax(is_owner) if is_owner.any() else np.argmin(loads))
            self.found[partition] = members[at]
            self.loads[members[at]] += weight[partition]
            self.counts[members[at]] += 1
        return True

    def _members_with_room(self, partition: int) -> Ints:
        """Return the members that may receive a partition within the constraints."""
        loads = self.loads + self.problem.weight[partition]
        fits = self.allowed[partition] & (loads <= self.max_loads)
        fits &= self.counts < self.max_counts
        for inside in self.separated:
            if partition in inside:
                holders = self.found[inside]
                fits[holders[holders != NO_OWNER]] = False
        return np.flatnonzero(fits)

    def _is_moved(self, partitions: Ints) -> Ints:
        return np.asarray(self.found[partitions] != self.problem.owner[partitions])

    def _count(self) -> None:
        """Compute the loads and the numbers of partitions of the members."""
        placed = self.found != NO_OWNER
        self.loads = np.zeros(self.problem.member_count, dtype=np.int64)
        np.add.at(self.loads, self.found[placed], self.problem.weight[placed])
        self.counts = np.bincount(self.found[placed], minlength=self.problem.member_count)
