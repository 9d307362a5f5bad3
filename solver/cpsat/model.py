"""Variables: how many rows of each class each member gets, and what its load then is."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.cpsat.symmetry import SymmetryClasses
from kassay.solver.problem import EXACT_IN_64_BITS, Placement, Problem

Expression = cp_model.LinearExpr | int


@dataclass
class AssignmentModel:
    """A CP-SAT model of where rows may go; levels and constraints are added to it.

    Weights are divided by their greatest common divisor, `unit`.

    Parameters
    ----------
    problem
        What has to be placed.
    classes
        Rows that the model does not tell apart.
    """

    problem: Problem
    classes: SymmetryClasses
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    count: list[dict[int, Expression]] = field(init=False)

    def __post_init__(self) -> None:
        """Create the counts: every row of a class goes to exactly one of its consumers."""
        problem = self.problem
        self.count = []
        for index, rows in enumerate(self.classes.rows):
            size = len(rows)
            consumers = problem.sets[problem.set_of_row[rows[0]]].tolist()
            if len(consumers) == 1:
                self.count.append({consumers[0]: size})
                continue
            entry = [self.cp.new_int_var(0, size, f"n{index}_{at}") for at in consumers]
            self.count.append(dict(zip(consumers, entry, strict=True)))
            if size == 1:
                self.cp.add_exactly_one(entry)
            else:
                self.cp.add(cp_model.LinearExpr.sum(entry) == size)

    @cached_property
    def unit(self) -> int:
        """Greatest common divisor of all weights; 1 if all are zero."""
        return math.gcd(*self.problem.weight.tolist()) or 1

    @cached_property
    def total(self) -> int:
        """Total load, in units."""
        return self.problem.total // self.unit

    @property
    def fits(self) -> bool:
        """Whether loads can be added up in 64 bits."""
        return self.total < EXACT_IN_64_BITS

    @cached_property
    def load(self) -> list[cp_model.IntVar]:
        """Load of every position, in units."""
        weights = [int(self.problem.weight[rows[0]]) // self.unit for rows in self.classes.rows]
        terms: list[list[tuple[Expression, int]]] = [[] for _ in range(self.problem.width)]
        for entry, weight in zip(self.count, weights, strict=True):
            for position, count in entry.items():
                if weight:
                    terms[position].append((count, weight))
        loads = []
        for position, parts in enumerate(terms):
            load = self.cp.new_int_var(0, self.total, f"load{position}")
            self.cp.add(load == weighted_sum(parts))
            loads.append(load)
        if loads:
            self.cp.add(cp_model.LinearExpr.sum(loads) == self.total)
        return loads

    @cached_property
    def zero(self) -> cp_model.IntVar:
        """Make an expression of what may be a plain integer, by adding it."""
        return self.cp.new_constant(0)

    @cached_property
    def partitions(self) -> list[Expression]:
        """Number of partitions of every position."""
        terms: list[list[tuple[Expression, int]]] = [[] for _ in range(self.problem.width)]
        for entry in self.count:
            for position, count in entry.items():
                terms[position].append((count, 1))
        return [weighted_sum(parts) for parts in terms]

    def owner_of(self, index: int) -> int:
        """Owner of the rows of a class that tells owners apart."""
        return int(self.problem.owner[self.classes.rows[index][0]])

    def moves(self, costs: NDArray[np.int64]) -> Expression:
        """Cost of all moves, with a cost for each row that its class shares."""
        terms: list[tuple[Expression, int]] = []
        for index, entry in enumerate(self.count):
            owner = self.owner_of(index)
            if owner != NO_OWNER:
                cost = int(costs[self.classes.rows[index][0]])
                away = [(count, cost) for position, count in entry.items() if position != owner]
                terms.extend(away if cost else [])
        return weighted_sum(terms)

    def hint(self, placement: Placement) -> None:
        """Start the search from a placement."""
        self.cp.clear_hints()
        counts = self.classes.counts(placement, self.problem.width)
        for index, entry in enumerate(self.count):
            for position, count in entry.items():
                if isinstance(count, cp_model.IntVar):
                    self.cp.add_hint(count, int(counts[index, position]))
        if "load" in self.__dict__:
            for load, value in zip(self.load, self.problem.loads(placement), strict=True):
                self.cp.add_hint(load, value // self.unit)

    def read(self, solver: cp_model.CpSolver) -> Placement:
        """Read the placement that a search found."""
        counts = np.zeros((len(self.count), self.problem.width), dtype=np.int64)
        for index, entry in enumerate(self.count):
            for position, count in entry.items():
                counts[index, position] = solver.value(count)
        return self.classes.spread_out(self.problem, counts)


def weighted_sum(parts: list[tuple[Expression, int]]) -> Expression:
    """Sum of expressions times coefficients."""
    constant = sum(part * weight for part, weight in parts if isinstance(part, int))
    variables = [(part, weight) for part, weight in parts if not isinstance(part, int)]
    if not variables:
        return constant
    expressions = [part for part, _ in variables]
    weights = [weight for _, weight in variables]
    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(expressions, weights)
    return total + constant if constant else total
