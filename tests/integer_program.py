"""Optima of groups of all sizes, by an integer program and by a flow of NetworkX.

Independent of `solver`: the model, the metrics and the searches (HiGHS, NetworkX) are others.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from kassay.reference.model.group import Group
from tests import brute_force


@dataclass(frozen=True, slots=True, kw_only=True)
class _Class:
    """Partitions that are equal for the optimum: topic, owner, racks and weight."""

    topic: str
    owner: str | None
    racks: frozenset[str]
    weight: int


@dataclass
class IntegerProgram:
    """Integer program of a group: numbers of partitions per class and member.

    The sum of squares is the sum of 2 j - 1 over the units j of the load of each member.
    """

    group: Group

    @cached_property
    def _classes(self) -> Counter[_Class]:
        weight, owner = brute_force.weights(self.group), brute_force.owners(self.group)
        racks = {
            (topic.name, number): frozenset(rack for rack in row if rack is not None)
            for topic in self.group.topics
            for number, row in enumerate(topic.racks or ())
        }
        return Counter(
            _Class(
                topic=tp[0],
                owner=owner.get(tp),
                racks=racks.get(tp, frozenset()),
                weight=weight[tp],
            )
            for tp in brute_force.partitions_to_place(self.group)
        )

    @cached_property
    def _arcs(self) -> list[tuple[_Class, str, bool]]:
        """Class, member and whether the member reads these partitions from another rack."""
        return [
            (
                kind,
                member.id,
                bool(kind.racks) and member.rack is not None and member.rack not in kind.racks,
            )
            for kind in self._classes
            for member in self.group.members
            if kind.topic in member.subscription
        ]

    @cached_property
    def _highest(self) -> int:
        """Maximum load that any optimum needs: that of a greedy assignment."""
        loads = dict.fromkeys(brute_force.participants(self.group), 0)
        consumers: dict[str, list[str]] = {}
        for kind, member, _ in self._arcs:
            consumers.setdefault(kind.topic, []).append(member)
        for kind, count in self._classes.items():
            for _ in range(count):
                loads[min(consumers[kind.topic], key=loads.__getitem__)] += kind.weight
        return max(loads.values(), default=0)

    def least(
        self,
        level: str,
        *,
        squares: int | None = None,
        makespan: int | None = None,
        off_rack: int | None = None,
        moves: int | None = None,
    ) -> int:
        """Minimise one of the values within limits on the others."""
        arcs, members = self._arcs, brute_force.participants(self.group)
        if not arcs:
            return 0
        units = 0
        if squares is not None or level == "squares":
            units = max(self._highest, math.isqrt(squares or 0))
        first_unit, peak = len(arcs), len(arcs) + units * len(members)
        of_class: dict[_Class, dict[int, float]] = {kind: {} for kind in self._classes}
        of_member: dict[str, dict[int, float]] = {member: {} for member in members}
        for index, (kind, member, _) in enumerate(arcs):
            of_class[kind][index] = 1.0
            of_member[member][index] = float(kind.weight)
        rows = [(of_class[kind], count, count) for kind, count in self._classes.items()]
        square_row: dict[int, float] = {}
        for place, load in enumerate(of_member.values()):
            rows.append(({**load, peak: -1.0}, -np.inf, 0))
            if units:
                own = {first_unit + place * units + j: -1.0 for j in range(units)}
                rows.append(({**load, **own}, 0, 0))
                square_row |= {index: 2.0 * j + 1 for j, index in enumerate(own)}
        moved = {
            index: 1.0
            for index, (kind, member, _) in enumerate(arcs)
            if kind.owner is not None and kind.owner != member
        }
        reads = {index: 1.0 for index, arc in enumerate(arcs) if arc[2]}
        for row, limit in ((square_row, squares), (reads, off_rack), (moved, moves)):
            if limit is not None:
                rows.append((row, -np.inf, limit))
        goals = {"squares": square_row, "makespan": {peak: 1.0}, "moves": moved, "off_rack": reads}
        goal = goals[level]
        upper = np.r_[
            [float(self._classes[kind]) for kind, _, _ in arcs],
            np.ones(units * len(members)),
            [np.inf if makespan is None else makespan],
        ]
        # Units are continuous: with integer loads, the least sum of squares fills them in order.
        integer = np.r_[np.ones(len(arcs)), np.zeros(units * len(members) + 1)]
        return round(_solved(goal, rows, upper, integer))

    def flow_optimum(self) -> tuple[int, int]:
        """Return the minimum sum of squares, and then the minimum moves, by a flow of NetworkX."""
        scale = sum(self._classes.values()) + 1
        graph = nx.DiGraph()
        for kind, count in self._classes.items():
            graph.add_node(kind, demand=-count)
        for kind, member, _ in self._arcs:
            moved = kind.owner is not None and kind.owner != member
            graph.add_edge(kind, member, weight=int(moved))
        members = brute_force.participants(self.group)
        for member in members:
            for unit in range(sum(self._classes.values())):
                step = (member, unit)
                graph.add_edge(member, step, capacity=1, weight=(2 * unit + 1) * scale)
                graph.add_edge(step, "end")
        graph.add_node("end", demand=sum(self._classes.values()))
        cost, _ = nx.network_simplex(graph)
        return divmod(cost, scale)


def _solved(
    goal: dict[int, float],
    rows: list[tuple[dict[int, float], float, float]],
    upper: np.typing.NDArray[np.float64],
    integer: np.typing.NDArray[np.float64],
) -> float:
    cost = np.zeros(len(upper))
    cost[list(goal)] = list(goal.values())
    entries = [
        (value, row, column)
        for row, (own, _, _) in enumerate(rows)
        for column, value in own.items()
    ]
    values, places, columns = zip(*entries, strict=True)
    matrix = csr_array((values, (places, columns)), shape=(len(rows), len(upper)))
    limits = LinearConstraint(matrix, [row[1] for row in rows], [row[2] for row in rows])
    found = milp(cost, constraints=limits, bounds=Bounds(0, upper), integrality=integer)
    if found.status != 0:
        raise AssertionError(f"HiGHS: {found.message}")
    return float(found.fun)
