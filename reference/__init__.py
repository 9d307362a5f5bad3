"""Groups, assignments and metrics, and ports of Kafka's assignors and coordinator."""

from kassay.reference.documents.json_codec import load_group
from kassay.reference.model.assignment import (
    Assignment,
    InvalidAssignmentError,
    Ownership,
    movement,
    ownership,
    violations,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.metrics import Measure, imbalance, loads
from kassay.reference.model.topic_partitions import Partitions, TopicPartition

__all__ = [
    "NO_GENERATION",
    "Assignment",
    "Group",
    "InputError",
    "InvalidAssignmentError",
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
