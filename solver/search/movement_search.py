"""Prove the fewest moves within limits, by CP-SAT and column generation.

A short search of CP-SAT solves most groups with few members. For the others, prices per weight
prove a higher bound. They also exclude most moves from placements whose cost is the bound, so that
CP-SAT finds such a placement, or proves that none exists.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import Measure
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import Capacity, MaxMoves, MaxPartitions
from kassay.solver.counting_bounds import level_bound, makespan_bound
from kassay.solver.evaluation import level_value, movement_costs
from kassay.solver.greedy_placements import keep_owned
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import HostImbalance, Imbalance, Level, Movement
from kassay.solver.problem import Placement, Problem
from kassay.solver.search.load_searches import MIN_PARTITIONS, max_loads
from kassay.solver.search_interface import ProvenBound
from kassay.solver.solution import ProgressPoint

if TYPE_CHECKING:
    from kassay.solver.search.few_moves import NeighbourhoodSearch
    from kassay.solver.search.movement_bound import PricedExchanges


_FIRST_LIMIT, _FIRST_LIMIT_WITH_RULES, _FIRST_LIMIT_OF_CPSAT = 0.6, 6.0, 12.0
"""Work of the first search. With other
constraints, prices prove weaker bounds; with hosts, speeds or several sets of consumers, the other
searches find worse placements."""
_SHARE, _SHARE_OF_CPSAT = 0.5, 0.9
"""Shares of the work left for these searches: in general, and if CP-SAT runs before prices."""
_LONG_LIMIT = 4.8  # work from which searches at the bound alternate with searches among all moves
_MANY_MEMBERS, _MANY_CHOICES = 8, 3_000
"""Numbers of members, and of partitions and their consumers, from which prices come first."""
_PRICE_SHARE = 0.5  # share of the work left for the column generation

_MAX_CHOICES_OF_CPSAT = 10_000
"""Partitions times members up to which CP-SAT mostly proves the fewest moves within seconds."""

LevelLimit = tuple[Level, int]


def has_few_choices(problem: Problem) -> bool:
    """Return whether the group is small enough for a fast proof by CP-SAT."""
    return problem.partition_count * problem.member_count <= _MAX_CHOICES_OF_CPSAT


@dataclass
class FewestMovesProof:
    """Search that proves the fewest moves within limits on earlier levels."""

    pool: IncumbentPool
    level: Movement
    limits: Sequence[LevelLimit]
    bound: int = 0  # proven lower bound on the cost of the moves
    priced: "PricedExchanges | None" = None
    """Prices of partitions for these limits, or for higher ones."""
    preferred: Sequence[LevelLimit] | None = None
    """Lower limits that a placement whose cost is the bound should meet, if possible."""
    origin: Origin = Origin.COUNTING
    has_searched: bool = False  # whether CP-SAT found a placement
    has_failed: bool = False
    """Whether a long first search, within these limits or higher ones, ended without proof."""

    def __post_init__(self) -> None:
        counted = level_bound(self.pool.problem, self.level, self.limits)
        self.raise_bound(counted, Origin.COUNTING)

    @property
    def is_proven(self) -> bool:
        """Return whether the cost of a placement in the pool equals the bound."""
        return self._cost() == self.bound

    @property
    def proven(self) -> ProvenBound:
        """Return the greatest proven bound on the cost of the moves, and its origin.

        If counting proved the bound, and CP-SAT found a placement, the origin is CP-SAT.
        """
        is_counted = self.has_searched and self.origin is Origin.COUNTING
        return ProvenBound(self.bound, Origin.CP_SAT if is_counted else self.origin)

    def raise_bound(self, bound: int, origin: Origin) -> None:
        """Raise the proven bound if the new bound is higher."""
        if bound > self.bound:
            self.bound, self.origin = bound, origin

    def within(self, limits: Sequence[LevelLimit]) -> "FewestMovesProof":
        """Create a search with lower limits that reuses the bound and the prices."""
        return replace(self, limits=limits, preferred=None)

    def _cost(self) -> int | None:
        best = self.pool.best(self.level, self.limits)
        return None if best is None else level_value(self.pool.problem, self.level, best)

    def run(self, budget: SearchBudget) -> None:
        """Search until the fewest moves are proven or no work is left."""
        if self.is_proven:
            return
        if self.priced is None and not self.prices_first and not self.has_failed:
            limit = _FIRST_LIMIT if self._has_only_limits else _FIRST_LIMIT_WITH_RULES
            limit = _FIRST_LIMIT_OF_CPSAT if self.cpsat_first else limit
            self._search(budget.until(limit), from_best=not self.cpsat_first)
            self.has_failed = self.cpsat_first and not self.is_proven and budget.has_work
            if self.is_proven or not budget.has_work:
                return
        if self.priced is None:
            self._price(budget.part(_PRICE_SHARE))
        if self.priced is None:
            self._search(budget)
        else:
            self._search_at_bound(budget)

    @property
    def prices_first(self) -> bool:
        """Return whether the column generation runs before CP-SAT."""
        problem = self.pool.problem
        choices = int(problem.may_consume[problem.consumer_set].sum())
        is_large = problem.member_count >= _MANY_MEMBERS and choices >= _MANY_CHOICES
        has_counts = any(isinstance(rule, MaxPartitions) for rule in self.pool.constraints)
        return is_large and self._has_only_limits and not (has_counts or self.cpsat_first)

    @property
    def first_share(self) -> float:
        """Return the share of the work left that this search may use."""
        return _SHARE_OF_CPSAT if self.cpsat_first else _SHARE

    @property
    def has_hosts(self) -> bool:
        """Return whether there are limits on the loads of hosts."""
        return any(isinstance(level, HostImbalance) for level, _ in self.limits)

    @property
    def cpsat_first(self) -> bool:
        """Return whether a long CP-SAT search runs before the column generation."""
        problem = self.pool.problem
        is_mixed = len(problem.consumer_sets) > 1 or not problem.group.has_equal_speeds
        return is_mixed or self.has_hosts

    @property
    def _has_only_limits(self) -> bool:
        """Return whether all constraints limit only loads or numbers of partitions."""
        return all(
            isinstance(rule, Capacity | MaxPartitions) for rule in self.pool.constraints
        ) and all(isinstance(level, Imbalance | HostImbalance) for level, _ in self.limits)

    def _search_at_bound(self, budget: SearchBudget) -> None:
        """Search for placements with a cost equal to the bound, with increasing work limits.

        Long searches alternate with searches among all moves, which also find better placements
        with higher costs. With constraints or hosts, short searches alternate, too.
        """
        limit = _FIRST_LIMIT
        is_repaired = bool(self.pool.constraints) or self.has_hosts
        while not self.is_proven and budget.has_work:
            bound, limit = self.bound, 2 * limit
            possible = None if self.priced is None else self.priced.possible_moves(bound)
            is_first = limit == 2 * _FIRST_LIMIT
            if not self._search(budget.until(limit), possible, interleaves=is_first):
                return
            if self.bound > bound:
                limit = _FIRST_LIMIT
            elif (is_repaired or limit >= _LONG_LIMIT) and not self.is_proven and budget.has_work:
                self._search(budget.until(limit))

    def _search(
        self,
        budget: SearchBudget,
        possible: NDArray[np.bool_] | None = None,
        *,
        interleaves: bool = False,
        from_best: bool = True,
    ) -> bool:
        """Search once with CP-SAT, among all moves or only among ``possible`` moves.

        The search starts from the best placement, or without one, which is better if
        ``cpsat_first``. Return whether a search was possible.
        """
        from kassay.solver.cpsat.level_search import MovedPartitionsModel  # noqa: PLC0415

        pool, target, limits = self.pool, self.bound, self.limits
        model = MovedPartitionsModel(
            pool.problem, pool.constraints, self.level, possible=possible, interleaves=interleaves
        )
        if possible is not None:
            limits = self.preferred or limits
        hint = pool.best(self.level, limits) if from_best else None
        found = model.minimise(self.level, limits, budget=budget, hint=hint, bound=target)
        if found.placement is not None:
            pool.add(found.placement)
            self.has_searched = True
        bound = target + 1 if found.infeasible else found.bound
        if bound is None:
            return False
        if possible is None:
            self.raise_bound(bound, Origin.CP_SAT)
        elif bound > target and self.preferred is not None:
            self.preferred = None
        else:
            self.raise_bound(min(bound, target + 1), Origin.CP_SAT)
        return True

    def _price(self, budget: SearchBudget) -> None:
        problem = self.pool.problem
        permitted = max_loads(self.pool, self.limits)
        if permitted is None or problem.has_big_loads:
            return
        from kassay.solver.search.movement_bound import price_by_weight, price_step  # noqa: PLC0415

        costs, cost = movement_costs(problem, self.level), self._cost()
        if costs.dtype == object:
            return
        self.priced = price_by_weight(
            problem,
            permitted,
            costs,
            incumbent=int(costs.sum()) + 1 if cost is None else cost,
            may_continue=budget.counted(price_step(problem)),
        )
        if self.priced is not None:
            self.raise_bound(self.priced.bound, Origin.EXCHANGE)


@dataclass
class FewestMovesProofs:
    """Searches for the fewest moves that share their bounds and prices."""

    pool: IncumbentPool
    proven: ProvenBound | None = None
    """Fewest moves of the last level, if they are proven before the minimum of the level before."""
    searches: list[FewestMovesProof] = field(default_factory=list)
    has_found: bool = False  # whether CP-SAT found a placement before the minimum of loads

    def may_come_first(self, index: int) -> bool:
        """Return whether a movement search may run before a load level is minimised."""
        problem = self.pool.problem
        return (
            any(isinstance(level, Movement) for level in self.pool.levels[index:])
            and problem.group.is_weighted
            and problem.partition_count >= MIN_PARTITIONS
            and has_few_choices(problem)
        )

    def search_first(self, index: int, bound: int, budget: SearchBudget) -> None:
        """Search for the fewest moves before the minimum loads are proven.

        The minima of the loads are between their bounds and the best known values. If the fewest
        moves are equal within the tolerances of both, the minima do not matter for the moves.
        """
        pool = self.pool
        strict, loose = pool.limits(), pool.limits()
        moves = next(level for level in pool.levels[index:] if isinstance(level, Movement))
        for level in takewhile(lambda one: one is not moves, pool.levels[index:]):
            if (
                not isinstance(level, Imbalance | HostImbalance)
                or level.tolerance.up_to is not None
            ):
                return
            least = bound if level is pool.levels[index] else level_bound(pool.problem, level)
            known = pool.best(level, strict)
            lowest = level.tolerance.limit(least)
            if known is None or level_value(pool.problem, level, known) > lowest:
                return
            loose.append((level, level.tolerance.limit(level_value(pool.problem, level, known))))
            strict.append((level, lowest))
        within, proven = budget.part(self.within(moves, loose).first_share), {}
        for is_loose in (True, False):
            search = self.within(moves, loose if is_loose else strict)
            search.preferred = strict if is_loose else None
            self.searches.append(search)
            search.run(within)
            if not search.is_proven:
                break
            proven[is_loose] = search.proven
        if len({bound.value for bound in proven.values()}) == 1 < len(proven):
            self.proven = proven[True]
        self.has_found = self.has_found or search.has_searched

    def search_few_choices(self, level: Movement, bound: int, budget: SearchBudget) -> ProvenBound:
        """Search for the fewest moves of a small group with CP-SAT, and return a bound."""
        search = self.within(level, self.pool.limits(), bound)
        self.searches.append(search)
        search.run(budget.part(search.first_share))
        return search.proven

    def within(
        self, level: Movement, limits: Sequence[LevelLimit], bound: int = 0
    ) -> FewestMovesProof:
        """Return a search for the fewest moves that reuses an earlier search if possible."""
        permitted = dict(limits)
        looser = [
            one
            for one in self.searches
            if one.level == level
            and all(permitted.get(limited, limit + 1) <= limit for limited, limit in one.limits)
        ]
        if not looser:
            return FewestMovesProof(self.pool, level, limits, bound)
        known = max(looser, key=lambda one: (one.bound, one.priced is not None)).within(limits)
        return replace(known, bound=max(known.bound, bound))


_WORK_FOR_FEW_MOVES, _MOVE_STEP = 1.0, 1e-4
"""Work for the first placement with few moves, also after a limit, and work of one move."""
_EXCHANGE_STEP = 1e-4  # measured work of one exchange of a beam search
_MIN_PARTITIONS = 60
_CHOICES_BEYOND_CPSAT = 3_000
"""Partitions times members above which the later search with CP-SAT improves little."""
_INITIAL_SHARE = 0.6  # share of the work left for the first placement
_IMPROVEMENT_SHARE, _SHARE_BEFORE_CPSAT, _BOUND_SHARE = 0.3, 0.95, 0.7
"""Shares of the work left for the first improvement of the placement, for the bound and the second
improvement together, and for the bound."""


def _is_makespan(level: Level) -> bool:
    return isinstance(level, Imbalance) and level.measure is Measure.MAKESPAN


def may_add_few_moves(pool: IncumbentPool) -> bool:
    """Return whether `add_few_moves` supports the problem."""
    problem = pool.problem
    return (
        _is_makespan(pool.levels[0])
        and problem.group.is_weighted
        and problem.group.has_equal_speeds
        and bool((problem.owner != NO_OWNER).any())
        and all(isinstance(rule, MaxMoves | Capacity) for rule in pool.constraints)
        and not problem.has_big_loads
    )


def add_few_moves(pool: IncumbentPool, budget: SearchBudget) -> None:
    """Add placements with few moves within a low makespan to the pool."""
    problem, level = pool.problem, pool.levels[0]
    owned = keep_owned(problem)
    best = pool.value(level)
    if max(problem.loads(owned)) <= best:
        return
    from kassay.solver.search.few_moves import NeighbourhoodSearch  # noqa: PLC0415

    costs = np.ones(problem.partition_count, dtype=np.int64)
    soon = budget.for_first_result(_WORK_FOR_FEW_MOVES).until(_WORK_FOR_FEW_MOVES)
    least = makespan_bound(problem)
    limit = level.tolerance.limit(least)
    for max_load in sorted({limit, best, least}, reverse=True):
        search = NeighbourhoodSearch(problem, max_load, costs, np.random.default_rng(0))
        placement = search.initial_solution(owned, soon.counted(_MOVE_STEP))
        if placement is not None:
            pool.add(placement)
            if max_load <= limit:
                return


def may_exchange(pool: IncumbentPool, level: Movement) -> bool:
    """Return whether `MovementSearch` supports the size and weights of the group."""
    problem = pool.problem
    return (
        problem.partition_count >= _MIN_PARTITIONS
        and not problem.has_big_loads
        and movement_costs(problem, level).dtype != object
        and problem.group.is_weighted
    )


@dataclass(frozen=True, slots=True)
class MovementSearch:
    """Search for few moves, and for a lower bound on the moves."""

    pool: IncumbentPool
    level: Movement
    budget: SearchBudget
    progress: list[ProgressPoint]

    def run(self, bound: int) -> int:
        """Search for fewer moves, and return a lower bound on the moves."""
        permitted = max_loads(self.pool, self.pool.limits())
        if permitted is None:
            return 0
        has_one_limit = min(permitted) == max(permitted)
        if has_one_limit and all(_is_makespan(finished) for finished, _ in self.pool.limits()):
            return self._search_and_bound(permitted, bound)
        if self.budget.has_work:
            return self._bound_moves(permitted, self.budget.part(_BOUND_SHARE))
        return 0

    def _search_and_bound(self, permitted: list[int], bound: int) -> int:
        from kassay.solver.search.few_moves import NeighbourhoodSearch  # noqa: PLC0415

        problem, pool = self.pool.problem, self.pool
        costs, rng = movement_costs(problem, self.level), np.random.default_rng(self.budget.seed)
        search = NeighbourhoodSearch(
            problem, min(permitted), costs, rng, self.budget, pool.is_permitted
        )
        start = self._initial_placement(search)
        if not self.budget.has_work:
            return 0
        self._record(search.cost(start), bound)
        self._improve(search, start, bound, self.budget.part(_IMPROVEMENT_SHARE))
        rest = self.budget.part(_SHARE_BEFORE_CPSAT if self._has_many_choices else _BOUND_SHARE)
        if not rest.has_work:
            return 0
        proven = self._bound_moves(permitted, rest.part(_BOUND_SHARE))
        bound = max(bound, proven)
        self._record(pool.value(self.level), bound)
        if self._has_many_choices:
            self._improve(search, pool.incumbent(self.level), bound, rest)
        return proven

    def _initial_placement(self, search: "NeighbourhoodSearch") -> Placement:
        """Find a first placement without a search, and add the placement to the pool."""
        soon = self.budget.part(_INITIAL_SHARE).for_first_result(_WORK_FOR_FEW_MOVES / 2)
        start = search.initial_solution(keep_owned(self.pool.problem), soon.counted(_MOVE_STEP))
        is_valid = start is not None and self.pool.add(start)
        if start is None or not is_valid or search.cost(start) > self.pool.value(self.level):
            return self.pool.incumbent(self.level)
        return start

    def _improve(
        self, search: "NeighbourhoodSearch", start: Placement, bound: int, within: SearchBudget
    ) -> None:
        self.pool.add(search.improve(start, bound, within.counted(_EXCHANGE_STEP)))
        self.progress.extend(ProgressPoint(at, cost, bound) for at, cost in search.found)
        search.found.clear()

    def _bound_moves(self, permitted: list[int], within: SearchBudget) -> int:
        from kassay.solver.search.movement_bound import price_by_partition, price_step  # noqa: PLC0415

        problem = self.pool.problem
        priced = price_by_partition(
            problem,
            permitted,
            movement_costs(problem, self.level),
            start=self.pool.incumbent(self.level),
            may_continue=within.counted(price_step(problem)),
        )
        return 0 if priced is None else priced.bound

    @property
    def _has_many_choices(self) -> bool:
        problem = self.pool.problem
        return problem.partition_count * problem.member_count >= _CHOICES_BEYOND_CPSAT

    def _record(self, value: int, bound: int) -> None:
        self.progress.append(ProgressPoint(self.budget.counter.spent, value, bound))
