"""Compute a lower bound on moves within maximum loads by column generation.

A member pays the price of each partition that it gives away, and earns the price minus the
cost of the move for each partition that it receives. For any prices, the sum of the members'
minimum payments bounds the cost of all moves: the prices of moved partitions cancel out. Each
member solves a knapsack over whole partitions, hence the bound is stronger than a linear
relaxation. Prices are integers, so the bound is exact. Column generation finds prices by weight,
then prices of single partitions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.counting_bounds import owned_partitions
from kassay.solver.evaluation import moves_cost
from kassay.solver.limits import limited_steps
from kassay.solver.problem import Ints, Placement, Problem

Floats = NDArray[np.float64]

# Prices and bounds are integers, in units of 1 / SCALE.
SCALE = 2**16
INFEASIBLE = 2**55


class ExchangePattern(NamedTuple):
    """Partitions that one member gives away and receives, in ascending order."""

    member: int
    given: tuple[int, ...]
    received: tuple[int, ...]


class _Step(NamedTuple):
    """Step of the dynamic program that selects the partitions to receive."""

    partitions: Ints
    chosen: NDArray[np.bool_]


class _GiveStep(NamedTuple):
    """Step of the dynamic program that selects the partitions to give away."""

    members: Ints
    chosen: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Knapsacks:
    """Solutions of the knapsack problems of all members."""

    net: Ints  # minimum payment per member and amount given away, or INFEASIBLE
    bound: int  # on the cost of all moves, times SCALE
    giving: Sequence[_GiveStep]  # decisions of the dynamic programs
    receiving: Sequence[Sequence[_Step]]  # per member


@dataclass
class MemberExchange:
    """Knapsack problems of all members, solved together with rounded weights.

    Weights are rounded up for given and down for received partitions, so the bound stays valid.
    """

    problem: Problem
    max_loads: Sequence[int]
    costs: Ints
    grid: int  # units in the greatest maximum load

    def __post_init__(self) -> None:
        problem = self.problem
        grain = max(1, max(self.max_loads, default=0) // self.grid)
        weight = problem.weight.astype(np.int64)
        lists = owned_partitions(problem)
        loads = np.array([int(weight[partitions].sum()) for partitions in lists], dtype=np.int64)
        self.free_capacity = (np.array(self.max_loads, dtype=np.int64) - loads) // grain
        self.give_weight, self.receive_weight = -(-weight // grain), weight // grain
        overload = max(-int(self.free_capacity.min()), 0)
        # A member has at most the greatest maximum load, whatever it gives away.
        self.room = max(self.max_loads, default=0) // grain + 1
        self.width = self.room + 1 + overload
        self.move_cost = np.where(problem.owner == NO_OWNER, 0, self.costs)
        self.may_receive = problem.may_consume[problem.consumer_set]
        owned = np.flatnonzero(problem.owner != NO_OWNER)
        self.may_receive[owned, problem.owner[owned]] = False
        self.owned = np.full((max(map(len, lists), default=0), problem.member_count), NO_OWNER)
        for member, partitions in enumerate(lists):
            self.owned[: len(partitions), member] = partitions

    def solve(self, price: Ints) -> Knapsacks:
        """Solve the knapsack problems of all members for given partition prices."""
        price_paid, giving = self._give_tables(price)
        price_earned, receiving = self._receive_tables(price)
        net = _sum_of_payments(price_paid, self._payments(price_earned))
        unowned = self.problem.owner == NO_OWNER
        bound = int(net.min(axis=1).sum()) + int(price[unowned].sum())
        return Knapsacks(net, bound, giving, receiving)

    def bounds_of_moves(self, price: Ints, most: int) -> Ints:
        """Return for each move a lower bound on the total cost of placements with this move.

        Rows are partitions, columns members. Bounds are multiplied by `SCALE`. They are at least
        ``most`` + 1 if the partition is too expensive for its owner to give away, or the member may
        not receive it.
        """
        price_paid, _ = self._give_tables(price)
        price_earned, _ = self._receive_tables(price)
        payments = self._payments(price_earned)
        least = _sum_of_payments(price_paid, payments).min(axis=1)
        bound = int(least.sum()) + int(price[self.problem.owner == NO_OWNER].sum())
        given = bound + self._extra_of_given(price, payments, least)
        profit = price - self.move_cost * SCALE
        bounds = np.full(self.may_receive.shape, most + 1, dtype=np.int64)
        columns: dict[int, Ints] = {}
        for partition in np.flatnonzero(given <= most).tolist():
            weight = int(self.receive_weight[partition])
            if weight not in columns:
                payments = self._payments(price_earned, weight)
                columns[weight] = _sum_of_payments(price_paid, payments).min(axis=1) - least
            extra = columns[weight] - profit[partition]
            may_receive = self.may_receive[partition]
            bounds[partition, may_receive] = (given[partition] + extra)[may_receive]
        return bounds

    def _extra_of_given(self, price: Ints, payments: Ints, least: Ints) -> Ints:
        """Return, per partition, the additional cost if the owner gives it away."""
        extra = np.zeros(len(price), dtype=np.int64)
        last = np.arange(self.width)
        for member, column in enumerate(self.owned.T):
            own = column[column != NO_OWNER].tolist()
            before = np.full(self.width, INFEASIBLE, dtype=np.int64)
            before[0] = 0
            paid = []  # minimum price per amount that the partitions before give
            for partition in own:
                paid.append(before)
                without = np.maximum(last - self.give_weight[partition], 0)
                before = np.minimum(before, before[without] + price[partition])
            after = payments[member]
            for partition, known in zip(reversed(own), reversed(paid), strict=True):
                amount = np.minimum(last + self.give_weight[partition], self.width - 1)
                chosen = after[amount] + price[partition]
                extra[partition] = int((known + chosen).min()) - int(least[member])
                after = np.minimum(after, chosen)
        return extra

    def pattern(self, knapsacks: Knapsacks, member: int, amount: int) -> ExchangePattern:
        """Return the best exchange pattern of a member that gives away a given load."""
        left = min(int(self.free_capacity[member]) + amount, self.room - 1)
        received = []
        for partitions, chosen in reversed(knapsacks.receiving[member]):
            at = len(partitions)
            while at and (taken := np.flatnonzero(chosen[:at, left])).size:
                at = int(taken[-1])
                received.append(int(partitions[at]))
                left -= int(self.receive_weight[partitions[at]])
        given = []
        for at in np.flatnonzero(self.owned[:, member] != NO_OWNER)[::-1].tolist():
            step = knapsacks.giving[at]
            if step.chosen[np.searchsorted(step.members, member), amount]:
                partition = int(self.owned[at, member])
                given.append(partition)
                amount = max(amount - int(self.give_weight[partition]), 0)
        return ExchangePattern(member, tuple(sorted(given)), tuple(sorted(received)))

    def pattern_of(self, placement: Placement, member: int) -> ExchangePattern:
        """Return the partitions that a member gives away and receives in a placement."""
        here, owned = placement == member, self.problem.owner == member
        given, received = np.flatnonzero(owned & ~here), np.flatnonzero(here & ~owned)
        return ExchangePattern(member, tuple(given.tolist()), tuple(received.tolist()))

    def choices(self, patterns: Sequence[ExchangePattern], width: int) -> sparse.csr_matrix:
        """Return a sparse matrix that is 1 where a pattern (column) belongs to a member (row)."""
        members = [pattern.member for pattern in patterns]
        ones, columns = np.ones(len(patterns)), np.arange(len(patterns))
        return sparse.csr_matrix((ones, (members, columns)), (self.problem.member_count, width))

    def matrix(self, patterns: Sequence[ExchangePattern]) -> sparse.csr_matrix:
        """Return a sparse matrix of patterns and partitions: -1 means given away, 1 received."""
        sizes = [len(one.given) + len(one.received) for one in patterns]
        columns = [at for one in patterns for at in (*one.given, *one.received)]
        signs = [
            sign
            for one in patterns
            for sign in (*[-1.0] * len(one.given), *[1.0] * len(one.received))
        ]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return sparse.csr_matrix(
            (signs, columns, starts), (len(patterns), self.problem.partition_count)
        )

    def fees(self, patterns: Sequence[ExchangePattern]) -> Floats:
        """Return the cost of moving the received partitions of each pattern."""
        cost = self.move_cost.tolist()
        return np.array([float(sum(cost[at] for at in one.received)) for one in patterns])

    def _give_tables(self, price: Ints) -> tuple[Ints, list[_GiveStep]]:
        amounts = np.arange(self.width)
        price_paid = np.full((self.problem.member_count, self.width), INFEASIBLE, dtype=np.int64)
        price_paid[:, 0] = 0
        steps = []
        for row in self.owned:
            members = np.flatnonzero(row != NO_OWNER)
            partitions, known = row[members], price_paid[members]
            before = np.maximum(amounts - self.give_weight[partitions][:, None], 0)
            cost = np.take_along_axis(known, before, axis=1) + price[partitions][:, None]
            chosen = cost < known
            price_paid[members] = np.where(chosen, cost, known)
            steps.append(_GiveStep(members, chosen))
        return price_paid, steps

    def _receive_tables(self, price: Ints) -> tuple[Ints, list[list[_Step]]]:
        members = self.problem.member_count
        price_earned = np.zeros((members, self.room), dtype=np.int64)
        receiving: list[list[_Step]] = [[] for _ in range(members)]
        profit = price - self.move_cost * SCALE
        worth = np.flatnonzero((profit > 0) & (self.receive_weight < self.room))
        self._fill_receive_tables(price_earned, receiving, (0, members), worth, profit)
        return price_earned, receiving

    def _payments(self, price_earned: Ints, weight: int = 0) -> Ints:
        """Return the cost of receiving partitions, by member and by load given away.

        ``weight`` of the capacity is not available. Payments are INFEASIBLE without capacity.
        """
        space = self.free_capacity[:, None] + np.arange(self.width) - weight
        gain = np.take_along_axis(price_earned, space.clip(0, self.room - 1), axis=1)
        return np.where(space >= 0, -gain, INFEASIBLE)

    def _fill_receive_tables(
        self,
        tables: Ints,
        steps: list[list[_Step]],
        members: tuple[int, int],
        partitions: Ints,
        profit: Ints,
    ) -> None:
        """Compute the maximum gain from received partitions per member and capacity.

        ``members`` is a range of members. ``tables`` contains the gains of earlier partitions.
        Partitions that all members of the range may receive are added once; each half of the
        range adds the others.
        """
        low, high = members
        allowed = self.may_receive[partitions, low:high]
        by_all = allowed.all(axis=1)
        common, others = partitions[by_all], partitions[~by_all & allowed.any(axis=1)]
        if len(common):
            table = tables[low]
            chosen = np.zeros((len(common), self.room), dtype=np.bool_)
            for at, partition in enumerate(common.tolist()):
                size = int(self.receive_weight[partition])
                gain_with = table[: self.room - size] + profit[partition]
                chosen[at, size:] = gain_with > table[size:]
                np.maximum(gain_with, table[size:], out=table[size:])
            tables[low:high] = table
            for member in range(low, high):
                steps[member].append(_Step(common, chosen))
        if high - low > 1:
            middle = (low + high) // 2
            for half in ((low, middle), (middle, high)):
                self._fill_receive_tables(tables, steps, half, others, profit)


def _sum_of_payments(price_paid: Ints, payments: Ints) -> Ints:
    is_feasible = (price_paid < INFEASIBLE) & (payments < INFEASIBLE)
    return np.where(is_feasible, price_paid + payments, INFEASIBLE)


_KNOTS = 200
_FIRST_BOX, _MIN_BOX, _MAX_BOX = 0.5, 0.02, 4.0
_FIRST_BOX_OF_PARTITIONS, _MIN_BOX_OF_PARTITIONS = 0.1, 0.01
_TOLERANCE = 0.01
# Consecutive rounds without a higher bound after which the search for prices by weight stops.
_MAX_FAILURES = 30
# Patterns of a linear program. Above this number, those with the highest payments are removed.
_MAX_PATTERNS = 5_000
# Ranges of amounts given away, each a sixteenth of the grid, that provide patterns.
_WINDOWS = 6


@dataclass
class ColumnGeneration:
    """Column generation that finds partition prices for a lower bound on moves.

    A linear program over the patterns found so far computes prices: each pattern is a cut, the
    knapsacks find the next ones (Dantzig and Wolfe, 1960; Gilmore and Gomory, 1961). Prices of
    single partitions are many and unstable. The first prices are therefore piecewise linear in the
    weight, separately for members above and below their maximum load. Prices stay in a box around
    the best ones, which grows after improvements (Marsten, Hogan and Blankenship, 1975).
    """

    exchange: MemberExchange
    basis: sparse.csr_matrix = field(init=False)  # prices = basis @ price variables
    knots: int = field(init=False)  # price variables per kind of partition; 0 for single prices
    centre: Floats = field(init=False)  # best price variables
    box: float = _FIRST_BOX
    prices: Ints = field(init=False)  # best ones of the partitions, times `SCALE`
    bound: int = 0  # on movement, times `SCALE`, proven by the prices
    active: dict[ExchangePattern, None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.exchange.problem
        weight, owner = problem.weight.astype(np.float64), problem.owner
        knots = _knots(weight)
        self.knots = len(knots)
        at = (np.searchsorted(knots, weight, side="right") - 1).clip(0, self.knots - 2)
        share = (weight - knots[at]) / (knots[at + 1] - knots[at])
        unowned = owner == NO_OWNER
        unit = np.where(unowned, max(float(np.mean(self.exchange.costs)), 1.0), self.exchange.costs)
        is_overloaded = self.exchange.free_capacity[owner] < 0
        at = at + self.knots * np.where(unowned, 2, np.where(is_overloaded, 0, 1))
        partitions = np.arange(problem.partition_count)
        self.basis = sparse.csr_matrix(
            (
                np.concatenate([(1 - share) * unit, share * unit]),
                (np.concatenate([partitions, partitions]), np.concatenate([at, at + 1])),
            ),
            (problem.partition_count, 3 * self.knots),
        )
        self.centre = np.repeat([1.0, 1.0, 0.0], self.knots)
        self.prices = np.zeros(problem.partition_count, dtype=np.int64)

    def raise_bound(self, enough: int, may_continue: Callable[[], bool]) -> bool:
        """Raise the bound above ``enough``; return whether the bound stops rising earlier."""
        self.add(
            ExchangePattern(member, (), ())
            for member in np.flatnonzero(self.exchange.free_capacity >= 0).tolist()
        )
        point, failures = self.centre, 0
        while may_continue() and self.bound <= enough:
            if self.knots and failures >= _MAX_FAILURES:
                return True
            partitions = np.rint((self.basis @ point).clip(0) * SCALE).astype(np.int64)
            knapsacks = self.exchange.solve(partitions)
            improved = knapsacks.bound > self.bound
            failures = 0 if improved else failures + 1
            if improved:
                self.prices, self.bound, self.centre = partitions, knapsacks.bound, point
            self._collect(knapsacks)
            answer = self._program()
            if answer is None:
                return True
            model_bound, next_point = answer
            gain = model_bound - self.bound / SCALE
            if improved:
                self.box = min(self.box * 1.5, _MAX_BOX)
            elif knapsacks.bound / SCALE < self.bound / SCALE - 0.5 * gain:
                self._shrink_box(failures)
            if gain < _TOLERANCE:
                if self._is_inside(next_point) or self.box >= _MAX_BOX:
                    return True
                self.box = min(self.box * 3, _MAX_BOX)
            point = next_point
        return False

    def price_partitions(self) -> None:
        """Switch from prices per weight to a separate price per partition."""
        if self.knots:
            self.knots = 0
            self.basis = sparse.identity(self.exchange.problem.partition_count, format="csr")
            self.centre = self.prices / SCALE
            self.box = _FIRST_BOX_OF_PARTITIONS

    def add(self, patterns: Iterable[ExchangePattern]) -> None:
        """Add exchange patterns of members to the linear program."""
        self.active |= dict.fromkeys(patterns)

    def priced(self) -> "PricedExchanges":
        """Return the best partition prices and the bound that they prove."""
        return PricedExchanges(self.exchange, self.prices, -(-self.bound // SCALE))

    def _shrink_box(self, failures: int) -> None:
        # A box that shrinks with each failure excludes better prices.
        if self.knots and failures % 3 == 0:
            self.box = max(self.box * 0.6, _MIN_BOX)
        elif not self.knots and failures % 6 == 0:
            self.box = max(self.box * 0.7, _MIN_BOX_OF_PARTITIONS)

    def _collect(self, knapsacks: Knapsacks) -> None:
        least = knapsacks.net.argmin(axis=1).tolist()
        price = knapsacks.net.min(axis=1)
        wide = max(self.exchange.width // 16, 1)
        for member, net in enumerate(knapsacks.net):
            amounts = {least[member]: None}
            for start in range(0, min(_WINDOWS * wide, len(net)), wide):
                amount = start + int(net[start : start + wide].argmin())
                if net[amount] < min(price[member] + SCALE // 2, INFEASIBLE):
                    amounts[amount] = None
            self.add(
                self.exchange.pattern(knapsacks, member, amount)
                for amount in amounts
                if net[amount] < INFEASIBLE
            )

    def _program(self) -> tuple[float, Floats] | None:
        """Solve the linear program over the known patterns; return its value and dual values."""
        width, count = self.exchange.problem.member_count, len(self.centre)
        unowned = self.exchange.problem.owner == NO_OWNER
        # Dual values are the prices; a column bounds them from above, its negative from below.
        unit = sparse.identity(count, format="csc")
        is_last = (np.arange(count) + 1) % self.knots == 0 if self.knots else np.ones(count, bool)
        lower = np.flatnonzero(~is_last)
        rising = unit[:, lower] - unit[:, lower + 1]
        low, high = np.maximum(self.centre - self.box, 0), self.centre + self.box
        patterns = list(self.active)
        fees = self.exchange.fees(patterns)
        cost = np.concatenate([fees, high, -low, np.zeros(rising.shape[1])])
        linking = [(self.exchange.matrix(patterns) @ self.basis).T, unit, -unit, rising]
        once = self.exchange.choices(patterns, len(cost))
        needed = self.basis.T @ unowned.astype(np.float64)
        result = linprog(
            cost,
            A_eq=sparse.vstack([sparse.hstack(linking), once], format="csc"),
            b_eq=np.concatenate([needed, np.ones(width)]),
            method="highs",
        )
        if result.status != 0:
            return None
        if len(patterns) > _MAX_PATTERNS:
            order = np.argsort(result.lower.marginals[: len(patterns)], kind="stable")
            self.active = {patterns[at]: None for at in order[: _MAX_PATTERNS // 2].tolist()}
        return float(result.fun), np.asarray(result.eqlin.marginals)[:count].clip(low, high)

    def _is_inside(self, point: Floats) -> bool:
        low, high = self.centre - self.box, self.centre + self.box
        return bool(((point < high - 1e-9) & ((point > low + 1e-9) | (low <= 0))).all())


def _knots(weight: Floats) -> Floats:
    """Return the weights at which the piecewise linear prices have breakpoints."""
    each = np.unique(np.append(weight, 0.0))
    if len(each) == 1:
        return np.array([0.0, 1.0])
    if len(each) <= _KNOTS:
        return each
    top = float(each[-1])
    return np.concatenate([[0.0], np.geomspace(max(top / 50, 0.5), top, _KNOTS - 1)])


_GRID = 2000
_MAX_CELLS = 200_000_000
_MIN_GRID = 400
_MAX_GIVEN_CELLS = 50_000_000  # entries of the knapsacks of given partitions
_MAX_PRICED = 4_000  # partitions with single prices; the linear program cannot be interrupted
_ROUNDS = 60  # of prices per partition before a new start
_WORK_PER_STEP, _WORK_PER_CELL = 5e-3, 6e-9  # of the linear program and of the knapsacks


@dataclass(frozen=True, slots=True)
class PricedExchanges:
    """Partition prices, and the lower bound on the cost of moves that they prove."""

    exchange: MemberExchange
    prices: Ints  # times `SCALE`
    bound: int

    def possible_moves(self, cost: int) -> NDArray[np.bool_]:
        """Return which moves (partition, member) may occur within a total cost."""
        most = cost * SCALE
        return self.exchange.bounds_of_moves(self.prices, most) <= most


def price_by_weight(
    problem: Problem,
    max_loads: Sequence[int],
    costs: Ints,
    *,
    incumbent: int,
    may_continue: Callable[[], bool],
) -> PricedExchanges | None:
    """Find partition prices that depend only on the weight of the partition.

    Stop when the bound reaches the cost of the incumbent. Return None if the knapsacks are too
    large.
    """
    search = _column_generation(problem, max_loads, costs)
    if search is None:
        return None
    search.raise_bound((incumbent - 1) * SCALE, may_continue)
    return search.priced()


def price_by_partition(
    problem: Problem,
    max_loads: Sequence[int],
    costs: Ints,
    *,
    start: Placement,
    may_continue: Callable[[], bool],
) -> PricedExchanges | None:
    """Find partition prices by weight, and then an individual price for each partition.

    Stop when the bound is the cost of the placement ``start``.
    """
    search = _column_generation(problem, max_loads, costs)
    if search is None:
        return None
    enough = (moves_cost(problem, costs, start) - 1) * SCALE
    search.add(search.exchange.pattern_of(start, member) for member in range(problem.member_count))
    search.raise_bound(enough, may_continue)
    if problem.partition_count <= _MAX_PRICED:
        search.price_partitions()
        # After some rounds, the search starts from the best prices again.
        while search.bound <= enough and may_continue():
            if search.raise_bound(enough, limited_steps(_ROUNDS, may_continue)):
                break
    return search.priced()


def price_step(problem: Problem) -> float:
    """Estimate the work of one step of the column generation."""
    cells = problem.partition_count * problem.member_count
    return _WORK_PER_STEP + _WORK_PER_CELL * cells * min(_GRID, _MAX_CELLS // max(cells, 1))


def _column_generation(
    problem: Problem, max_loads: Sequence[int], costs: Ints
) -> ColumnGeneration | None:
    """Create the column generation, or return None if the knapsacks are too large."""
    partitions, cells = problem.partition_count, problem.partition_count * problem.member_count
    if not cells or cells * _MIN_GRID > _MAX_CELLS or int(costs.max(initial=0)) > 2**20:
        return None
    grid = max(_MIN_GRID, min(_GRID, _MAX_CELLS // cells))
    # The knapsacks of given partitions are wider by the greatest overload of a member.
    most = max(max_loads)
    loads: list[int] = [sum(problem.weight[own].tolist()) for own in owned_partitions(problem)]
    overload = max(0, *(load - limit for load, limit in zip(loads, max_loads, strict=True)))
    grid = min(grid, _MAX_GIVEN_CELLS * most // (partitions * max(most + overload, 1)))
    if not most or grid < min(_MIN_GRID, most):
        return None
    return ColumnGeneration(MemberExchange(problem, max_loads, costs, grid))
