"""Measure Kafka's partition assignors against a proven optimum.

The names in ``__all__`` are the documented interface. Each is imported on first use, because
OR-Tools and pandas take seconds to load.

Examples
--------
>>> import kassay
>>> group = kassay.Group(
...     topics=(kassay.Topic(name="t0", partitions=1), kassay.Topic(name="t1", partitions=2)),
...     members=(
...         kassay.Member(id="c0", subscription=("t1",)),
...         kassay.Member(id="c1", subscription=("t0", "t1")),
...         kassay.Member(id="c2", subscription=("t0",)),
...     ),
... )
>>> kassay.assign(group, "sticky").loads()
{'c0': 2, 'c1': 1, 'c2': 0}
>>> kassay.solve(group).assignment.loads()
{'c0': 1, 'c1': 1, 'c2': 1}
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kassay.experiments.compare import Comparison, compare
    from kassay.experiments.planning.plan import Plan, plan
    from kassay.reference.assignors import ASSIGNORS, assign
    from kassay.reference.documents.json_codec import load_assignment, load_group, load_groups
    from kassay.reference.model.assignment import Assignment, violations
    from kassay.reference.model.group import Group, Member, Topic
    from kassay.reference.model.metrics import Measure, imbalance, loads, movement
    from kassay.reference.model.ownership import Ownership, ownership
    from kassay.reference.model.topic_partitions import Partitions, TopicPartition
    from kassay.solver.certificate.certificate import Certificate
    from kassay.solver.certify import certify
    from kassay.solver.constraints import (
        Capacity,
        Colocated,
        Forbidden,
        MaxMoves,
        MaxPartitions,
        Pinned,
        Separated,
    )
    from kassay.solver.frontier import Frontier, frontier
    from kassay.solver.improvement.explanation import Explanation, explain
    from kassay.solver.limits import SearchLimits
    from kassay.solver.objective import (
        CrossRack,
        Imbalance,
        MembersUsed,
        Movement,
        Tolerance,
        TopicSpread,
    )
    from kassay.solver.sizing.member_loss import member_loss
    from kassay.solver.sizing.members_needed import members_needed
    from kassay.solver.solution import Solution, Status
    from kassay.solver.solve import Method, solve

_MODULES = {
    "kassay.experiments.compare": ("Comparison", "compare"),
    "kassay.experiments.planning.plan": ("Plan", "plan"),
    "kassay.reference.assignors": ("ASSIGNORS", "assign"),
    "kassay.reference.documents.json_codec": ("load_assignment", "load_group", "load_groups"),
    "kassay.reference.model.assignment": ("Assignment", "violations"),
    "kassay.reference.model.group": ("Group", "Member", "Topic"),
    "kassay.reference.model.metrics": ("Measure", "imbalance", "loads", "movement"),
    "kassay.reference.model.ownership": ("Ownership", "ownership"),
    "kassay.reference.model.topic_partitions": ("Partitions", "TopicPartition"),
    "kassay.solver.certificate.certificate": ("Certificate",),
    "kassay.solver.certify": ("certify",),
    "kassay.solver.constraints": (
        "Capacity",
        "Colocated",
        "Forbidden",
        "MaxMoves",
        "MaxPartitions",
        "Pinned",
        "Separated",
    ),
    "kassay.solver.frontier": ("Frontier", "frontier"),
    "kassay.solver.improvement.explanation": ("Explanation", "explain"),
    "kassay.solver.limits": ("SearchLimits",),
    "kassay.solver.objective": (
        "CrossRack",
        "Imbalance",
        "MembersUsed",
        "Movement",
        "Tolerance",
        "TopicSpread",
    ),
    "kassay.solver.sizing.member_loss": ("member_loss",),
    "kassay.solver.sizing.members_needed": ("members_needed",),
    "kassay.solver.solution": ("Solution", "Status"),
    "kassay.solver.solve": ("Method", "solve"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "Capacity",
    "Certificate",
    "Colocated",
    "Comparison",
    "CrossRack",
    "Explanation",
    "Forbidden",
    "Frontier",
    "Group",
    "Imbalance",
    "MaxMoves",
    "MaxPartitions",
    "Measure",
    "Member",
    "MembersUsed",
    "Method",
    "Movement",
    "Ownership",
    "Partitions",
    "Pinned",
    "Plan",
    "SearchLimits",
    "Separated",
    "Solution",
    "Status",
    "Tolerance",
    "Topic",
    "TopicPartition",
    "TopicSpread",
    "assign",
    "certify",
    "compare",
    "explain",
    "frontier",
    "imbalance",
    "load_assignment",
    "load_group",
    "load_groups",
    "loads",
    "member_loss",
    "members_needed",
    "movement",
    "ownership",
    "plan",
    "solve",
    "violations",
]


def __getattr__(name: str) -> Any:
    """Import a documented name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kassay' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the documented names, for completion."""
    return sorted({*globals(), *__all__})
