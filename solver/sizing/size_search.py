"""Minimum makespan and fewest moves of a group with given numbers of members."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import lcm

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member
from kassay.reference.model.metrics import Measure, loads, sum_of_squares
from kassay.reference.model.ownership import rejoin
from kassay.solver.bounds.counting import makespan_bound
from kassay.solver.identical_members.packing_heuristics import best_fit, makespan_lower_bound
from kassay.solver.initial_solutions import longest_processing_time
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement, Tolerance, default_levels
from kassay.solver.problem import Problem, build_problem
from kassay.solver.sizing.resized_groups import resized
from kassay.solver.solution import LevelValue, Solution, Status
from kassay.solver.solve import solve

Progress = Callable[[str], None]
"""Function that is called with the name of each step when the step starts."""
_MAKESPAN = Imbalance(Measure.MAKESPAN)


@dataclass(frozen=True, slots=True)
class MemberCount:
    """Optimum of a group that is resized to a given number of members.

    Parameters
    ----------
    makespan
        Minimum makespan; None if no assignment within different capacities was found.
    movement
        Fewest moves to an assignment of that makespan (for equal weights, of the minimum sum
        of squares). Partitions of members that left have no owner.
    imbalance
        Sum of squared loads of the assignment.
    unserved
        Topics that lose their last subscriber.
    enough
        Whether the target is met; None if this is neither proven nor refuted in time.
    """

    members: int
    makespan: LevelValue | None
    movement: LevelValue | None
    imbalance: int | None
    unserved: tuple[str, ...]
    enough: bool | None
    assignment: Assignment | None = field(repr=False)

    @property
    def served_makespan(self) -> LevelValue | None:
        """Return the makespan, or None if topics are unserved or no assignment was found."""
        return None if self.unserved else self.makespan


@dataclass(frozen=True, slots=True)
class SizeSearch:
    """Optima of a group for numbers of members. Results are kept for further questions.

    Parameters
    ----------
    makespan
        Target of the maximum load; None for a search without this target. Relative loads of all
        numbers of members refer to the speeds of the current members and of the added member.
    """

    current: Group
    added: Member
    makespan: int | None
    decided: dict[int, bool | None] = field(default_factory=dict)
    lowest: dict[int, MemberCount] = field(default_factory=dict)
    """Optima with the minimum makespan; the moves of weighted groups are not minimised."""
    complete: dict[int, MemberCount] = field(default_factory=dict)

    def max_load(self, members: Iterable[Member]) -> int:
        """Return the greatest load of a member within the target, or within the capacities."""
        if self.makespan is None:
            return max(member.capacity or 0 for member in members)
        speed = max(member.speed for member in members)
        return self.makespan * speed // self._speed_multiple

    def is_enough(self, number: int, budget: SearchBudget) -> bool | None:
        """Return whether a number of members meets the target; None if this is not known.

        Bounds and greedy rules decide most numbers. The moves are not minimised.
        """
        if number not in self.decided:
            group, target = self._question(resized(self.current, number, self.added))
            known = None
            if self._unserved(number):
                known = False
            # If speeds differ, the target refers to other units than the loads of the group.
            has_equal_speeds = self.current.has_equal_speeds and group.has_equal_speeds
            up_to = target if has_equal_speeds else None
            if known is None and up_to is not None and group.is_weighted:
                known = _is_within_target(build_problem(group), up_to)
            if known is None:
                known = self._optimum(number, budget, up_to=up_to).enough
            self.decided[number] = known
        return self.decided[number]

    def lowest_makespan(self, number: int, budget: SearchBudget) -> MemberCount:
        """Return the minimum makespan of a number of members, with any number of moves.

        A makespan that is not proven is searched again. The result is the best one found.
        """
        known = self.lowest.get(number)
        if known is None or (known.makespan is not None and not known.makespan.is_proven):
            found = self._optimum(number, budget)
            self.lowest[number] = found if known is None else _better(known, found)
        return self.lowest[number]

    def optimum(self, number: int, budget: SearchBudget) -> MemberCount:
        """Return the minimum makespan of a number of members, and the fewest moves to it."""
        if number not in self.complete:
            best = self.lowest.get(number) or self.lowest_makespan(number, budget)
            if best.movement is None and best.assignment is not None:
                best = self._with_fewest_moves(best, budget)
            if best.enough is None:
                best = replace(best, enough=self.decided.get(number))
            self.complete[number] = best
        return self.complete[number]

    def moves_from(self, previous: Assignment, number: int, budget: SearchBudget) -> LevelValue:
        """Return the fewest moves from an assignment to the minimum makespan of a number."""
        group = rejoin(resized(self.current, number, self.added), previous)
        if group.is_weighted:
            best = self.complete.get(number, self.lowest[number])
            return self._fewest_moves(group, best, budget).movement
        levels = default_levels(group)
        return solve(group, levels=levels, limits=budget.rest(), seed=budget.seed).movement

    def optimum_of(
        self, group: Group, budget: SearchBudget, up_to: int | None = None
    ) -> MemberCount:
        """Return the minimum makespan of a group, or any makespan of at most ``up_to``.

        The moves are minimised only if flows minimise them together with the makespan.
        """
        number = len(group.members)
        group, target = self._question(group)
        capacities = {member.capacity for member in group.members}
        by_flow = bool(group.uniform_weight) and capacities <= {None}
        if by_flow:
            levels: tuple[Level, ...] = (Imbalance(Measure.SUM_OF_SQUARES), Movement())
        elif group.is_weighted:
            # Owners do not change the makespan. Without them, few moves are not searched.
            group = rejoin(group, Assignment({}))
            levels = (Imbalance(Measure.MAKESPAN, Tolerance(up_to=up_to)),)
        else:
            levels = (_MAKESPAN, Movement())
        solution = solve(group, levels=levels, limits=budget.rest(), seed=budget.seed)
        if solution.assignment is None:
            enough = False if solution.status is Status.INFEASIBLE else None
            return MemberCount(number, None, None, None, (), enough, None)
        makespan, member_loads = solution.imbalance, loads(group, solution.assignment).values()
        value, bound = makespan.value, makespan.bound
        if by_flow:
            # The minimum sum of squares has the minimum makespan: see docs/problem.md.
            value = max(member_loads, default=0)
            is_optimal = makespan.is_proven
            bound = value if is_optimal else min(value, makespan_bound(build_problem(group)))
        scale = self._scale(group)
        makespan = LevelValue("makespan", value * scale, bound * scale)
        return MemberCount(
            members=number,
            makespan=makespan,
            movement=solution.movement if len(levels) > 1 else None,
            imbalance=sum_of_squares(member_loads),
            unserved=(),
            enough=_is_within(makespan, target),
            assignment=solution.assignment,
        )

    @property
    def _speed_multiple(self) -> int:
        return lcm(self.added.speed, _speed_multiple(self.current))

    def _question(self, group: Group) -> tuple[Group, int | None]:
        """Return a group and the target of its makespan.

        A capacity that all members share is a target of the makespan, which flows can solve.
        """
        capacities = {member.capacity for member in group.members}
        has_equal_speeds = self.current.has_equal_speeds and group.has_equal_speeds
        shared = next(iter(capacities)) if len(capacities) == 1 and has_equal_speeds else None
        if shared is None:
            return group, self.makespan
        members = tuple(replace(member, capacity=None) for member in group.members)
        target = shared if self.makespan is None else min(self.makespan, shared)
        return replace(group, members=members), target

    def _unserved(self, number: int) -> tuple[str, ...]:
        """Return the topics that lose their last subscriber with a number of members."""
        group = resized(self.current, number, self.added)
        before, after = self.current.subscribers(), group.subscribers()
        return tuple(
            topic.name
            for topic in self.current.topics
            if topic.partitions and before[topic.name] and not after[topic.name]
        )

    def _optimum(
        self, number: int, budget: SearchBudget, *, up_to: int | None = None
    ) -> MemberCount:
        unserved = self._unserved(number)
        best = self.optimum_of(resized(self.current, number, self.added), budget, up_to)
        return replace(best, unserved=unserved, enough=False if unserved else best.enough)

    def _with_fewest_moves(self, best: MemberCount, budget: SearchBudget) -> MemberCount:
        """Minimise the moves to an assignment with at most the makespan of the best one."""
        group = resized(self.current, best.members, self.added)
        solution = self._fewest_moves(group, best, budget)
        if solution.assignment is None or best.makespan is None:
            return best
        value = solution.imbalance.value * self._scale(group)
        makespan = LevelValue("makespan", value, min(value, best.makespan.bound))
        known = best.enough
        return replace(
            best,
            makespan=makespan,
            enough=_is_within(makespan, self._question(group)[1]) if known is None else known,
            movement=solution.movement,
            imbalance=sum_of_squares(loads(group, solution.assignment).values()),
            assignment=solution.assignment,
        )

    def _fewest_moves(self, group: Group, best: MemberCount, budget: SearchBudget) -> Solution:
        """Minimise the moves from the owners of a group to the makespan of a known optimum."""
        group, _ = self._question(group)
        limit = 0 if best.makespan is None else best.makespan.value // self._scale(group)
        return solve(
            group,
            levels=(Imbalance(Measure.MAKESPAN, Tolerance(up_to=limit)), Movement()),
            initial_assignment=best.assignment,
            limits=budget.rest(),
            seed=budget.seed,
        )

    def _scale(self, group: Group) -> int:
        """Return the factor from relative loads of a group to those of all numbers of members."""
        return self._speed_multiple // _speed_multiple(group)


def _better(one: MemberCount, other: MemberCount) -> MemberCount:
    """Return the optimum with the lower makespan, and with the higher bound of both."""
    if one.makespan is None or other.makespan is None:
        return one if other.makespan is None else other
    best = min(one, other, key=lambda size: size.makespan.value if size.makespan else 0)
    bound = max(one.makespan.bound, other.makespan.bound)
    value = min(one.makespan.value, other.makespan.value)
    return replace(best, makespan=LevelValue("makespan", value, bound))


def _is_within_target(problem: Problem, target: int) -> bool | None:
    """Compare bounds and greedy assignments with a maximum load, without a search.

    Return None if neither proves nor refutes that an assignment within the load exists.
    """
    if makespan_bound(problem) > target:
        return False
    if any(member.capacity is not None for member in problem.group.members):
        return None
    if max(problem.loads(longest_processing_time(problem)), default=0) <= target:
        return True
    if any(len(consumers) < problem.member_count for consumers in problem.consumer_sets):
        return None
    weights = sorted(problem.weight.tolist(), reverse=True)
    if best_fit(weights, problem.member_count, target) is not None:
        return True
    return False if makespan_lower_bound(weights, problem.member_count) > target else None


def _is_within(makespan: LevelValue, target: int | None) -> bool | None:
    """Return whether a makespan within the target exists; None if this is not known."""
    if target is None or makespan.value <= target:
        return True
    return False if makespan.bound > target else None


def _speed_multiple(group: Group) -> int:
    return lcm(*(group.members[index].speed for index in group.participant_indices))
