"""Kafka's side, and what both sides refer to: groups, assignments, measures, assignors."""

from reference.assignment import Assignment, InvalidAssignmentError, violations
from reference.codec import load_group
from reference.group import NO_GENERATION, Group, InvalidGroupError, Member, Topic
from reference.metrics import Measure, imbalance, loads, movement
from reference.ownership import Ownership, ownership
from reference.partitions import Partitions, TopicPartition

__all__ = [
    "NO_GENERATION",
    "Assignment",
    "Group",
    "InvalidAssignmentError",
    "InvalidGroupError",
    "Measure",
    "Member",
    "Ownership",
    "Partitions",
    "Topic",
    "TopicPartition",
    "imbalance",
    "load_group",
    "loads",
    "movement",
    "ownership",
    "violations",
]
