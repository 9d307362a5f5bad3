"""Repair overloads to find placements with low loads and few moves.

The repair applies to weighted groups with hosts, racks or constraints, and to groups with
different speeds, if all levels about loads are makespans. Within constraints, it also lowers a
first level that is the sum of squares. If no placement of a group is known that meets its
constraints, the repair looks for one.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import Measure
from kassay.solver import evaluation
from kassay.solver.colocated_partitions import merge_colocated
from kassay.solver.constraints import Capacity, Colocated, MaxMoves, MaxPartitions, Separated
from kassay.solver.counting_bounds import level_bound
from kassay.solver.greedy_placements import keep_owned, within_pins, within_racks
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, limited_steps
from kassay.solver.objective import (
    CrossRack,
    HostImbalance,
    Imbalance,
    Level,
    Movement,
    is_preference,
)
from kassay.solver.problem import Ints, Placement, Problem
from kassay.solver.search.load_searches import MIN_PARTITIONS, fill_members

if TYPE_CHECKING:
    from kassay.solver.search.overload_repair import LoadLimit, OverloadRepair

_MAX_CELLS = 1_000_000
"""Maximum number of partitions times members."""
_LOAD_TARGETS, _MORE_TARGETS = 7, 14
"""Numbers of load limits between the bound and the incumbent: in general, and with a limit on moves
or colocated partitions, for which few other searches lower the loads."""
_PARTS_OF_TOLERANCE, _FINE_STEPS = 16, 300
"""Part of the tolerance from which a reduction of the load is small, and the maximum number of
transfers and exchanges of a search for a small reduction."""
_LOAD_SHARE, _HARD_LOAD_SHARE, _MOVES_SHARE = 0.08, 0.2, 0.5
"""Shares of the work left: for one load limit, for one load limit with a limit on moves or with
colocated partitions, and for fewer moves."""
_SQUARES_STARTS, _NOISE = 30, 0.3
"""Number of starts of the search for lower sums of squares, and random change of weights."""
_FIRST_ROUNDS, _LOAD_ROUNDS, _LIMITED_ROUNDS, _MOVES_ROUNDS = 20, 3, 200, 2_000
"""Number of repairs for the first placement, for one load limit without and with a limit on moves,
and for fewer moves."""
_MIN_REPAIR_STEPS, _MAX_REPAIR_STEPS, _REPAIR_STEP = 2_000, 20_000, 1e-4
"""Numbers of transfers and exchanges: minimum of the first search, and maximum of each search; and
the work of one transfer or exchange."""


_WINDOW_STEPS, _MOVES_STEPS, _LOAD_STEPS = 400, 1_200, 10_000
"""Maximum numbers of changes in several windows: for one load limit within the tolerance of the
bound, for fewer moves, and for other load limits."""
_MANY_PER_MEMBER = 6
"""Partitions per member from which CP-SAT proves the fewest moves of most small groups."""
_WINDOW_STEP, _WINDOW_STEP_PER_PROPOSAL = 6e-5, 2.5e-7
"""Work of one change in several windows: a constant part, and a part per proposal."""
_WINDOW_WORK, _LAST_WORK = 1.5, 3.0
"""Maximum work of the search for one load limit in several windows, and for fewer moves that CP-SAT
does not prove."""
_WINDOW_SQUARES_WORK = 0.3
"""Maximum work to lower sums of squares in several windows after a level about moves."""


def may_add_repaired(pool: IncumbentPool) -> bool:
    """Return whether `add_repaired` supports the levels and is useful."""
    measured, is_owned = _measured(pool), (pool.problem.owner != NO_OWNER).any()
    return bool(measured) and bool(is_owned) and _may_repair(pool, measured)


def add_repaired(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Add a placement with few moves and low loads to the pool.

    The load limits are first the bounds, then the best known loads. `add_few_moves` does the same
    for groups without hosts, different speeds, racks and constraints.
    """
    measured = _measured(pool)
    search = _OverloadSearch(pool, measured, Movement(), budget)
    bounds = [level_bound(search.problem, each) for each in measured]
    if isinstance(measured[0], Imbalance):
        bounds[0] = max(bounds[0], fill_members(pool, measured[0]))
    for values in (bounds, [pool.value(each) for each in measured]):
        limits = [
            (each, each.tolerance.limit(value))
            for each, value in zip(measured, values, strict=True)
        ]
        within = budget.part(_LOAD_SHARE)
        if search.is_repaired(limits, within, rounds=_FIRST_ROUNDS, least=_MIN_REPAIR_STEPS):
            return


