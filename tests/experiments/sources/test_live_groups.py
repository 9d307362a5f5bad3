"""Groups are imported from a cluster, which these tests replace by tables."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import (
    EmptyGroups,
    ImportedGroup,
    load_subscriptions,
)
from kassay.experiments.sources.live_cluster.cluster_responses import (
    LiveGroup,
    LiveTopic,
    with_subscription,
)
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.experiments.sources.merge_captures import ObservedMember, PartitionKey
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Assumed, Group, WeightSource
from kassay.reference.model.group_remarks import AssumedSubscriptions
from tests.stored_cases import stored_cases

ID = uuid.UUID(int=7)
RACKED = LiveTopic(2, ID, (("a", "b"), ("b", None)))
RATE = ImportOptions(weights=WeightSource.RATE)


def member(
    id: str, *assigned: PartitionKey, target: Iterable[PartitionKey] | None = None
) -> ObservedMember:
    instance = f"{id}.seat" if id.startswith("s") else None
    return ObservedMember(
        id,
        f"client-{id}",
        instance_id=instance,
        owned=set(assigned),
        target=None if target is None or set(target) == set(assigned) else set(target),
    )


def sent(*topics: str, rack: str | None = None) -> bytes:
    def text(value: str | None) -> bytes:
        data = b"" if value is None else value.encode()
        return (-1 if value is None else len(data)).to_bytes(2, "big", signed=True) + data

    names = b"".join(map(text, topics))
    middle = b"\xff\xff\xff\xff" + b"\0\0\0\0" + b"\0\0\0\x09"
    return b"\0\3" + len(topics).to_bytes(4, "big") + names + middle + text(rack)


@dataclass
class Tables:
    """Cluster with fixed answers; ``growth`` has one answer per request of end offsets."""

    groups: dict[str, list[LiveGroup | InputError]]
    metadata: dict[str, LiveTopic | InputError] = field(
        default_factory=lambda: {"t": RACKED, "u": LiveTopic(1)}
    )
    sent: dict[str, bytes] = field(default_factory=dict)
    offsets: dict[str, dict[PartitionKey, int] | InputError] = field(default_factory=dict)
    growth: list[dict[PartitionKey, int]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)

    def group_ids(self) -> list[str]:
        return list(self.groups)

    def other_groups(self) -> Mapping[str, str]:
        return self.others

    def describe(self, groups: Sequence[str]) -> dict[str, LiveGroup | InputError]:
        answers = {name: self.groups.get(name, [LiveGroup(name, "Dead")]) for name in groups}
        return {name: each.pop(0) if len(each) > 1 else each[0] for name, each in answers.items()}

    def subscriptions(self, groups: Sequence[str]) -> dict[str, bytes]:
        return self.sent

    def committed_offsets(
        self, groups: Sequence[str]
    ) -> dict[str, dict[PartitionKey, int] | InputError]:
        return {name: self.offsets.get(name, {}) for name in groups}

    def topic_names(self) -> list[str]:
        return sorted(self.metadata)

    def topics(self, names: Sequence[str]) -> dict[str, LiveTopic | InputError]:
        return {name: self.metadata[name] for name in names if name in self.metadata}

    def cluster_id(self) -> str:
        return "cluster"

    def end_offsets(
        self, partitions: Sequence[PartitionKey], *, timeout: float | None = None
    ) -> dict[PartitionKey, int]:
        self.requests.append("end_offsets")
        found = self.growth.pop(0)
        return {tp: found[tp] for tp in partitions if tp in found}


def cluster(*members: ObservedMember, state: str = "Stable", **tables: object) -> Tables:
    return Tables({"g": [LiveGroup("g", state, members)]}, **tables)  # type: ignore[arg-type]


def read(
    tables: Tables,
    *groups: str,
    options: ImportOptions | None = None,
    empty: EmptyGroups = EmptyGroups.KEEP,
) -> list[ImportedGroup]:
    ticks = iter(range(0, 1000, 10))
    return list(
        import_live(
            tables,
            groups,
            options or ImportOptions(),
            empty=empty,
            sleep=lambda _: None,
            clock=lambda: float(next(ticks)),
        )
    )


def only(tables: Tables, options: ImportOptions | None = None) -> Group:
    [imported] = read(tables, options=options)
    assert imported.error is None
    assert imported.group is not None
    return imported.group


def error(tables: Tables, options: ImportOptions | None = None) -> str:
    [imported] = read(tables, options=options)
    assert imported.error is not None
    return imported.error


def test_a_classic_group_is_imported_completely() -> None:
    tables = cluster(
        member("s1", ("t", 1)),
        member("x2", ("t", 0), ("u", 0)),
        sent={"s1": sent("t", rack="a"), "x2": sent("u", "t")},
    )
    assert group_document(only(tables)) == stored_cases("imported_classic_group")


def test_the_lag_of_a_group_counts_committed_partitions_with_an_end() -> None:
    def tables() -> Tables:
        offsets = {"g": {("t", 0): 7, ("t", 1): 3, ("u", 0): 2}}
        return cluster(member("x", ("t", 0), ("t", 1), ("u", 0)), offsets=offsets)

    known = tables()
    known.growth.append({("t", 0): 9, ("t", 1): 13})
    assert only(known, ImportOptions(reads_lag=True)).status.lag == 12
    unread = tables()
    assert only(unread).status.lag is None
    assert "end_offsets" not in unread.requests


def test_a_broker_that_does_not_answer_leaves_the_lag_unknown() -> None:
    class Silent(Tables):
        def end_offsets(self, *_: object, **__: object) -> dict[PartitionKey, int]:
            raise InputError("read end offsets: no answer")

    tables = Silent(
        {"g": [LiveGroup("g", "Stable", (member("x", ("t", 0)),))]}, offsets={"g": {("t", 0): 7}}
    )
    assert only(tables, ImportOptions(reads_lag=True)).status.lag is None


def test_notes_list_values_that_the_consumer_protocol_does_not_show() -> None:
    group = only(cluster(member("x", ("t", 0), target=[("t", 0)]), member("y", target=[])))
    assert [m.subscription for m in group.members] == [("t",), ("t",)]
    assert group.notes == (
        "subscriptions are not shown, all topics are assumed for every member",
        "generation is not shown, 1 is used",
    )
    assert [m.assumed for m in group.members] == [(Assumed.RACK,), (Assumed.TOPICS, Assumed.RACK)]


def test_options_set_the_subscriptions_of_consumer_protocol_members(tmp_path: Path) -> None:
    tables = cluster(member("x", ("t", 0)), member("y"))
    equal = only(tables, ImportOptions(assumed_subscriptions=AssumedSubscriptions.EQUAL))
    assert [m.subscription for m in equal.members] == [("t",), ("t",)]
    path = tmp_path / "subscriptions.json"
    path.write_text(json.dumps({"g": {"client-x": ["t", "u"], "y": ["u"]}}))
    stated = only(tables, ImportOptions(subscriptions=load_subscriptions(path)))
    assert [m.subscription for m in stated.members] == [("t", "u"), ("u",)]


def test_a_group_that_changes_meanwhile_is_read_again() -> None:
    early, late = LiveGroup("g", "Stable"), LiveGroup("g", "Stable", (member("x", ("t", 0)),))
    group = only(Tables({"g": [early, late, late, late]}))
    assert [m.id for m in group.members] == ["x"]
    assert not any("changed" in note for note in group.notes)


def test_deleted_topics_are_skipped_with_a_note() -> None:
    group = only(
        cluster(member("x", ("t", 0)), sent={"x": sent("t", "no")}, offsets={"g": {("old", 4): 1}})
    )
    assert [topic.name for topic in group.topics] == ["t"]
    assert group.members[0].subscription == ("t", "no")
    assert "topics that do not exist in the cluster are skipped: no, old" in group.notes


def test_lag_is_end_offset_minus_committed_offset() -> None:
    tables = cluster(
        member("x", ("t", 0), ("t", 1)),
        offsets={"g": {("t", 0): 3, ("t", 1): 9}},
        growth=[{("t", 0): 10, ("t", 1): 9}],
    )
    assert only(tables, ImportOptions(weights=WeightSource.LAG)).topics[0].weights == (7, 0)
    assert tables.requests == ["end_offsets"]


@pytest.mark.parametrize(
    ("offsets", "ends"),
    [({("t", 0): 3}, {("t", 0): 4, ("t", 1): 4}), ({("t", 0): 3, ("t", 1): 3}, {("t", 0): 4})],
)
def test_partitions_without_commit_or_leader_have_no_lag(
    offsets: dict[PartitionKey, int], ends: dict[PartitionKey, int]
) -> None:
    def tables() -> Tables:
        return cluster(member("x", ("t", 0)), offsets={"g": offsets}, growth=[ends])

    lag = ImportOptions(weights=WeightSource.LAG)
    assert error(tables(), lag).startswith("group 'g': no lag is shown for t-1; give --missing-lag")
    assert only(tables(), replace(lag, missing_lag=5)).topics[0].weights == (1, 5)


def test_a_rate_is_the_growth_between_two_samples() -> None:
    growth = [{("t", 0): 3, ("t", 1): 5}, {("t", 0): 3, ("t", 1): 2**40}]
    group = only(cluster(member("x", ("t", 0)), growth=growth), RATE)
    assert group.topics[0].weights == (0, 2**40 - 5)
    assert "weights are messages appended within 10.0 s" in group.notes


def test_a_measured_speed_is_the_consumption_relative_to_the_fastest_member() -> None:
    tables = cluster(member("x", ("t", 0)), member("y", ("t", 1)), member("z"))
    answers = [{("t", 0): 10, ("t", 1): 100}, {("t", 0): 50, ("t", 1): 180}]
    tables.committed_offsets = lambda _: {"g": answers.pop(0)}  # type: ignore[method-assign]
    group = only(tables, ImportOptions(measures_speeds=True))
    # A member without partitions has the mean speed of the others.
    assert [(one.id, one.speed) for one in group.members] == [("x", 50), ("y", 100), ("z", 75)]
    assert "a member without lag can be faster" in group.notes[-1]


@pytest.mark.parametrize(
    "deny",
    [
        lambda tables, error: tables.groups.update(bad=[error]),
        lambda tables, error: tables.offsets.update(bad=error),
    ],
)
def test_an_error_of_one_group_does_not_affect_others(
    deny: Callable[[Tables, InputError], None],
) -> None:
    tables = Tables({name: [LiveGroup(name, "Stable")] for name in ("g", "bad")})
    deny(tables, InputError("group 'bad': not authorized"))
    denied, other = read(tables)
    assert (denied.id, denied.error) == ("bad", "group 'bad': not authorized")
    assert (other.id, other.error) == ("g", None)


def test_denied_access_to_a_topic_is_an_error_of_its_groups() -> None:
    groups = {name: [LiveGroup(name, "Stable", (member(name),))] for name in ("a", "b")}
    tables = Tables(groups, sent={"a": sent("t", "x"), "b": sent("t")})
    tables.metadata["x"] = InputError("topic 'x': not authorized")
    hidden, other = read(tables)
    assert hidden.error == "group 'a': topic 'x': not authorized"
    assert other.group is not None


def test_requested_groups_are_read_once_and_in_order() -> None:
    tables = Tables({name: [LiveGroup(name, "Empty")] for name in "abc"})
    found = read(tables, "c", "nope", "a", "c")
    assert [(each.id, each.error) for each in found] == [
        ("a", None),
        ("c", None),
        ("nope", "group 'nope': the cluster has no such consumer group"),
    ]


def test_groups_of_other_types_are_skipped_and_errors_if_they_are_named() -> None:
    tables = Tables(
        {"g": [LiveGroup("g", "Stable", (member("x", ("u", 0)),))]},
        others={"workers": "connect", "new": "other"},
    )
    imported = {one.id: one for one in read(tables)}
    assert list(imported) == ["g", "new", "workers"]
    assert {id: one.skipped for id, one in imported.items() if id != "g"} == {
        "new": "group 'new' is not a group of consumers (protocol type 'other')",
        "workers": "group 'workers' is a cluster of Kafka Connect workers, which share connectors "
        "and tasks (protocol type 'connect'); read it with kassay import --connect-url",
    }
    tables.groups["workers"] = [InputError("the group is not a consumer group")]
    [named] = read(tables, "workers")
    assert named.error == imported["workers"].skipped


# Sent by a consumer of Kafka 4.
WITH_RACK = bytes.fromhex("0003000000020001610001 62ffffffff00000000ffffffff0004 6c656674")
# Ends of its user data, owned partitions and generation.
FIELD_ENDS = (16, 20, 24)


def test_topics_keep_the_order_sent_and_the_rack_is_decoded() -> None:
    expected = ObservedMember("m", subscription=("a", "b"), rack="left", protocol_version=3)
    assert with_subscription(ObservedMember("m"), WITH_RACK, where="m") == expected


@pytest.mark.parametrize("length", sorted(set(range(len(WITH_RACK))) - set(FIELD_ENDS)))
def test_a_cut_subscription_is_an_error(length: int) -> None:
    with pytest.raises(InputError, match=r"^member 'm': kassay cannot decode the subscription: "):
        with_subscription(ObservedMember("m"), WITH_RACK[:length], where="member 'm'")
