"""One group, one assignor, the optimum: how far the one is from the other.

Two gaps that never mix: a *heuristic gap* is greedy minus optimum, both exact; an
*optimality gap* is what the solver could not prove. Where the optimum is not proven, the
heuristic gap is not known, and is None here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from kassay.experiments.implementations.convergence import Ending, StableResult, run_until_stable
from kassay.reference.model import html_tables as notebook
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.derived_values import cached
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, measures, movement
from kassay.solver import objective
from kassay.solver.flow.moves_within_imbalance import fewest_moves
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimits(SearchLimits):
    """Limits of each search, and of everything about one group in a study.

    Parameters
    ----------
    within_partitions
        Groups with more partitions than this are not searched for the fewest moves at
        the imbalance of a greedy assignment that misses the least imbalance.
    group
        Wall-clock seconds that everything about one group may take in a study. Past
        them its process is ended, whatever it is at, and the group is a row that says so.
    memory
        Address space in MiB that the process which studies a group may have.
    """

    within_partitions: int = 5_000
    group: float = 900.0
    memory: int = 8192


LIMITS = CaseLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What one assignor did with one group, against the optimum. Fields are columns.

    Parameters
    ----------
    case
        Name of the group.
    assignor
        Name of the assignor.
    ending
        How the assignor ended, see `Ending`. Unless it is ``ok``, all figures of the
        greedy assignment are None.
    detail
        What went wrong, in words.
    rounds
        Rebalances until nothing was withheld; more than 1 only for
        ``cooperative-sticky``, which is judged by the assignment it settles on.
    measure
        The imbalance that the optimum minimises: ``sum_of_squares`` for equal weights,
        where its optimum is the optimum of every measure; else ``makespan``, and the
        optima of the other measures are None.
    proven
        Whether both levels of the optimum are proven.
    sum_of_squares_greedy, ..., balance_score_gap
        For each measure the greedy assignment's value, the least possible one, and
        their difference, the heuristic gap.
    least_imbalance
        Whether the greedy assignment has the least imbalance by ``measure``.
    movement_greedy
        Owned partitions that the greedy assignment gives to somebody else.
    movement_optimum
        Fewest moves to any assignment of the least imbalance.
    movement_gap
        Their difference, where the greedy assignment has the least imbalance: the two
        then reach the same, and these moves are too many. None where it has not.
    movement_within
        Fewest moves to any assignment *at most as imbalanced as the greedy one*.
    unnecessary_moves
        ``movement_greedy - movement_within``: moves that bought nothing, whether or not
        the greedy assignment has the least imbalance. Equals ``movement_gap`` where
        it has.
    """

    case: str
    assignor: str
    ending: str
    detail: str | None = None
    rounds: int
    measure: str | None = None
    proven: bool | None = None
    sum_of_squares_greedy: int | None = None
    sum_of_squares_optimum: int | None = None
    sum_of_squares_gap: int | None = None
    makespan_greedy: int | None = None
    makespan_optimum: int | None = None
    makespan_gap: int | None = None
    spread_greedy: int | None = None
    spread_optimum: int | None = None
    spread_gap: int | None = None
    deviation_greedy: int | None = None
    deviation_optimum: int | None = None
    deviation_gap: int | None = None
    balance_score_greedy: int | None = None
    balance_score_optimum: int | None = None
    balance_score_gap: int | None = None
    least_imbalance: bool | None = None
    movement_greedy: int | None = None
    movement_optimum: int | None = None
    movement_gap: int | None = None
    movement_within: int | None = None
    unnecessary_moves: int | None = None

    def _repr_html_(self) -> str:
        """Show it in a notebook: every measure of greedy and optimum, and the moves."""
        caption = f"{self.assignor} on {self.case}: {self.ending}"
        rows = [
            (name, *(getattr(self, f"{name}_{part}") for part in ("greedy", "optimum", "gap")))
            for name in (*Measure, "movement")
        ]
        shown = ((name, *("–" if v is None else v for v in values)) for name, *values in rows)
        return notebook.table(caption, ("measure", "greedy", "optimum", "gap"), shown)


