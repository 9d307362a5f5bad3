"""Select the methods, bounds and searches for a group from one table.

`kassay.solver.solve` runs the rows of each part from the first to the last:

`METHODS`
    solve all levels at once. The first result is the answer.
`STARTS`
    add placements and bounds, or prove a conflict, if no method had a result.
`BOUNDS`
    bound one level before its searches. The levels are minimised in their order.
`SEARCHES`
    minimise one level, until its value equals its bound or no work is left.

A row runs if its condition holds when its turn comes. For groups with several windows,
only rows with ``has_windows`` run. The work of searches is limited, in units of about one second
of one core. `make ablation` measures the engine without each row in turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar, cast

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.load_metrics import Measure
from kassay.solver import objective
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.constraints import Colocated, Forbidden, MaxPartitions, Pinned
from kassay.solver.counting_bounds import level_bound
from kassay.solver.enumeration import enumerate_levels
from kassay.solver.evaluation import level_value
from kassay.solver.greedy_placements import (
    keep_owned,
    longest_processing_time,
    place_within,
    within_racks,
)
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.network.optimal_flow import flow_work, solve_flow
from kassay.solver.problem import Problem
from kassay.solver.search import (
    initial_placements,
    load_searches,
    movement_search,
    overload_searches,
)
from kassay.solver.search.level_flows import solve_by_arc_costs, solve_levels_by_flow
from kassay.solver.search_interface import KnownLevels, LexicographicResult, ProvenBound, Request
from kassay.solver.solution import Method, ProgressPoint, UsedMethod

_LOADS_AFTER_MOVES_WORK = 1.0
"""Work of CP-SAT for the loads after the moves, where it rarely proves the minimum."""
_WINDOWS_WORK = 4.0
"""Maximum work of CP-SAT per level with several windows. Most proofs need only seconds."""

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


_AnyRow = TypeVar("_AnyRow", bound="Row[Any, Any] | Search")


def rows_for(problem: Problem, rows: Sequence[_AnyRow]) -> list[_AnyRow]:
    """Return all rows, or with weight windows only the rows that support them."""
    return [row for row in rows if row.has_windows or problem.profiles is None]


class Row(NamedTuple, Generic[_Task, _Result]):
    """Table row with a function, the condition to run it, and the reason for the row."""

    name: str
    applies: Callable[[_Task], bool]
    run: Callable[[_Task], _Result]
    reason: str
    has_windows: bool = False


class Search(NamedTuple):
    """Table row with a search that minimises one level.

    ``run`` returns a bound with the origin ``origin``, or 0 or None without a proof. Searches
    without ``needs_work`` also run if no work is left, to add placements that need no search.
    """

    name: str
    applies: Callable[["LevelTask"], bool]
    run: Callable[["LevelTask"], ProvenBound | int | None]
    origin: Origin
    reason: str
    needs_work: bool = True
    has_windows: bool = False


@dataclass
class LevelTask:
    """Level to minimise within the limits of earlier levels.

    ``budget`` is the share of this level in the work left for all levels, which is ``whole``.
    ``budget_of_cpsat`` is the part of ``budget`` for CP-SAT.
    """

    pool: IncumbentPool
    index: int
    known: KnownLevels
    move_proofs: movement_search.FewestMovesProofs
    progress: list[ProgressPoint]
    whole: SearchBudget
    bound: int = 0
    """Greatest bound that is proven so far."""

    def __post_init__(self) -> None:
        # Movement needs no search without owners.
        has_owners = bool((self.pool.problem.owner != NO_OWNER).any())
        later = sum(
            has_owners or not isinstance(level, objective.Movement)
            for level in self.pool.levels[self.index + 1 :]
        )
        self.budget = self.whole.part(1 / (1 + later))
        is_brief = isinstance(self.level, objective.Imbalance) and self.is_after_moves
        self.budget_of_cpsat = (
            self.budget.until(_LOADS_AFTER_MOVES_WORK) if is_brief else self.budget
        )
        if self.pool.problem.profiles is not None:
            self.budget_of_cpsat = self.budget.until(_WINDOWS_WORK)

    @property
    def level(self) -> objective.Level:
        """Return the level to minimise."""
        return self.pool.levels[self.index]

    @property
    def imbalance_level(self) -> objective.Imbalance:
        """Return the level as an `Imbalance`."""
        return cast("objective.Imbalance", self.level)

    @property
    def movement_level(self) -> objective.Movement:
        """Return the level as a `Movement`."""
        return cast("objective.Movement", self.level)

    @cached_property
    def is_after_moves(self) -> bool:
        """Return whether a movement level is already minimised."""
        return any(isinstance(done.claim.level, objective.Movement) for done in self.pool.reached)

    @property
    def has_proven_moves(self) -> bool:
        """Return whether the fewest moves are proven before the movement level starts."""
        return self.move_proofs.proven is not None and not self.is_after_moves

    @property
    def lowers_loads(self) -> bool:
        """Return whether the level measures imbalance and comes before the movement level."""
        return isinstance(self.level, objective.Imbalance) and not self.is_after_moves

    @property
    def lowers_loads_freely(self) -> bool:
        """Return whether `lowers_loads` is true and the number of moves is unlimited."""
        return self.lowers_loads and not load_searches.limits_moves(self.pool)

    @property
    def lowers_moves(self) -> bool:
        """Return whether the searches for few moves apply to the level."""
        return isinstance(self.level, objective.Movement) and not self.pool.limits_squares()

    @property
    def spreads_loads(self) -> bool:
        """Return whether the level is a sum of squares after the movement level."""
        is_squares = self.is_after_moves and isinstance(self.level, objective.Imbalance)
        is_squares = is_squares and self.imbalance_level.measure is Measure.SUM_OF_SQUARES
        return is_squares and not self.pool.problem.has_big_loads


def _flow_starts(request: Request) -> Callable[[], bool]:
    return partial(request.budget.may_start, flow_work(request.problem))


def _solve_by_one_flow(request: Request) -> LexicographicResult | None:
    """Minimise all levels by one minimum cost flow; return None if too little work is left."""
    problem, levels = request.problem, request.levels
    if not _flow_starts(request)():
        return None
    placement, prices = solve_flow(problem, len(levels))
    values = [(level, level_value(problem, level, placement)) for level in levels]
    claims = tuple(LevelClaim(level, value, value, Origin.NODE_PRICES) for level, value in values)
    return LexicographicResult(placement, claims, node_prices=prices, method=UsedMethod.FLOW)


def _has_arc_costs(request: Request) -> bool:
    """Return whether a flow with convex arc costs is the method for all levels."""
    group, levels = request.problem.group, request.levels
    needs_arcs = any(
        isinstance(level, objective.TopicSpread | objective.FlowLevel) for level in levels
    )
    is_permitted = needs_arcs and request.method is Method.AUTO
    return group.has_copies or (is_permitted and objective.has_arc_costs(group, levels))


def _has_flows(request: Request) -> bool:
    problem = request.problem
    is_permitted = request.method is Method.AUTO
    return bool(is_permitted and problem.group.common_weight and problem.partition_count)


def _start_with_flows(start: initial_placements.Start) -> LexicographicResult | None:
    request = start.request
    start.flows = solve_levels_by_flow(
        request.problem, request.levels, request.rules, _flow_starts(request)
    )
    start.add(start.flows.placements)
    return initial_placements.conflict_by_flow(start.flows.conflict)


def search_by_cpsat(task: LevelTask) -> int:
    """Minimise a level with CP-SAT, and return a lower bound."""
    from kassay.solver.cpsat.level_search import search_level  # noqa: PLC0415 - slow to load

    return search_level(task.pool, task.level, task.bound, task.budget_of_cpsat)


METHODS: tuple[Row[Request, LexicographicResult | None], ...] = (
    Row(
        "one flow",
        lambda request: (
            request.method is not Method.CP_SAT
            and not request.rules
            and objective.is_optimal_by_squares_and_moves(request.problem.group, request.levels)
        ),
        _solve_by_one_flow,
        "one flow is fastest, and its node prices prove all levels",
    ),
    Row(
        "flows with arc costs",
        _has_arc_costs,
        lambda request: solve_by_arc_costs(request, _flow_starts(request)),
        "flows with convex costs per topic and copy are fast, and node prices prove all levels",
    ),
    Row(
        "enumeration",
        # Also for big loads, which CP-SAT does not prove.
        lambda request: request.method is Method.AUTO or request.problem.has_big_loads,
        lambda request: enumerate_levels(request.problem, request.levels, request.rules),
        "all assignments of a small group are compared in less time than a search starts",
        has_windows=True,
    ),
)
"""Methods that solve all levels at once."""

STARTS: tuple[Row[initial_placements.Start, LexicographicResult | None], ...] = (
    Row(
        "flows of the first levels",
        lambda start: _has_flows(start.request),
        _start_with_flows,
        "flows of equal weights solve or bound the first levels, whatever the constraints",
    ),
    Row(
        "owned partitions stay",
        lambda start: not start.flows.is_complete,
        lambda start: start.add([keep_owned(start.request.problem, start.units)]),
        "few partitions move; partitions without an owner go to the least loaded members",
        has_windows=True,
    ),
    Row(
        "heaviest partitions first",
        lambda start: (
            not start.flows.is_complete and (not start.flows.placements or bool(start.units))
        ),
        lambda start: start.add([longest_processing_time(start.request.problem, start.units)]),
        "loads are low, but the number of moves is ignored; flows find lower loads",
        has_windows=True,
    ),
    Row(
        "given placements",
        lambda start: bool(start.request.given),
        lambda start: start.add(start.request.given),
        "a warm start, or an answer with fewer constraints",
        has_windows=True,
    ),
    Row(
        "merged partitions",
        lambda start: (
            not start.request.is_derived
            and any(isinstance(rule, Colocated) for rule in start.request.rules)
        ),
        initial_placements.merge_and_solve,
        "the group with merged colocated partitions is smaller, and its bounds are valid",
        has_windows=True,
    ),
    Row(
        "heaviest partitions first within racks",
        lambda start: (
            not start.flows.is_complete
            and start.has_few_choices
            and any(isinstance(level, objective.CrossRack) for level in start.request.levels)
        ),
        lambda start: start.add(
            [longest_processing_time(within_racks(start.request.problem), start.units)]
        ),
        "repairs and CP-SAT rarely remove many off-rack reads",
    ),
    Row(
        "heaviest partitions first within constraints",
        lambda start: (
            not start.flows.is_complete and bool(start.request.rules) and start.may_place_within
        ),
        lambda start: start.add(
            [place_within(start.request.problem, start.request.rules, start.units)]
        ),
        "the other greedy rules ignore constraints",
    ),
    Row(
        "rounded weights",
        lambda start: start.request.problem.has_big_loads,
        initial_placements.solve_rounded,
        "few searches support loads beyond 64 bits",
    ),
    Row(
        "conflict of numbers",
        lambda start: (
            not start.has_placement
            and any(
                isinstance(one, MaxPartitions | Pinned | Forbidden) for one in start.request.rules
            )
        ),
        initial_placements.conflict_of_numbers,
        "flows prove conflicts that do not depend on weights, and their proof can be checked",
        has_windows=True,
    ),
    Row(
        "repair from any start",
        lambda start: (
            not start.has_placement and overload_searches.may_repair_any(start.request.problem)
        ),
        lambda start: overload_searches.add_any_repaired(start.pool, start.budget_for_any),
        "repairs of large groups meet constraints sooner than CP-SAT",
        has_windows=True,
    ),
    Row(
        "CP-SAT for any placement",
        lambda start: not start.has_placement and start.may_model,
        initial_placements.find_any_by_cpsat,
        "CP-SAT supports all constraints, and proves conflicts",
        has_windows=True,
    ),
    Row(
        "enumeration without a placement",
        lambda start: not start.has_placement,
        lambda start: enumerate_levels(
            start.request.problem, start.request.levels, start.request.rules
        ),
        "CP-SAT finds no assignment of some small groups with numbers of more than 50 bits",
        has_windows=True,
    ),
    Row(
        "constraints one by one",
        lambda start: (
            not start.has_placement
            and bool(start.request.rules)
            and not start.request.is_derived
            and not _has_flows(start.request)
        ),
        initial_placements.add_constraints_one_by_one,
        "repairs meet one added constraint more easily than all constraints together",
        has_windows=True,
    ),
    Row(
        "few moves within the makespan",
        lambda start: start.has_placement and movement_search.may_add_few_moves(start.pool),
        lambda start: movement_search.add_few_moves(start.pool, start.request.budget),
        "a placement with few moves within the lowest makespan often saves a search",
    ),
    Row(
        "repair within the lowest loads",
        lambda start: start.has_placement and overload_searches.may_add_repaired(start.pool),
        lambda start: overload_searches.add_repaired(start.pool, start.request.budget),
        "as the row before, for hosts, speeds, racks, constraints or several windows",
        has_windows=True,
    ),
)
"""Placements and bounds before the levels are minimised in their order."""

BOUNDS: tuple[Row[LevelTask, ProvenBound], ...] = (
    Row(
        "counting",
        lambda _: True,
        lambda task: ProvenBound(
            level_bound(task.pool.problem, task.level, task.pool.limits()), Origin.COUNTING
        ),
        "sums of weights and numbers bound each level without a search",
        has_windows=True,
    ),
    Row(
        "flows and merged partitions",
        lambda task: task.index in task.known.bounds,
        lambda task: task.known.bounds[task.index],
        "the starts solved relaxations, and their bounds are valid",
        has_windows=True,
    ),
    Row(
        "earlier searches for moves",
        lambda task: isinstance(task.level, objective.Movement) and bool(task.move_proofs.searches),
        lambda task: task.move_proofs.within(task.movement_level, task.pool.limits()).proven,
        "bounds within higher limits are also valid within lower limits",
    ),
)
"""Bounds of one level before its searches; the greatest one is used."""

SEARCHES: tuple[Search, ...] = (
    Search(
        "room of members",
        lambda task: task.lowers_loads,
        lambda task: load_searches.fill_members(task.pool, task.imbalance_level),
        Origin.PACKING,
        "capacities, pins and numbers bound the makespan without a search",
        has_windows=True,
    ),
    Search(
        "lower loads within few moves",
        lambda task: (
            task.lowers_loads and load_searches.may_limit_moves(task.pool, task.imbalance_level)
        ),
        lambda task: load_searches.limit_moves(task.pool, task.imbalance_level, task.budget),
        Origin.EXCHANGE,
        "beams of moves use each permitted move for lower loads",
    ),
    Search(
        "greedy moves",
        lambda task: (
            isinstance(task.level, objective.Movement)
            and load_searches.may_move_greedily(task.pool)
        ),
        lambda task: load_searches.move_greedily(task.pool, task.budget),
        Origin.EXCHANGE,
        "the other searches for few moves need a limit on the makespan",
    ),
    Search(
        "few moves of small groups",
        lambda task: task.lowers_moves and movement_search.has_few_choices(task.pool.problem),
        lambda task: task.move_proofs.search_few_choices(
            task.movement_level, task.bound, task.budget
        ),
        Origin.CP_SAT,
        "CP-SAT and prices of partitions mostly prove the fewest moves within seconds",
    ),
    Search(
        "repair of overloads",
        lambda task: (
            (
                any((task.lowers_loads, task.spreads_loads, task.lowers_moves))
                or isinstance(task.level, objective.HostImbalance)
            )
            and overload_searches.may_repair_overloads(task.pool, task.level)
        ),
        lambda task: overload_searches.repair_overloads(
            task.pool, task.level, task.bound, task.budget
        ),
        Origin.EXCHANGE,
        "the only fast search with hosts, speeds, racks, constraints and several windows",
        has_windows=True,
    ),
    Search(
        "balancing",
        lambda task: task.lowers_loads_freely and load_searches.may_balance(task.pool),
        lambda task: load_searches.balance_loads(task.pool, task.imbalance_level, task.budget),
        Origin.COUNTING,
        "a local search by pairs of members finds low loads of large groups",
    ),
    Search(
        "moves before loads",
        lambda task: (
            (task.lowers_loads_freely or isinstance(task.level, objective.HostImbalance))
            and task.move_proofs.may_come_first(task.index)
        ),
        # With hosts, the search uses the work left for all levels.
        lambda task: task.move_proofs.search_first(
            task.index,
            task.bound,
            task.whole if isinstance(task.level, objective.HostImbalance) else task.budget,
        ),
        Origin.CP_SAT,
        "moves that are the fewest within the tolerance of the bound and of the best load are the "
        "fewest for the minimum between them, which then needs no search",
    ),
    Search(
        "packing of identical members",
        lambda task: (
            task.lowers_loads_freely and load_searches.may_pack(task.pool, task.imbalance_level)
        ),
        lambda task: load_searches.pack_identical(task.pool, task.imbalance_level, task.budget),
        Origin.PACKING,
        "patterns of loads find and prove the minimum makespan of identical members",
    ),
    Search(
        "spreading of moved partitions",
        lambda task: task.spreads_loads,
        lambda task: load_searches.spread_loads(task.pool, task.imbalance_level, task.budget),
        Origin.COUNTING,
        "after the moves, only the new members of moved partitions can change",
    ),
    Search(
        "exchanges and column generation",
        lambda task: (
            task.lowers_moves and movement_search.may_exchange(task.pool, task.movement_level)
        ),
        lambda task: movement_search.MovementSearch(
            task.pool, task.movement_level, task.budget, task.progress
        ).run(task.bound),
        Origin.EXCHANGE,
        "large groups: exchanges find few moves, and knapsacks with prices bound them",
        needs_work=False,
    ),
    Search(
        "CP-SAT",
        lambda task: (
            task.budget_of_cpsat.has_work
            # CP-SAT proves nothing of a preference in several windows.
            and (task.pool.problem.profiles is None or not objective.is_preference(task.level))
        ),
        search_by_cpsat,
        Origin.CP_SAT,
        "CP-SAT supports all levels and constraints",
        has_windows=True,
    ),
    Search(
        "repair after CP-SAT",
        lambda task: (
            task.pool.problem.profiles is not None
            and task.lowers_moves
            and overload_searches.may_repair_overloads(task.pool, task.level)
        ),
        lambda task: overload_searches.repair_again(
            task.pool, task.movement_level, task.bound, task.budget
        ),
        Origin.EXCHANGE,
        "with many windows, CP-SAT rarely proves the fewest moves",
        has_windows=True,
    ),
)
"""Searches of one level; each starts from the best placement and bound so far."""