def _measured(pool: IncumbentPool) -> list[Imbalance | HostImbalance]:
    """Return the load levels that the repair minimises. Weight windows exclude preferences."""
    levels = _loads_of(pool.levels)
    has_one = pool.problem.profiles is None
    return levels if has_one else [level for level in levels if not is_preference(level)]


def add_any_repaired(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Add a placement that meets the constraints to the pool, if the repair finds one."""
    search = _OverloadSearch(pool, (), Movement(), budget)
    search.is_repaired((), budget.part(_LOAD_SHARE), least=_MIN_REPAIR_STEPS)


def may_repair_overloads(pool: IncumbentPool, level: Level) -> bool:
    """Return whether `repair_overloads` supports the level and is useful."""
    if _is_sum_of_squares(level):
        is_first = not pool.reached and bool(pool.constraints)
        has_windows = pool.problem.profiles is not None
        return has_windows or (is_first and _may_repair(pool, [Imbalance(Measure.MAKESPAN)]))
    is_load = not isinstance(level, Movement)
    has_one = pool.problem.profiles is None
    if is_load and has_one and not _has_load_units(pool) and not _limits_moves_or_colocates(pool):
        return False
    return _may_repair(pool, _loads_up_to(pool, level))


def repair_again(pool: IncumbentPool, level: Movement, bound: int, budget: SearchBudget) -> None:
    """Add placements with fewer moves than the incumbent to the pool."""
    search = _OverloadSearch(pool, _loads_up_to(pool, level), level, budget)
    start, within, most = search.merged(pool.incumbent(level)), budget.until(_LAST_WORK), 10**6
    search.is_repaired(
        pool.limits(), within, rounds=_MOVES_ROUNDS, most=most, enough=bound, start=start
    )


def repair_overloads(pool: IncumbentPool, level: Level, bound: int, budget: SearchBudget) -> None:
    """Add placements with lower loads or fewer moves to the pool."""
    if isinstance(level, Imbalance) and _is_sum_of_squares(level):
        _lower_squares(pool, level, budget)
        return
    moves = level if isinstance(level, Movement) else Movement()
    search = _OverloadSearch(pool, _loads_up_to(pool, level), moves, budget)
    within = budget.part(_MOVES_SHARE)
    if level is moves:
        most, enough = None, 0
        if pool.problem.profiles is not None:
            # CP-SAT proves the fewest moves of small groups faster.
            many = _MANY_PER_MEMBER * pool.problem.member_count
            is_easy = pool.problem.has_few_terms and pool.problem.partition_count >= many
            most, enough = _WINDOW_STEPS if is_easy else _MOVES_STEPS, bound
        search.is_repaired(pool.limits(), within, rounds=_MOVES_ROUNDS, most=most, enough=enough)
    else:
        _lower_loads(search, level, bound, budget)


def _lower_squares(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> None:
    makespan, limits = Imbalance(Measure.MAKESPAN), pool.limits()
    moves = [(done, limit) for done, limit in limits if isinstance(done, Movement)]
    search = _OverloadSearch(pool, [makespan], moves[0][0] if moves else Movement(), budget)
    if moves:
        search.max_cost, budget = moves[0][1], budget.until(_WINDOW_SQUARES_WORK)
    elif search.max_cost is not None:
        _lower_loads(search, makespan, 0, budget.part(_MOVES_SHARE))
    peaks = [each for each in limits if getattr(each[0], "measure", None) is Measure.MAKESPAN]
    within = load_limits(search.problem, peaks)
    search.lower_squares(level, budget.part(_HARD_LOAD_SHARE), within)


def _lower_loads(search: "_OverloadSearch", level: Level, bound: int, budget: SearchBudget) -> None:
    """Add placements with lower loads, by bisection between the bound and the incumbent."""
    pool = search.pool
    low, high = max(bound, level_bound(search.problem, level)), pool.value(level)
    precision = (level.tolerance.limit(low) - low) // _PARTS_OF_TOLERANCE
    is_hard = _limits_moves_or_colocates(pool)
    has_windows = pool.problem.profiles is not None
    share = _HARD_LOAD_SHARE if is_hard or has_windows else _LOAD_SHARE
    until = _WINDOW_WORK if has_windows else inf
    for number in range(_MORE_TARGETS if is_hard else _LOAD_TARGETS):
        if low >= high:
            break
        # With several windows, most bounds are reached.
        target = low if has_windows and not number else (low + high) // 2
        limits = [*pool.limits(), (level, target)]
        is_fine = high - target <= precision
        most = _FINE_STEPS if is_fine else None
        if has_windows:
            is_within = high <= level.tolerance.limit(low)
            most = _WINDOW_STEPS if is_within else _LOAD_STEPS
        starts = [search.start, search.merged(pool.incumbent(level))] if is_hard else [search.start]
        if any(
            search.is_repaired(limits, budget.part(share).until(until), most=most, start=start)
            for start in (starts if search.max_cost is not None else starts[::-1])
        ):
            high = min(target, pool.value(level))
        elif is_fine:
            break
        else:
            low = target + 1


def _is_sum_of_squares(level: Level) -> bool:
    return isinstance(level, Imbalance) and level.measure is Measure.SUM_OF_SQUARES


def _loads_of(levels: Iterable[Level]) -> list[Imbalance | HostImbalance]:
    return [level for level in levels if isinstance(level, Imbalance | HostImbalance)]


def _loads_up_to(pool: IncumbentPool, level: Level) -> list[Imbalance | HostImbalance]:
    return _loads_of((*(finished for finished, _ in pool.limits()), level))


def _has_load_units(pool: IncumbentPool) -> bool:
    """Return whether speeds differ, or weights differ and a level measures the loads of hosts."""
    group = pool.problem.group
    has_hosts = any(isinstance(each, HostImbalance) for each in pool.levels)
    return not group.has_equal_speeds or (group.is_weighted and has_hosts)


def _limits_moves_or_colocates(pool: IncumbentPool) -> bool:
    return any(isinstance(rule, MaxMoves | Colocated) for rule in pool.constraints)


def _may_repair(pool: IncumbentPool, measured: Sequence[Imbalance | HostImbalance]) -> bool:
    problem = pool.problem
    if problem.profiles is not None:
        return all(each.measure is Measure.MAKESPAN for each in measured)
    rules = [rule for rule in pool.constraints if not isinstance(rule, MaxMoves)]
    has_racks = any(isinstance(each, CrossRack) for each in pool.levels)
    is_useful = problem.group.is_weighted and (bool(rules) or has_racks)
    return (
        (_has_load_units(pool) or is_useful)
        and may_repair_any(problem)
        and all(each.measure is Measure.MAKESPAN for each in measured)
    )


def may_repair_any(problem: Problem) -> bool:
    """Return whether the repair of overloads supports the size and weights of a group."""
    has_small_weights = problem.weight.dtype != object
    cells = problem.partition_count * problem.member_count
    return (
        problem.partition_count >= MIN_PARTITIONS and has_small_weights and 0 < cells <= _MAX_CELLS
    )


class _OverloadSearch:
    """Search that repairs overloads within constraints and racks.

    Colocated partitions are one partition of the searched problem. The searches find nothing if a
    partition has no permitted consumer, if too many partitions must move, or if colocated
    partitions cannot be merged or have racks.
    """

    def __init__(
        self,
        pool: IncumbentPool,
        measured: Sequence[Imbalance | HostImbalance],
        moves: Movement,
        budget: SearchBudget,
    ) -> None:
        self.pool, self.rules = pool, pool.constraints
        problem, self.part_of = pool.problem, np.arange(pool.problem.partition_count)
        merged = merge_colocated(problem, pool.constraints)
        if merged is not None:
            problem, self.part_of, self.rules = merged.problem, merged.merged_into, merged.rules
        owner = problem.owner
        if self.rules:
            problem = within_pins(problem, self.rules)
        goals = (each for each in pool.levels if isinstance(each, CrossRack | Movement))
        has_racks = bool(measured) and isinstance(next(goals, None), CrossRack)
        if has_racks:
            problem = within_racks(problem)
        self.problem = problem
        costs = evaluation.movement_costs(pool.problem, moves)
        if costs.dtype == object:
            costs = costs // (1 + (sum(costs.tolist()) >> 60))
        costs = np.where(pool.problem.owner == NO_OWNER, 0, costs.astype(np.int64))
        is_kept = owner[self.part_of] == pool.problem.owner
        self.costs = self._sum_of_parts(np.where(is_kept, costs, 0))
        must_move = ~is_kept | (problem.owner[self.part_of] == NO_OWNER)
        limits = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
        self.max_cost = min(limits) - int(costs[must_move].sum()) if limits else None
        """Maximum cost of the moves besides those that constraints and racks require."""
        self.rng = np.random.default_rng(budget.seed)
        is_colocated = any(isinstance(rule, Colocated) for rule in pool.constraints)
        self.is_possible = (
            (self.max_cost is None or self.max_cost >= 0)
            and all(map(len, problem.consumer_sets))
            and (not is_colocated or (merged is not None and not has_racks))
        )
        units = [evaluation.load_units(problem, each) for each in measured]
        self.start = keep_owned(problem, units) if self.is_possible else problem.owner
        self.step = _REPAIR_STEP
        if problem.profiles is not None:
            from kassay.solver.search.overload_repair import proposals  # noqa: PLC0415

            self.step = _WINDOW_STEP + proposals(problem) * _WINDOW_STEP_PER_PROPOSAL

    def _sum_of_parts(self, values: Ints) -> Ints:
        total = np.zeros(self.problem.partition_count, dtype=np.int64)
        np.add.at(total, self.part_of, values)
        return total

    def is_repaired(
        self,
        limits: Sequence[tuple[Level, int]],
        within: SearchBudget,
        *,
        rounds: int | None = None,
        least: int = 0,
        most: int | None = None,
        start: Placement | None = None,
        enough: int = 0,
    ) -> bool:
        """Add a placement within the limits to the pool; return whether one was found.

        The search starts from the owned partitions, or from ``start``. It repeats the repair
        ``rounds`` times for few moves. By default, it needs only as few moves as the limit on
        moves requires.
        """
        if not self.is_possible:
            return False
        search = self.repair(load_limits(self.problem, limits))
        steps = _MAX_REPAIR_STEPS
        if self.problem.profiles is not None:
            steps = _WINDOW_STEPS + len(self.costs) if most is None else most
            least = min(least, steps)
        may_continue = within.for_first_result(least * self.step).counted(self.step, steps)
        if most is not None:
            may_continue = limited_steps(most, may_continue)
        costs = self.costs
        if rounds is None:
            enough, rounds = self.max_cost or 0, _LIMITED_ROUNDS
            if self.max_cost is None and self.problem.profiles is not None:
                costs = np.zeros_like(costs)
            elif self.max_cost is None:
                rounds = _LOAD_ROUNDS
        first = self.start if start is None else start
        found = search.run(first, costs, rounds=rounds, may_continue=may_continue, enough=enough)
        return found is not None and self.pool.add(found[self.part_of])

    def lower_squares(
        self, level: Level, within: SearchBudget, limits: "Sequence[LoadLimit]" = ()
    ) -> None:
        """Add placements with a lower sum of squares to the pool, within the constraints."""
        if not self.is_possible:
            return
        search, may_continue = self.repair(limits), within.counted(self.step, _MAX_REPAIR_STEPS)
        start: Placement | None = self.merged(self.pool.incumbent(level))
        has_one = self.max_cost is not None or self.problem.profiles is not None
        for number in range(1 if has_one else _SQUARES_STARTS):
            if not may_continue():
                break
            if start is not None:
                found = search.lower_squares(start, self.costs, self.max_cost, may_continue)
                self.pool.add(found[self.part_of])
            if not has_one:
                start = search.place_heaviest_first(_NOISE if number else 0)

    def merged(self, placement: Placement) -> Placement:
        found = np.zeros(self.problem.partition_count, dtype=np.int32)
        found[self.part_of] = placement
        return found

    def repair(self, limits: "Sequence[LoadLimit]") -> "OverloadRepair":
        """Create the local search that repairs overloads."""
        from kassay.solver.search import overload_repair  # noqa: PLC0415

        has_windows = self.problem.profiles is not None
        kind = overload_repair.WindowRepair if has_windows else overload_repair.OverloadRepair
        return kind(self.problem, [*self._room_limits(), *limits], self.rng)

    def _room_in_windows(self) -> "NDArray[np.float64]":
        """Return the capacity of each member (row) in each weight window (column)."""
        problem, members = self.problem, np.arange(self.problem.member_count)
        room = np.full((problem.member_count, problem.window_count), float(problem.greatest_total))
        for rule in self.pool.constraints:
            if isinstance(rule, Capacity):
                named = problem.member_index.get(rule.member or "", NO_OWNER)
                at = members if rule.member is None else members[members == named]
                for window, limit in evaluation.window_limits(problem, rule).items():
                    room[at, window] = np.minimum(room[at, window], limit)
        return room

    def _room_limits(self) -> "list[LoadLimit]":
        """Convert capacities and other constraints to maximum loads.

        In the limits on numbers, each partition has the mean weight, so that overloads are
        comparable. Of separated partitions, each member gets at most one.
        """
        from kassay.solver.search.overload_repair import LoadLimit  # noqa: PLC0415

        problem, members = self.problem, np.arange(self.problem.member_count)
        room = evaluation.Room(self.pool.problem, self.pool.constraints)
        found = []
        if problem.profiles is None:
            weight = problem.weight.astype(np.int64)
            found = [LoadLimit(members, np.array(room.loads, dtype=np.int64), weight)]
        elif any(isinstance(rule, Capacity) for rule in self.pool.constraints):
            found = [LoadLimit(members, self._room_in_windows(), problem.load_table)]
        mean = max(1, problem.greatest_total // self.pool.problem.partition_count)
        if any(isinstance(rule, MaxPartitions) for rule in self.pool.constraints):
            sizes = self._sum_of_parts(np.ones_like(self.part_of))
            counts = np.array(room.counts, dtype=np.int64)
            found.append(LoadLimit(members, counts * mean, sizes * mean))
        for rule in self.rules:
            if isinstance(rule, Separated):
                inside = np.zeros(problem.partition_count, dtype=np.int64)
                inside[evaluation.separated_partitions(problem, rule)] = mean
                found.append(LoadLimit(members, np.full(problem.member_count, mean), inside))
        return found


def load_limits(problem: Problem, limits: Sequence[tuple[Level, int]]) -> "list[LoadLimit]":
    """Convert limits on makespans to maximum loads of members and hosts."""
    from kassay.solver.search.overload_repair import LoadLimit  # noqa: PLC0415

    found, has_one = [], problem.profiles is None
    weight = problem.weight.astype(np.int64) if has_one else problem.load_table
    for level, limit in limits:
        if isinstance(level, Imbalance | HostImbalance):
            units = evaluation.load_units(problem, level)
            highest = problem.greatest_total
            most = np.array([min(limit // factor, highest) for factor in units.factors])
            found.append(LoadLimit(np.array(units.unit_of), most, weight))
    return found
