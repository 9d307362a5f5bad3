"""Lower bounds on the imbalance of load units: hosts, or members of different speed.

A *closed set* of units receives a known total load in every assignment: the partitions that only
its units can consume. Within a closed set, the bounds ignore subscriptions, and split the load
into equal parts of the weight unit. The optimum of this relaxation is computed exactly.
"""

from collections.abc import Callable, Iterator, Sequence

from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver.evaluation import rank_of_descending
from kassay.solver.problem import Problem

_MAX_COMPARISONS = 1_000_000
"""Number of comparisons of two sets, which take about 0.1 s."""


def unit_imbalance_bound(problem: Problem, measure: Measure, units: LoadUnits) -> int:
    """Return a lower bound on the imbalance of members or hosts, for one measure."""
    bound = 0
    if not units.names or not problem.total:
        return bound
    match measure:
        case Measure.MAKESPAN:
            bound = _makespan_bound(problem, units)
        case Measure.LEXIMAX:
            first = _makespan_bound(problem, units)
            loads = [first, *[0] * (len(units.names) - 1)]
            bound = rank_of_descending(loads, problem.total * max(units.factors))
        case Measure.SUM_OF_SQUARES:
            bound = sum(
                _least_squares(problem, load, [units.factors[unit] for unit in inside])
                for inside, load in _components(problem, units)
            )
        case Measure.SPREAD:
            bound = max(_makespan_bound(problem, units) - _greatest_minimum(problem, units), 0)
        case Measure.DEVIATION:
            # The distance of a load to its share is at least that of the nearest multiple of the
            # weight unit.
            step = sum(units.speeds) * problem.weight_unit
            shares = [own * problem.total for own in units.speeds]
            bound = sum(min(share % step, -share % step) for share in shares)
        case Measure.BALANCE_SCORE:
            pass
    return bound


def max_unit_load(measure: Measure, total: int, limit: int, units: LoadUnits, unit: int) -> int:
    """Return the maximum load of a load unit if the imbalance is within a limit."""
    factor = units.factors[unit]
    if measure is Measure.MAKESPAN:
        return min(limit // factor, total)
    if measure is not Measure.SUM_OF_SQUARES:
        return total
    others = sum(units.speeds) - units.speeds[unit]
    multiple = factor * units.speeds[unit]

    def is_within(load: int) -> bool:
        # By the inequality of Cauchy and Schwarz, the other units have at least this value.
        rest = -(-((total - load) ** 2 * multiple) // others) if others else 0
        is_below_share = load * sum(units.speeds) <= total * units.speeds[unit]
        return is_below_share or load * load * factor + rest <= limit

    return greatest_true(is_within, total)


def _makespan_bound(problem: Problem, units: LoadUnits) -> int:
    best = max(
        _least_makespan(problem, load, [units.factors[unit] for unit in inside])
        for inside, load in _closed_sets(problem, units)
    )
    for index, consumers in enumerate(problem.consumer_sets):
        weights = problem.weight[problem.consumer_set == index]
        if len(weights):
            smallest = min(units.factors[units.unit_of[member]] for member in consumers.tolist())
            best = max(best, int(weights.max()) * smallest)
    return best


def _least_makespan(problem: Problem, load: int, factors: Sequence[int]) -> int:
    """Return the minimum makespan of a total load that can be split into weight units."""
    step = problem.weight_unit

    def is_too_low(limit: int) -> bool:
        return sum(limit // (factor * step) for factor in factors) * step < load

    return greatest_true(is_too_low, load * min(factors)) + 1 if load else 0


def _greatest_minimum(problem: Problem, units: LoadUnits) -> int:
    """Return an upper bound on the minimum relative load of the load units."""
    step = problem.weight_unit

    def fits(limit: int) -> bool:
        return sum(-(-limit // (factor * step)) for factor in units.factors) * step <= problem.total

    return greatest_true(fits, problem.total * min(units.factors))


def greatest_true(holds: Callable[[int], bool], most: int) -> int:
    """Find the greatest integer for which a monotone condition is true, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _least_squares(problem: Problem, load: int, factors: Sequence[int]) -> int:
    """Return the minimum sum of load times relative load for a total load.

    The ``k``-th weight unit of a load unit with factor ``f`` costs ``(2 * k - 1) * f``; the
    cheapest weight units have the minimum sum.
    """
    parts = load // problem.weight_unit

    def count(cost: int, factor: int) -> int:
        return (cost // factor + 1) // 2

    def are_available(cost: int) -> bool:
        return sum(count(cost, factor) for factor in factors) <= parts

    low = greatest_true(are_available, (2 * parts + 1) * max(factors))
    counts = [count(low, factor) for factor in factors]
    squares = sum(number**2 * factor for number, factor in zip(counts, factors, strict=True))
    return int((squares + (parts - sum(counts)) * (low + 1)) * problem.weight_unit**2)


def compared_sets(count: int) -> int:
    """Return the number of sets that are compared with all of ``count`` sets in a short time."""
    return _MAX_COMPARISONS // max(count, 1)


def _closed_sets(problem: Problem, units: LoadUnits) -> Iterator[tuple[list[int], int]]:
    """Yield sets of load units, each with the load that only these units can receive."""
    sets = [frozenset(units.unit_of[at] for at in each.tolist()) for each in problem.consumer_sets]
    loads = [
        sum(problem.weight[problem.consumer_set == index].tolist()) for index in range(len(sets))
    ]
    compared = sets[: compared_sets(len(sets))]
    for units_of_set in dict.fromkeys((*compared, frozenset(range(len(units.names))))):
        inside = sum(load for other, load in zip(sets, loads, strict=True) if other <= units_of_set)
        yield sorted(units_of_set), inside


def _components(problem: Problem, units: LoadUnits) -> Iterator[tuple[list[int], int]]:
    """Yield sets of load units connected by shared topics, with their total loads."""
    first = list(range(len(units.names)))

    def root(unit: int) -> int:
        while first[unit] != unit:
            first[unit] = first[first[unit]]
            unit = first[unit]
        return unit

    for consumers in problem.consumer_sets:
        roots = {root(units.unit_of[member]) for member in consumers.tolist()}
        for unit in roots:
            first[unit] = min(roots)
    loads: dict[int, int] = {}
    for index, consumers in enumerate(problem.consumer_sets):
        at = root(units.unit_of[int(consumers[0])])
        weight = sum(problem.weight[problem.consumer_set == index].tolist())
        loads[at] = loads.get(at, 0) + weight
    for at, load in loads.items():
        yield [unit for unit in range(len(first)) if root(unit) == at], load
