"""Search for lower loads of members and hosts.

Most searches add placements to the pool. Some prove a lower bound on the level.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import Measure
from kassay.solver import counting_bounds
from kassay.solver.constraints import Capacity, Forbidden, MaxMoves, Pinned
from kassay.solver.evaluation import Room, imbalance_of, level_value, violated
from kassay.solver.greedy_placements import keep_owned, within_pins
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance, Level, Movement
from kassay.solver.problem import Ints, Placement, Problem, Weights

# CP-SAT solves smaller groups faster than any other method starts.
MIN_PARTITIONS = 12
_BALANCING_SHARE, _BALANCING_SHARE_BEFORE_PACKING = 1 / 2, 1 / 10
"""Shares of the local search in the work of a level: in general, and of identical members."""
_MAX_BALANCING_STEPS, _BALANCING_STEP = 5_000, 1e-4
"""Maximum number of steps of the local search, and the work of one step."""

_WIDE_BEAM, _FEW_MOVES, _BEAM_WIDTH = 50, 40, 8
"""Width of the beam search for few moves, their maximum number, and the width for more moves."""
_BEAM_SHARE, _SQUARES_SHARE = 0.2, 0.1
"""Shares of the work left for beam searches, and for moves that lower the sum of squares."""

_SHARES_ABOVE_BOUND = (0, 0.002, 0.005, 0.01, 0.02)
"""Targets of the local search within capacities: excess over the bound as shares of the bound."""

# Maximum number of partitions that are reassigned at once.
_MAX_PAIR_ITEMS = 22
_MAX_FAILURES = 60
_MAX_PAIR_FAILURES = 200


def _is_large_enough(problem: Problem) -> bool:
    """Return whether the group has equal speeds and enough partitions for local search."""
    return problem.partition_count >= MIN_PARTITIONS and problem.group.has_equal_speeds


def fill_members(pool: IncumbentPool, level: Imbalance) -> int:
    """Return a lower bound on the makespan, from constraints on loads, numbers and pins."""
    problem, unit = pool.problem, pool.problem.weight_unit
    if level.measure is not Measure.MAKESPAN or not pool.constraints:
        return 0
    pinned = within_pins(problem, pool.constraints)
    if problem.profiles is not None:
        return counting_bounds.makespan_bound(pinned)
    room = Room(problem, pool.constraints).loads
    factors = problem.member_units.factors

    def is_too_low(limit: int) -> bool:
        loads = (min(most, limit // factor) for most, factor in zip(room, factors, strict=True))
        return sum(load // unit for load in loads) < problem.total // unit

    highest = pool.value(level)
    filled = min(counting_bounds.greatest_true(is_too_low, highest) + 1, highest)
    beside = max(_bound_beside_pins(pinned), _bound_beside_lightest(pool))
    return max(filled, counting_bounds.makespan_bound(pinned), beside)


def _bound_beside_lightest(pool: IncumbentPool) -> int:
    """Return a lower bound on the load of the member with the heaviest partition.

    It also gets partitions for which the other members have no room. Their weights are at least
    those of the lightest partitions.
    """
    problem = pool.problem
    counts = Room(problem, pool.constraints).counts
    without_room = min(counts, default=0) - (sum(counts) - problem.partition_count)
    if without_room < 1 or not problem.group.has_equal_speeds:
        return 0
    weights: list[int] = sorted(problem.weight.tolist())
    return weights[-1] + sum(weights[: without_room - 1])


def _bound_beside_pins(problem: Problem) -> int:
    """Return a lower bound on the makespan, from partitions with a single consumer."""
    if not problem.group.has_equal_speeds:
        return 0
    pinned = [0] * problem.member_count
    heaviest = [0] * len(problem.consumer_sets)
    for index, weight in zip(problem.consumer_set.tolist(), problem.weight.tolist(), strict=True):
        heaviest[index] = max(heaviest[index], weight)
        if len(problem.consumer_sets[index]) == 1:
            pinned[problem.consumer_sets[index][0]] += weight
    beside = (
        weight + min(pinned[member] for member in members.tolist())
        for weight, members in zip(heaviest, problem.consumer_sets, strict=True)
        if len(members) > 1
    )
    bound: int = max(*pinned, *beside, 0)
    return bound


def pack_identical(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> int:
    """Minimise the makespan of identical members, and return a bound."""
    if not budget.has_work:
        return 0
    from kassay.solver.minimum_makespan import minimise_makespan  # noqa: PLC0415

    placement, bound = minimise_makespan(pool.problem, pool.incumbent(level), budget)
    pool.add(placement)
    return bound


def may_pack(pool: IncumbentPool, level: Imbalance) -> bool:
    """Return whether `pack_identical` supports the group and the level."""
    members = np.concatenate([*pool.problem.consumer_sets, np.zeros(0, dtype=np.int64)])
    return (
        not pool.reached
        and not pool.constraints
        and level.measure is Measure.MAKESPAN
        and _is_large_enough(pool.problem)
        and pool.problem.group.is_weighted
        and len(np.unique(members)) == len(members)
    )


def may_balance(pool: IncumbentPool) -> bool:
    """Return whether `balance_loads` supports the group."""
    return not pool.reached and _is_large_enough(pool.problem)


def balance_loads(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> None:
    """Improve the best placement on the first level by local search."""
    problem, is_makespan = pool.problem, level.measure is Measure.MAKESPAN
    if pool.constraints:
        problem = within_pins(problem, pool.constraints)
    share = _BALANCING_SHARE_BEFORE_PACKING if may_pack(pool, level) else _BALANCING_SHARE
    rng, within = np.random.default_rng(budget.seed), budget.part(share)
    may_continue = within.counted(_BALANCING_STEP, _MAX_BALANCING_STEPS)
    # The consumers of ``problem`` meet pins and exclusions, and additional loads meet capacities.
    met = Pinned | Forbidden | Capacity if is_makespan else Pinned | Forbidden
    others = [rule for rule in pool.constraints if not isinstance(rule, met)]
    room = Room(problem, [rule for rule in pool.constraints if rule not in others]).loads
    least = max(counting_bounds.makespan_bound(problem), fill_members(pool, level))

    def permits(placement: Placement) -> bool:
        return not any(violated(pool.problem, others, placement))

    for share in _SHARES_ABOVE_BOUND if min(room) < problem.total else (0,):
        # The additional load is target minus capacity: at the target, a member has its capacity.
        target = least + int(least * share)
        start = _most_even(pool, level).copy()
        base = [max(target - most, 0) for most in room]
        balancer = LoadBalancer(problem, start, rng, base, permits)
        balancer.lower_makespan(target, may_continue)
        balancer.even_out(may_continue)
        if not is_makespan:
            balancer.balance_random_pairs(may_continue)
        pool.add(balancer.placement)
        if max(balancer.loads) <= target:
            break


def _most_even(pool: IncumbentPool, level: Imbalance) -> Placement:
    """Return the placement with the minimum sum of squares among the best of a level."""
    problem, best = pool.problem, pool.value(level)
    return min(
        (one for one in pool.placements if level_value(problem, level, one) == best),
        key=lambda one: imbalance_of(Measure.SUM_OF_SQUARES, problem.loads(one)),
    )


def heaviest_moved(problem: Problem) -> tuple[int | None, int]:
    """Return two alternative limits on the weights of moved partitions.

    Few moves of heavy partitions and several moves of light ones can each lead to lower loads.
    """
    fastest = min(problem.member_units.factors, default=1)
    return None, counting_bounds.makespan_bound(problem) // (2 * fastest)


def limits_moves(pool: IncumbentPool) -> bool:
    """Return whether a constraint limits the number of moves."""
    return any(isinstance(rule, MaxMoves) for rule in pool.constraints)


def may_limit_moves(pool: IncumbentPool, level: Imbalance) -> bool:
    """Return whether `limit_moves` supports the group and the level."""
    problem, is_leximax = pool.problem, level.measure is Measure.LEXIMAX
    is_possible = not problem.has_big_loads and problem.partition_count > 0
    return limits_moves(pool) and is_possible and not is_leximax


def limit_moves(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> int:
    """Lower the loads within the maximum number of moves, and bound the makespan."""
    problem = pool.problem
    limits = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
    most, within = min(limits), within_pins(problem, pool.constraints)
    for_beams, for_squares = budget.part(_BEAM_SHARE), budget.part(_SQUARES_SHARE)
    moves = Movement()
    fewest = min(pool.placements, key=lambda one: level_value(problem, moves, one))
    incumbent = pool.incumbent(level)
    has_moves = level_value(problem, moves, incumbent) >= most - 1
    starts = [incumbent] if has_moves else [fewest, incumbent]
    for start in starts:
        left = most - level_value(problem, moves, start)
        may_continue = for_squares.counted(move_work(problem))
        for placement in lower_squares(within, start, left, may_continue):
            pool.add(placement)
        for heaviest in heaviest_moved(problem):
            beam = MovesBeam(within, _WIDE_BEAM if left <= _FEW_MOVES else _BEAM_WIDTH, heaviest)
            for placement in beam.search(start, left, for_beams.counted(beam.step)):
                pool.add(placement)
    if level.measure is not Measure.MAKESPAN:
        return 0
    return counting_bounds.makespan_bound_within(problem, most, high=pool.value(level))


def may_move_greedily(pool: IncumbentPool) -> bool:
    """Return whether `move_greedily` supports the earlier levels."""
    problem = pool.problem
    measures = [level.measure for level, _ in pool.limits() if isinstance(level, Imbalance)]
    has_other_measure = bool(measures) and measures[0] not in (Measure.MAKESPAN, Measure.LEXIMAX)
    return has_other_measure and not problem.has_big_loads and problem.partition_count > 0


def move_greedily(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Make greedy moves until the imbalance is within the limit of its level."""
    problem = pool.problem
    within, start = within_pins(problem, pool.constraints), keep_owned(problem)
    most, may_continue = problem.partition_count, budget.counted(move_work(problem))
    for placement in lower_squares(within, start, most, may_continue):
        if all(level_value(problem, level, placement) <= limit for level, limit in pool.limits()):
            pool.add(placement)
            break