def compare(
    group: Group,
    assignor: str,
    *,
    optimum: Solution | None = None,
    settled: StableResult | None = None,
    fewest: Callable[[int], int | None] | None = None,
    limits: CaseLimits = LIMITS,
) -> Comparison:
    """Compare an assignor with the optimum on one group.

    Parameters
    ----------
    group
        The rebalance. Capacities of members are ignored on both sides: no assignor of
        Kafka's knows them.
    assignor
        One of `kassay.reference.assignors.ASSIGNORS`.
    optimum
        The group's `solve_optimum`, where it is known already.
    settled
        What `run_until_stable` made of it, where that is known already.
    fewest
        `fewest_moves_within` of the group as a function of the imbalance, for callers
        who remember it from one assignor to the next.
    limits
        What each search may use up.

    Returns
    -------
    Comparison
        Its figures; ``ending`` says whether the assignor had an answer at all.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> result = compare(NAMED_GROUPS["C"].group, "sticky")
    >>> result.least_imbalance, result.movement_greedy, result.movement_optimum
    (True, 2, 1)
    """
    optimum = optimum or solve_optimum(group, limits=limits)
    settled = settled or run_until_stable(group, assignor)
    measure = Measure(optimum.imbalance.name)
    fewest = fewest or partial(fewest_moves_within, group, optimum=optimum, limits=limits)
    figures: dict[str, int | bool | None] = dict(_optima(group, optimum, measure))
    if optimum.movement.gap == 0 and optimum.imbalance.gap == 0:
        figures["movement_optimum"] = optimum.movement.value
    if settled.ending is Ending.OK and settled.assignment is not None:
        figures |= _greedy(group, settled.assignment, figures, measure)
        figures |= _moves(figures, measure, fewest)
    return Comparison(
        case=group.id or "",
        assignor=assignor,
        ending=str(settled.ending),
        detail=settled.detail,
        rounds=settled.rounds,
        measure=str(measure),
        proven=optimum.imbalance.gap == 0 and optimum.movement.gap == 0,
        **figures,  # type: ignore[arg-type]
    )


def solve_optimum(group: Group, *, limits: SearchLimits = LIMITS) -> Solution:
    """Find the least imbalance and the fewest moves to it, capacities left aside."""
    return solve(_without_capacities(group), limits=limits)


def keep_owners(group: Group) -> Assignment:
    """Keep every owner and place partitions without an owner on the least loaded members.

    Its imbalance is possible without any move.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> keep_owners(NAMED_GROUPS["B"].group).loads()
    {'c0': 0, 'c1': 1, 'c2': 2}
    """
    problem = build_problem(group)
    return problem.to_assignment(keep_owned(problem))


def fewest_moves_within(
    group: Group,
    imbalance: int,
    *,
    optimum: Solution,
    limits: CaseLimits = LIMITS,
) -> int | None:
    """Count the fewest moves to any assignment whose imbalance is at most ``imbalance``.

    Parameters
    ----------
    group
        The rebalance.
    imbalance
        The most imbalance allowed, by the measure that ``optimum`` minimises.
    optimum
        The group's `solve_optimum`, both levels proven.
    limits
        What the search may use up.

    Returns
    -------
    int or None
        The proven number; None where the limits were hit before the proof.
    """
    if imbalance <= optimum.imbalance.value or optimum.movement.value == 0:
        return optimum.movement.value
    measure = Measure(optimum.imbalance.name)
    if measures(group, cached(keep_owners, group))[measure] <= imbalance:
        return 0
    if group.partition_count > limits.within_partitions:
        return None
    if measure is Measure.SUM_OF_SQUARES:
        bounded = fewest_moves(group, imbalance)
        if bounded is not None and bounded.is_proven:
            return bounded.value
    # The optimum as a hint spares the search its first level, which is most of its time.
    slack = Tolerance(absolute=imbalance - optimum.imbalance.value)
    found = solve(
        _without_capacities(group),
        levels=(Imbalance(objective.Measure(measure), slack), Movement()),
        initial_assignment=optimum.assignment,
        limits=limits,
    )
    # The search allows what lies within the slack of the best it found, never less than asked.
    proven = found.movement.gap == 0 and found.imbalance.value <= imbalance
    return found.movement.value if proven else None


def _greedy(
    group: Group, assignment: Assignment, figures: dict[str, int | bool | None], measure: Measure
) -> dict[str, int | bool | None]:
    found: dict[str, int | bool | None] = {}
    for name, value in measures(group, assignment).items():
        least = figures.get(f"{name}_optimum")
        found[f"{name}_greedy"] = value
        found[f"{name}_gap"] = None if least is None else value - least
    gap = found[f"{measure}_gap"]
    found["least_imbalance"] = None if gap is None else gap == 0
    found["movement_greedy"] = movement(group, assignment)
    return found


def _moves(
    figures: dict[str, int | bool | None], measure: Measure, fewest: Callable[[int], int | None]
) -> dict[str, int | bool | None]:
    least, moved = figures.get("movement_optimum"), figures["movement_greedy"]
    level = figures[f"{measure}_greedy"]
    if least is None or moved is None or level is None:
        return {}
    within = fewest(level)
    return {
        "movement_gap": moved - least if figures["least_imbalance"] else None,
        "movement_within": within,
        "unnecessary_moves": None if within is None else moved - within,
    }


def _optima(group: Group, optimum: Solution, measure: Measure) -> dict[str, int | None]:
    """Return the least value of every measure, where the optimum proves it."""
    if optimum.assignment is None or optimum.imbalance.gap != 0:
        return {}
    measured = measures(group, optimum.assignment)
    proven = list(Measure) if measure is Measure.SUM_OF_SQUARES else [measure]
    return {f"{name}_optimum": measured[name] for name in proven}


def _without_capacities(group: Group) -> Group:
    if all(member.capacity is None for member in group.members):
        return group
    members = tuple(replace(member, capacity=None) for member in group.members)
    return replace(group, members=members)
