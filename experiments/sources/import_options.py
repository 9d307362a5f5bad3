"""Options of an import, and the files that they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.experiments.sources.topic_metadata import Counts
from kassay.reference.documents.document_fields import as_array, as_integer, as_object, as_text
from kassay.reference.documents.json_text import parse_json
from kassay.reference.model.errors import InputError

MemberTopics = Mapping[str, tuple[str, ...]]


class AssumedSubscriptions(StrEnum):
    """Assumption about subscriptions that a source does not show.

    ``assigned``: a member subscribes to the topics that it has partitions of. ``equal``:
    every member subscribes to all topics of the group.
    """

    ASSIGNED = "assigned"
    EQUAL = "equal"


class WeightSource(StrEnum):
    """Quantity that is used as the weight of a partition."""

    NONE = "none"
    LAG = "lag"
    RATE = "rate"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Values to use for everything that a source does not show.

    Parameters
    ----------
    assumed_subscriptions
        For groups that ``subscriptions`` does not list.
    subscriptions
        Topics by group id, then by member id, client id or group.instance.id.
    partition_counts
        By topic. The count of any other topic is its highest partition number plus 1.
    minimum_counts
        By topic: lower bounds of partition counts.
    weights
        Quantity to use as the weight of partitions.
    missing_lag
        Lag of partitions without a known lag; None makes them an error.
    sizes
        Bytes per partition.
    weight_table
        Weights of partitions by topic; overrides ``weights``.
    """

    assumed_subscriptions: AssumedSubscriptions = AssumedSubscriptions.ASSIGNED
    subscriptions: Mapping[str, MemberTopics] | None = None
    partition_counts: Counts | None = None
    minimum_counts: Counts | None = None
    weights: WeightSource = WeightSource.NONE
    missing_lag: int | None = None
    sizes: Mapping[PartitionKey, int] | None = None
    weight_table: Mapping[str, Sequence[int]] | None = None


def load_subscriptions(path: Path) -> dict[str, MemberTopics]:
    """Read ``{"group": {"member, client or instance id": ["topic", ...]}}``."""
    return {
        group: {
            member: tuple(
                as_text(topic, f"{path}: {group}[{member!r}][{index}]")
                for index, topic in enumerate(as_array(topics, f"{path}: {group}[{member!r}]"))
            )
            for member, topics in as_object(members, f"{path}: {group}").items()
        }
        for group, members in _load_object(path).items()
    }


def load_weights(path: Path) -> dict[str, tuple[int, ...]]:
    """Read ``{"topic": [weight of partition 0, ...]}``."""
    weights: dict[str, tuple[int, ...]] = {}
    for topic, numbers in _load_object(path).items():
        where = f"{path}: {topic}"
        weights[topic] = tuple(
            as_integer(number, f"{where}[{index}]")
            for index, number in enumerate(as_array(numbers, where))
        )
        if min(weights[topic], default=0) < 0:
            raise InputError(f"{where}: weights must be at least 0, got {min(weights[topic])}")
    return weights


def _load_object(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None
    return as_object(parse_json(text, where=str(path)), str(path))
