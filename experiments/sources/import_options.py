"""Options for importing groups, and the reader of subscription files."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kassay.experiments.sources.merge_captures import PartitionKey
from kassay.experiments.sources.tool_documents.document_rows import Counts
from kassay.reference.documents.json_values import as_object, as_texts
from kassay.reference.documents.text_files import read_json_object
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Member
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.group_remarks import AssumedSubscriptions

HostRule = Callable[[Member], str]
"""Function that returns the host of a member."""
MemberTopics = Mapping[str, tuple[str, ...]]

_NO_WEIGHTS = "none"
WEIGHT_NAMES: Mapping[str, WeightSource | None] = {
    _NO_WEIGHTS: None,
    **{str(each): each for each in (WeightSource.LAG, WeightSource.RATE, WeightSource.SIZE)},
}
"""Weight source by name, without the weights that come from a file."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import, mainly values for data that a source does not contain."""

    assumed_subscriptions: AssumedSubscriptions | None = None  # else the assigned topics
    # By group id, then by member id, client id or group.instance.id.
    subscriptions: Mapping[str, MemberTopics] | None = None
    partition_counts: Counts | None = None  # else the highest partition number plus 1
    minimum_counts: Counts | None = None  # lower bounds of partition counts
    topic_ids: Mapping[str, uuid.UUID] | None = None
    weights: WeightSource | None = None
    without_weights: bool = False  # partitions of documents with weights count 1
    missing_lag: int | None = None  # None makes partitions without a known lag an error
    sizes: Mapping[PartitionKey, int] | None = None  # in bytes
    weight_table: Mapping[str, Sequence[int]] | None = None  # by topic; overrides weights
    hosts: HostRule | None = None  # None keeps the hosts of the source
    speeds: Mapping[str, int] | None = None  # by member, instance or client id, or host
    measures_speeds: bool = False  # speeds from the consumption of a running cluster
    together: bool = False  # join all groups of the source

    @property
    def weight_source(self) -> WeightSource | None:
        """Return the source of the partition weights, or None for equal weights."""
        return self.weights if self.weight_table is None else WeightSource.FILE

    def with_subscriptions(self, source: Path | str | None) -> "ImportOptions":
        """Return a copy with the subscriptions of a file, or with an assumption by its name."""
        if source is None:
            return self
        if source in list(AssumedSubscriptions):
            return replace(self, assumed_subscriptions=AssumedSubscriptions(str(source)))
        return replace(self, subscriptions=load_subscriptions(Path(source)))

    def with_named_weights(self, name: str | None) -> "ImportOptions":
        """Return a copy with the weights of a name such as ``lag``; ``none`` removes weights.

        None keeps the weights of documents. Raise InputError for a name that is not in
        `WEIGHT_NAMES`.
        """
        if name is None:
            return self
        if name not in WEIGHT_NAMES:
            raise InputError(f"weights must be one of {', '.join(WEIGHT_NAMES)}, got {name!r}")
        return replace(self, weights=WEIGHT_NAMES[name], without_weights=name == _NO_WEIGHTS)


def load_subscriptions(path: Path) -> dict[str, MemberTopics]:
    """Read a JSON file with the subscriptions of members, by group.

    The form is ``{"group": {"member, client or instance id": ["topic", ...]}}``.
    """
    return {
        group: {
            member: as_texts(topics, f"{path}: {group}[{member!r}]")
            for member, topics in as_object(members, f"{path}: {group}").items()
        }
        for group, members in read_json_object(path).items()
    }
