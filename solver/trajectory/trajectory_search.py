"""Search for counts with the fewest moves over all rebalances, and for a bound on them."""

from collections.abc import Sequence

from kassay.solver.certificate.rebalance_sequence import Stream
from kassay.solver.certificate.trajectory_certificate import TrajectoryObjective
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.counts_search import improved_counts, is_permitted
from kassay.solver.trajectory.linear_program import (
    Floats,
    LinearProgram,
    Window,
    build_program,
    total_moves,
)
from kassay.solver.trajectory.program_solvers import (
    IntegerPrograms,
    Prices,
    approximate_solution,
    exact_duals,
    is_integral,
)
from kassay.solver.trajectory.rebalance_flows import counts_near
from kassay.solver.trajectory.rounding import RoundedProgram

# Numbers of variables up to which the whole program is solved by the simplex method first, and up
# to which it is solved by branch and bound.
_MAX_SIMPLEX = 12_000
_MAX_BRANCHING = 40_000
_PRECISION = 1e-5  # of an approximate solution, relative


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
        self.integer_programs = IntegerPrograms(is_exact=stream.is_weighted)
        self.certified = 0  # bound that the prices prove
        self.bound = 0

    def run(self) -> None:
        """Search until the value is proven the lowest, or the time is over."""
        if self._is_over():
            return
        whole = Window(0, len(self.counts), self.stream.start)
        program = build_program(self.stream, whole, self.objective)
        size = len(program.cost)
        is_total = self.objective is TrajectoryObjective.TOTAL
        has_flows = is_total and not self.stream.is_weighted
        values: Floats | None = None
        if has_flows and size <= _MAX_SIMPLEX:
            values = self._by_rounding(program)
        elif size <= _MAX_SIMPLEX:
            self._by_simplex(program)
        if not self.certified and not self._is_over():
            values = self._by_pdlp(program)
        if has_flows and values is not None and not self._is_over():
            near = program.fractions(values)
            self._offer(counts_near(self.stream, near, self.counts, self.budget.part(0.4)))
        if not self._is_over():
            part = self.budget.part(0.6 if size <= _MAX_BRANCHING else 1.0)
            counts = improved_counts(
                self.stream,
                self.counts,
                self.objective,
                bound=self.bound,
                budget=part,
                integer_programs=self.integer_programs,
            )
            self._offer(counts)
        if has_flows and _MAX_SIMPLEX < size <= _MAX_BRANCHING and not self._is_over():
            self._by_rounding(program)
        if not self._is_over() and size <= _MAX_BRANCHING:
            found, bound = self.integer_programs.counts(program, self.budget)
            self._offer(found)
            self.bound = max(self.bound, min(bound, self.value))

    def _by_rounding(self, program: LinearProgram) -> Floats | None:
        """Round an optimal solution of the program, and return the solution."""
        rounded = RoundedProgram(program, self.budget.seed)
        if not rounded.solve(self.budget.part(0.5)):
            return None
        values = rounded.counts()
        self._prove(program, rounded.duals())
        self._offer(rounded.round(self.budget.part(0.5)))
        return values

    def _is_over(self) -> bool:
        return self.value <= self.bound or not self.budget.has_work

    def _offer(self, counts: Sequence[Ints] | None) -> None:
        if counts is None or not is_permitted(self.stream, 0, counts):
            return
        value = self.objective.of(total_moves(self.stream, counts))
        if value < self.value:
            self.counts, self.value = list(counts), value

    def _by_simplex(self, program: LinearProgram) -> None:
        solved = exact_duals(program, self.budget)
        if solved is None:
            return
        values, duals = solved
        if is_integral(values[: program.counts]):
            self._offer(program.read(values))
        self._prove(program, duals)

    def _by_pdlp(self, program: LinearProgram) -> Floats:
        """Solve the program approximately, and return the solution."""
        values, duals = approximate_solution(program, self.budget.part(0.4), precision=_PRECISION)
        self._prove(program, duals)
        return values

    def _prove(self, program: LinearProgram, duals: Floats) -> None:
        """Keep the prices if they prove a higher bound."""
        prices = Prices.of(self.stream, program, duals)
        bound = prices.bound(self.stream)
        if bound > self.certified:
            self.prices, self.certified = prices, bound
            self.bound = max(self.bound, bound)
