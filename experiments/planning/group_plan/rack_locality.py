"""Rack locality: numbers of partitions that members consume across racks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, has_racks, off_rack, replica_racks
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import EXACT, CrossRack, Imbalance, Tolerance
from kassay.solver.solution import LevelValue, Solution, value_and_bound
from kassay.solver.solve import solve

SECONDARY_WORK = 5.0
"""Time limit of the search for minimum cross-rack partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSummary:
    """Numbers for one rack: members, partitions with a replica, consumed partitions.

    ``current`` and ``planned`` count the partitions that the members of the rack consume.
    The rack of members without a rack has the name None.
    """

    name: str | None
    members: int
    partitions: int
    current: int
    planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLocality:
    """Numbers of partitions that members consume across racks: current, planned, minimum.

    ``minimum`` is the minimum at the imbalance of the plan or less with any movement. It is None
    if the search did not reach this imbalance in time, or if the measure is leximax and the
    imbalance of the plan is not proven to be minimal.
    """

    racks: tuple[RackSummary, ...]
    current: int
    planned: int
    minimum: LevelValue | None

    def record(self) -> dict[str, object]:
        """Return the numbers as a JSON object."""
        return {
            "cross_rack_partitions": {
                "current": self.current,
                "planned": self.planned,
                "minimum": value_and_bound(self.minimum),
            },
            "racks": [
                {
                    "rack": rack.name,
                    "members": rack.members,
                    "partitions": rack.partitions,
                    "consumed": {"current": rack.current, "planned": rack.planned},
                }
                for rack in self.racks
            ],
        }


def cross_rack_partitions(group: Group, assignment: Assignment) -> int | None:
    """Count the partitions whose member is in a rack that has no replica of the partition.

    Partitions without a known rack and members without a rack do not count. Returns None
    for a group without racks.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2, racks=(("a",), ("b",))),),
    ...     members=(Member(id="c", subscription=("t",), rack="a"),),
    ... )
    >>> cross_rack_partitions(group, Assignment({"c": [("t", 0), ("t", 1)]}))
    1
    """
    return off_rack(group, assignment) if has_racks(group) else None


def compare_racks(
    group: Group, current: Assignment, planned: Assignment, minimum: LevelValue | None = None
) -> RackLocality | None:
    """Compare the rack locality of the current and the planned assignment.

    ``minimum`` is the `minimum_cross_rack`. Return None for a group without racks.
    """
    crossing = cross_rack_partitions(group, current)
    if crossing is None:
        return None
    return RackLocality(
        racks=_racks(group, current, planned),
        current=crossing,
        planned=cross_rack_partitions(group, planned) or 0,
        minimum=minimum,
    )


def _racks(group: Group, current: Assignment, planned: Assignment) -> tuple[RackSummary, ...]:
    members = Counter(member.rack for member in group.members)
    partitions: Counter[str | None] = Counter(
        rack for racks in replica_racks(group).values() for rack in racks
    )
    before, after = _consumed_by_rack(group, current), _consumed_by_rack(group, planned)
    return tuple(
        RackSummary(
            name=name,
            members=members[name],
            partitions=partitions[name],
            current=before[name],
            planned=after[name],
        )
        for name in sorted({*members, *partitions}, key=lambda name: (name is None, name or ""))
    )


def _consumed_by_rack(group: Group, assignment: Assignment) -> Counter[str | None]:
    return Counter(one.rack for one in group.members for _ in assignment.get(one.id, ()))


def minimum_cross_rack(
    group: Group,
    planned: Solution,
    *,
    optimum: LevelValue,
    constraints: Sequence[Constraint],
    limits: SearchLimits,
    seed: int,
) -> LevelValue | None:
    """Find the fewest reads across racks at the imbalance of a plan or less, with any movement.

    ``optimum`` is the minimum imbalance under the constraints. Return None as described in
    `RackLocality`, and for a group without racks.
    """
    allowed = planned.imbalance
    if not has_racks(group):
        return None
    measure = Measure(allowed.name)
    is_minimum = optimum.gap == 0 and optimum.value == allowed.value
    if measure is Measure.LEXIMAX and not is_minimum:
        return None  # leximax takes no upper limit
    tolerance = EXACT if is_minimum else Tolerance(up_to=allowed.value)
    solution = solve(
        group,
        levels=(Imbalance(measure, tolerance), CrossRack()),
        constraints=constraints,
        initial_assignment=planned.assignment,
        limits=replace(limits, work=min(limits.work, SECONDARY_WORK)),
        seed=seed,
    )
    # The second level is valid only at the imbalance of the plan.
    if solution.assignment is None or solution.imbalance.value > allowed.value:
        return None
    return solution.level(CrossRack.name)
