"""Verdict on a plan in one sentence, with the condition under which it holds."""

from collections.abc import Sequence
from dataclasses import dataclass

from kassay.experiments.comparison.optimum import keep_owners
from kassay.experiments.planning.preparation.planning_levels import makespan_of
from kassay.experiments.planning.preparation.planning_start import is_rebalancing
from kassay.reference.model.assumptions import condition, other_reading
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Protocol
from kassay.reference.model.load_units import LoadUnits
from kassay.reference.model.metrics import Measure, measures, member_units, movement
from kassay.reference.model.ownership import ownership
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Level, Tolerance
from kassay.solver.solution import LevelValue, Solution, Status
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of a plan: maximum loads, moves and status, and the condition of the result.

    Parameters
    ----------
    current
        Current maximum load.
    makespan
        Planned maximum load, and a lower bound on the maximum load.
    placed
        Partitions without an owner, which the plan assigns.
    tolerance
        Tolerance of the imbalance, if any.
    condition
        Condition under which the result holds; None for a group without assumed data.
    is_rebalancing
        Whether the owners change without the plan.
    empty
        Description of a group without members; None for all other groups.
    units
        Members as load units, which convert the maximum loads for the text.
    """

    current: int
    makespan: LevelValue
    moves: int
    placed: int
    status: Status
    tolerance: Tolerance | None
    condition: str | None
    is_rebalancing: bool
    empty: str | None
    units: LoadUnits

    @classmethod
    def of(
        cls, group: Group, solution: Solution, makespan: LevelValue, levels: Sequence[Level]
    ) -> "Verdict":
        """Return the verdict on a solution that has an assignment."""
        assignment = solution.assignment
        if assignment is None:
            raise LookupError("; ".join(solution.conflict) or "no assignment")
        moved = movement(group, assignment)
        owned = ownership(group)
        subscribers = group.subscribers()
        unowned = sum(
            int((owners < 0).sum())
            for topic, owners in owned.owners.items()
            if subscribers.get(topic)
        )
        return cls(
            current=measures(group, keep_owners(group))[Measure.MAKESPAN],
            makespan=makespan,
            moves=moved,
            placed=unowned,
            status=solution.status,
            tolerance=next((level.tolerance for level in levels if level.tolerance), None),
            condition=plan_condition(group, levels),
            is_rebalancing=is_rebalancing(group),
            empty=_without_members(group),
            units=member_units(group),
        )

    def __str__(self) -> str:
        """Return the sentence."""
        if not self.moves and not self.placed:
            joint = ":" if self.condition is None else ";"
            text = f"Nothing to do{joint} {self._unchanged}."
        else:
            text = f"{self._change}; {self.quality}."
        if self.condition is None:
            return text
        return f"If {self.condition}: {text[0].lower()}{text[1:]}"

    @property
    def short(self) -> str:
        """Return the condition, the moves and the maximum loads, for a row of a table."""
        before, after = self._shown_loads
        loads = f"{before:,} to {after:,}" if before != after else f"{after:,}"
        return f"if {self.condition}: {count_of(self.moves, 'move')}, maximum load {loads}"

    @property
    def quality(self) -> str:
        """Describe how far the planned maximum load is from the proven minimum."""
        bound = self.makespan.bound
        if self.makespan.gap == 0:
            return "the maximum load is the proven minimum"
        if not bound:
            return "the minimum is not known"
        return f"that is at most {self.makespan.gap / bound:.1%} above the minimum"

    @property
    def _shown_loads(self) -> tuple[int | float, int | float]:
        return self.units.shown(self.current), self.units.shown(self.makespan.value)

    @property
    def _change(self) -> str:
        before, after = self._shown_loads
        parts = []
        if self.moves:
            parts.append(count_of(self.moves, "move"))
        if self.placed:
            parts.append(f"{count_of(self.placed, 'partition')} without an owner")
        gain = f" ({(after - before) / before:+.0%})" if before and after != before else ""
        one = self.moves + self.placed == 1
        change = (
            f"{'lowers' if one else 'lower'} the maximum load from {before:,} to {after:,}{gain}"
            if after < before
            else f"{'keeps' if one else 'keep'} the maximum load at {after:,} and "
            f"{'evens' if one else 'even'} out the other loads"
            if after == before
            else f"{'gives' if one else 'give'} a maximum load of {after:,}"
        )
        return f"{' and '.join(parts)} {change}"

    @property
    def _unchanged(self) -> str:
        if self.empty is not None:
            return self.empty
        if self.status is not Status.OPTIMAL:
            return "no better assignment was found; optimality is not proven"
        if self.is_rebalancing:
            return (
                "no moves improve the assignment that the members have now, but the group is still "
                "rebalancing"
            )
        if self.tolerance is not None:
            share = f"{float(self.tolerance.relative):.0%}"
            return f"the current assignment is within {share} of the minimum imbalance, with proof"
        return "the current assignment is optimal, with proof"

    def record(self) -> dict[str, object]:
        """Return the verdict as a JSON object."""
        return {
            "condition": self.condition,
            "status": str(self.status),
            "makespan": {
                "current": self.current,
                "planned": self.makespan.value,
                "bound": self.makespan.bound,
            },
            "moves": self.moves,
            "placed": self.placed,
            "verdict": str(self),
        }


def plan_condition(group: Group, levels: Sequence[Level]) -> str | None:
    """Return the condition of a plan. Racks count only if a level uses them."""
    return condition(group, with_racks=any(isinstance(level, CrossRack) for level in levels))


def _without_members(group: Group) -> str | None:
    if group.members:
        return None
    if group.status.protocol is Protocol.SIMPLE:
        return "the group has no members, because its consumers call assign()"
    return "the group has no members"


def other_verdict(
    group: Group,
    levels: Sequence[Level],
    constraints: Sequence[Constraint],
    *,
    limits: SearchLimits,
    seed: int,
) -> Verdict | None:
    """Solve the group with the other limit of its assumed subscriptions.

    The result is None if both limits are equal, or if no assignment is found.
    """
    other = other_reading(group)
    if other is None:
        return None
    solution = solve(other, levels=levels, constraints=constraints, limits=limits, seed=seed)
    makespan = makespan_of(other, solution)
    return None if makespan is None else Verdict.of(other, solution, makespan, levels)


def count_of(number: int, noun: str) -> str:
    """Format a number with a noun in singular or plural, such as ``2 moves``."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"