def spread_loads(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> None:
    """Reassign moved partitions to lower the sum of squares without more moves."""
    problem, may_continue = pool.problem, budget.counted(move_work(pool.problem))
    within, start = within_pins(problem, pool.constraints), pool.incumbent(level)
    pool.add(spread_moved(within, start, may_continue))


def max_loads(pool: IncumbentPool, limits: Sequence[tuple[Level, int]]) -> list[int] | None:
    """Return the maximum load per member within capacities and limits; None without limits."""
    loads = counting_bounds.max_loads_within(pool.problem, limits)
    room = Room(pool.problem, pool.constraints).loads
    return None if loads is None else list(map(min, loads, room))


_STEP, _STEP_PER_CHOICE = 5e-5, 1e-8
"""Estimated work of one move: a constant part, and a part per partition and member."""

Floats = NDArray[np.float64]


def move_work(problem: Problem) -> float:
    """Estimate the work of one greedy move."""
    return _STEP + problem.partition_count * problem.member_count * _STEP_PER_CHOICE


class _Loads:
    """Mutable placement with its loads relative to the speeds."""

    def __init__(self, problem: Problem, start: Placement) -> None:
        self.problem = problem
        self.placement = start.copy()
        self.weight = problem.weight.astype(np.float64)
        self.scale = 1 / np.array(problem.member_units.speeds, dtype=np.float64)
        self.loads = np.array(problem.loads(start), dtype=np.float64) * self.scale

    def drops(self, partitions: Ints) -> Floats:
        """Return the decrease of the sum of squares per move; -inf for impossible moves."""
        source, own = self.placement[partitions], self.weight[partitions][:, None]
        scale, may_consume = self.scale, self.problem.may_consume[self.problem.consumer_set]
        drop: Floats = 2 * (self.loads[source][:, None] - self.loads)
        drop = own * (drop - own * (scale[source][:, None] + scale))
        drop[~may_consume[partitions]] = -np.inf
        drop[np.arange(len(partitions)), source] = -np.inf
        return drop

    def move(self, partition: int, target: int) -> None:
        source, weight = self.placement[partition], self.weight[partition]
        self.loads[source] -= weight * self.scale[source]
        self.loads[target] += weight * self.scale[target]
        self.placement[partition] = target

    def moved(self, partition: int, target: int) -> "_Loads":
        changed = copy(self)
        changed.placement, changed.loads = self.placement.copy(), self.loads.copy()
        changed.move(partition, target)
        return changed

    def lower(self, partitions: Ints, drop: Floats) -> bool:
        """Make the best move; return False if no move lowers the sum of squares."""
        if drop.max(initial=0) <= 0:
            return False
        row, target = divmod(int(drop.argmax()), self.problem.member_count)
        self.move(int(partitions[row]), target)
        return True


def lower_squares(
    problem: Problem, start: Placement, most: int, may_continue: Callable[[], bool]
) -> Iterator[Placement]:
    """Yield the placement after each greedy move; no partition moves twice.

    Each move lowers the sum of load times relative load most. The moves end if none lowers it.
    """
    state = _Loads(problem, start)
    for _ in range(most):
        is_open = (state.placement == problem.owner) | (problem.owner == NO_OWNER)
        partitions = np.flatnonzero(is_open & (problem.weight > 0))
        if not len(partitions) or not may_continue():
            return
        if not state.lower(partitions, state.drops(partitions)):
            return
        yield state.placement.copy()


def spread_moved(problem: Problem, start: Placement, may_continue: Callable[[], bool]) -> Placement:
    """Reassign moved partitions while this lowers the sum of squares.

    No further partition moves, and no load exceeds the maximum load of ``start``.
    """
    state = _Loads(problem, start)
    # Rounding must not exclude loads that are equal to the maximum.
    most = state.loads.max(initial=0) * (1 if problem.group.has_equal_speeds else 1 + 1e-12)
    while may_continue():
        partitions = np.flatnonzero((state.placement != problem.owner) & (problem.weight > 0))
        received = state.loads + state.weight[partitions][:, None] * state.scale
        if not state.lower(partitions, np.where(received > most, 0, state.drops(partitions))):
            break
    return state.placement


_STATE, _STATE_PER_PARTITION = 1.5e-4, 1e-7
"""Measured work per placement and move: a constant part, and a part per partition."""


@dataclass(frozen=True)
class MovesBeam:
    """Beam search for low loads that makes one move after the other."""

    problem: Problem
    width: int  # number of placements that are kept per number of moves
    heaviest: int | None = None  # weight above which partitions stay; None for no limit

    def search(
        self, start: Placement, most: int, may_continue: Callable[[], bool]
    ) -> Iterator[Placement]:
        """Yield the best placement after each move, for at most ``most`` moves."""
        states = [_Loads(self.problem, start)] if self.problem.member_count > 1 else []
        for _ in range(most):
            if not states or not may_continue():
                return
            ranked = [change for state in states for change in self._changes(state)]
            ranked.sort(key=lambda change: change[:2])
            following: dict[bytes, _Loads] = {}
            for *_, state, partition, member in ranked:
                changed = state.moved(partition, member)
                following.setdefault(changed.loads.tobytes(), changed)
                if len(following) == self.width:
                    break
            states = list(following.values())
            yield from (state.placement for state in states[:1])

    @property
    def step(self) -> float:
        """Return the work units that the beam needs to extend all its states by one move."""
        return self.width * (_STATE + self.problem.partition_count * _STATE_PER_PARTITION)

    @cached_property
    def _movable(self) -> NDArray[np.bool_]:
        weight = self.problem.weight
        return (weight > 0) & (True if self.heaviest is None else weight <= self.heaviest)

    def _changes(self, state: _Loads) -> list[tuple[float, float, _Loads, int, int]]:
        """Return the best moves from the member with the maximum load, and their effects."""
        problem, loads, scale = self.problem, state.loads, state.scale
        source = int(loads.argmax())
        is_unmoved = (problem.owner == source) | (problem.owner == NO_OWNER)
        own = np.flatnonzero((state.placement == source) & is_unmoved & self._movable)
        allowed = problem.may_consume[problem.consumer_set[own]].copy()
        allowed[:, source] = False
        rows, targets = np.nonzero(allowed)
        weight = state.weight[own[rows]]
        others = loads.copy()
        others[source] = -1
        highest = np.maximum(loads[targets] + weight * scale[targets], others.max())
        highest = np.maximum(highest, loads[source] - weight * scale[source])
        # The sum of squares changes by twice this product.
        mean = (scale[targets] + scale[source]) / 2
        squares = weight * (weight * mean + loads[targets] - loads[source])
        total = float((np.square(loads) / scale).sum())
        return [
            (
                highest[at],
                total + 2 * float(squares[at]),
                state,
                int(own[rows[at]]),
                int(targets[at]),
            )
            for at in np.lexsort((squares, highest))[: self.width].tolist()
        ]


@dataclass
class LoadBalancer:
    """Local search that balances the loads of a placement in place.

    ``base`` is an additional load per member, which does not move. ``permits`` returns whether a
    placement may be kept; by default, all may.
    """

    problem: Problem
    placement: Placement
    rng: "np.random.Generator"  # a string, because numpy.random takes long to load
    base: Sequence[int]
    permits: Callable[[Placement], bool] = lambda _: True
    loads: Weights = field(init=False)

    def __post_init__(self) -> None:
        loads = map(sum, zip(self.problem.loads(self.placement), self.base, strict=True))
        self.loads = np.array([*loads], dtype=self.problem.weight.dtype)

    def lower_makespan(self, target: int, may_continue: Callable[[], bool]) -> None:
        """Lower the makespan towards a target until no work is left or many attempts fail."""
        failures = 0
        while self.loads.max() > target and failures < _MAX_FAILURES and may_continue():
            if self._lower_load(int(self.loads.argmax())):
                failures = 0
            else:
                failures += 1

    def even_out(self, may_continue: Callable[[], bool]) -> None:
        """Balance pairs of members, in descending order of their load difference."""
        width = self.problem.member_count
        for _ in range(4):
            order = np.argsort(self.loads, kind="stable")
            pairs = zip(order[::-1][: width // 2].tolist(), order.tolist(), strict=False)
            if not may_continue() or not sum(
                self._balance_pair(one, other) for one, other in pairs
            ):
                return

    def balance_random_pairs(self, may_continue: Callable[[], bool]) -> None:
        """Balance random pairs of members until many attempts in a row fail."""
        width = self.problem.member_count
        failures = 0
        while width > 1 and failures < _MAX_PAIR_FAILURES and may_continue():
            one, other = self.rng.choice(width, 2, replace=False).tolist()
            failures = 0 if self._balance_pair(one, other) else failures + 1

    def _lower_load(self, member: int) -> bool:
        order = np.argsort(self.loads, kind="stable")
        least_loaded = order[: max(4, len(order) // 4)]
        for partner in self.rng.permutation(least_loaded)[:6].tolist():
            if partner != member and self._balance_pair(member, partner):
                return True
        return False

    def _balance_pair(self, one: int, other: int) -> bool:
        """Reassign the partitions of two members to minimise the difference of their loads."""
        partitions = self._common_partitions((one, other))
        if len(partitions) > _MAX_PAIR_ITEMS:
            partitions = np.sort(self.rng.choice(partitions, _MAX_PAIR_ITEMS, replace=False))
        weights = self.problem.weight[partitions]
        load, other_load = int(self.loads[one]), int(self.loads[other])
        both = load + other_load
        fixed = load - int(weights[self.placement[partitions] == one].sum())
        nearest = _nearest_subset(weights, both // 2 - fixed)
        chosen = np.asarray((nearest >> np.arange(len(partitions))) & 1, dtype=np.bool_)
        new = fixed + int(weights[chosen].sum())
        if max(new, both - new) >= max(load, other_load):
            return False
        return self._change(partitions, np.where(chosen, one, other))

    def _change(self, partitions: NDArray[np.intp], receivers: Placement) -> bool:
        before = self.placement[partitions]
        self.placement[partitions] = receivers
        if not self.permits(self.placement):
            self.placement[partitions] = before
            return False
        weights = self.problem.weight[partitions]
        np.subtract.at(self.loads, before, weights)
        np.add.at(self.loads, receivers, weights)
        return True

    def _common_partitions(self, pair: tuple[int, int]) -> NDArray[np.intp]:
        partitions = np.flatnonzero(np.isin(self.placement, pair))
        may_consume = self.problem.may_consume[self.problem.consumer_set[partitions]]
        return partitions[may_consume[:, pair].all(axis=1)]


def _all_sums(weights: Weights) -> Weights:
    """Return the total weight of every subset, indexed by the bit mask of the subset."""
    sums = np.zeros(1, dtype=weights.dtype)
    for weight in weights:
        sums = np.concatenate([sums, sums + weight])
    return sums


def _nearest_subset(weights: Weights, target: int) -> int:
    """Return the bit mask of a subset with the total weight nearest to a target."""
    half = len(weights) // 2
    first, second = _all_sums(weights[:half]), _all_sums(weights[half:])
    order = np.argsort(second, kind="stable")
    ascending = second[order]
    right = np.searchsorted(ascending, target - first).clip(0, len(second) - 1)
    left = (right - 1).clip(0)
    misses = np.abs(np.stack([ascending[left], ascending[right]]) + first - target)
    side, at = np.unravel_index(int(misses.argmin()), misses.shape)
    return int(at) | int(order[(left, right)[int(side)][at]]) << half
