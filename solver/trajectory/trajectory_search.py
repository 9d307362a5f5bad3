"""Search for counts with the fewest moves over all rebalances, and for a bound on them."""

from collections.abc import Sequence

from kassay.solver.certificate.trajectory.rebalance_sequence import Stream
from kassay.solver.certificate.trajectory.trajectory_certificate import TrajectoryObjective
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.counts_search import counts_by_prices, improved_counts
from kassay.solver.trajectory.linear_program import (
    Floats,
    LinearProgram,
    Window,
    build_program,
    total_moves,
)
from kassay.solver.trajectory.program_solvers import (
    Prices,
    approximate_duals,
    exact_duals,
    integer_counts,
    is_integral,
)
from kassay.solver.trajectory.rounding import RoundedProgram

# Numbers of variables up to which the whole program is solved by the simplex method, and by
# branch and bound.
_MAX_SIMPLEX = 12_000
_MAX_BRANCHING = 40_000
_PRECISION = 1e-5  # of approximate dual values, relative


class TrajectorySearch:
    """State of a search: incumbent, prices and bound.

    Parameters
    ----------
    counts
        First incumbent: counts per class and member of each rebalance.
    """

    def __init__(
        self,
        stream: Stream,
        objective: TrajectoryObjective,
        budget: SearchBudget,
        counts: Sequence[Ints],
    ) -> None:
        self.stream, self.objective, self.budget = stream, objective, budget
        self.counts = list(counts)
        self.value = objective.of(total_moves(stream, counts))
        self.prices = Prices.zero(stream, objective)
        self.certified = 0  # bound that the prices prove
        self.bound = 0

    def run(self) -> None:
        """Search until the moves are proven the fewest, or the time is over."""
        if self._is_over():
            return
        whole = Window(0, len(self.counts), self.stream.start)
        program = build_program(self.stream, whole, self.objective)
        size = len(program.cost)
        is_total = self.objective is TrajectoryObjective.TOTAL
        may_round = is_total and not self.stream.is_weighted
        if may_round and size <= _MAX_SIMPLEX:
            self._by_rounding(program)
        elif size <= _MAX_SIMPLEX:
            self._by_simplex(program)
        if not self.certified and not self._is_over():
            self._by_pdlp(program)
        if is_total and not self._is_over():
            found = counts_by_prices(self.stream, self.prices, self.budget.part(0.3))
            self._offer(found)
        if may_round and size > _MAX_SIMPLEX and not self._is_over():
            self._by_rounding(program)
        if is_total and not self._is_over():
            share = self.budget.part(0.7 if size <= _MAX_BRANCHING else 1.0)
            self._offer(improved_counts(self.stream, self.counts, self.bound, share))
        if not self._is_over() and size <= _MAX_BRANCHING:
            is_exact = self.stream.is_weighted
            found, bound = integer_counts(program, self.budget, is_exact=is_exact)
            self._offer(found)
            self.bound = max(self.bound, min(bound, self.value))

    def _by_rounding(self, program: LinearProgram) -> None:
        rounded = RoundedProgram(program, self.budget.seed)
        if not rounded.solve(self.budget.part(0.5)):
            return
        self._prove(program, rounded.duals())
        self._offer(rounded.round(self.budget))

    def _is_over(self) -> bool:
        return self.value <= self.bound or not self.budget.has_time

    def _offer(self, counts: Sequence[Ints] | None) -> None:
        if counts is None or not all(
            one.contains(self.stream.loads(at, table))
            for at, table in enumerate(counts)
            for one in self.stream.rebalances[at].ranges
        ):
            return
        value = self.objective.of(total_moves(self.stream, counts))
        if value < self.value:
            self.counts, self.value = list(counts), value

    def _by_simplex(self, program: LinearProgram) -> None:
        solved = exact_duals(program, self.budget.seconds)
        if solved is None:
            return
        values, duals = solved
        if is_integral(values[: program.counts]):
            self._offer(program.read(values))
        self._prove(program, duals)

    def _by_pdlp(self, program: LinearProgram) -> None:
        seconds, workers = self.budget.part(0.4).seconds, self.budget.limits.workers
        duals = approximate_duals(program, seconds, precision=_PRECISION, workers=workers)
        self._prove(program, duals)

    def _prove(self, program: LinearProgram, duals: Floats) -> None:
        """Keep the prices if they prove a higher bound."""
        prices = Prices.of(self.stream, program, duals)
        bound = prices.bound(self.stream)
        if bound > self.certified:
            self.prices, self.certified = prices, bound
            self.bound = max(self.bound, bound)
