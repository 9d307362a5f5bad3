"""Groups of real consumers of eight client libraries are read as the cluster reports them."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import itemgetter

import pytest

from kassay.experiments.history.generations import reconstruct_generations
from kassay.experiments.history.group_records import from_row, read_dump
from kassay.experiments.history.recorded_rebalances import RecordedRebalance, find_rebalances
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import import_groups, load_metadata
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import AssumedSubscriptions
from kassay.reference.protocol.message_decoder import OFFSET_COMMIT_KINDS
from tests.experiments.history.sample_records import compare_rebalance
from tests.experiments.sources.recorded_clients import (
    DATA,
    EXPECTED,
    TOPICS,
    VERSIONS,
    RecordedCluster,
    expected_owners,
)

CONSUMER_PROTOCOL = ("uniform", "server-range")
OLDER, NEWER = (f"kafka-{VERSIONS[name]}" for name in ("older tools", "tools"))


@cache
def live_groups() -> dict[str | None, Group]:
    """Import the recorded cluster."""
    imported = import_live(RecordedCluster(), [], ImportOptions(), sleep=lambda _: None)
    return {each.id: each.group for each in imported if each.group is not None}


@cache
def captured_groups(release: str) -> dict[str | None, Group]:
    options = ImportOptions(
        assumed_subscriptions=AssumedSubscriptions.EQUAL, content=load_metadata(DATA / "topics.txt")
    )
    imported = import_groups([DATA / release], options)
    return {each.id: each.group for each in imported if each.group is not None}


def owners(group: Group) -> dict[str, list[tuple[str, int]]]:
    return {member.id: sorted(tuple(tp) for tp in member.owned) for member in group.members}


each_group = pytest.mark.parametrize("name", EXPECTED)
each_release = pytest.mark.parametrize("release", [NEWER, OLDER])


@each_group
def test_live_groups_have_the_assignment_that_the_cluster_reports(name: str) -> None:
    group = live_groups()[name]
    assert owners(group) == expected_owners(name)
    assert group.status.state == "Stable"
    assert group.status.registered_assignor == EXPECTED[name]["assignor"]
    assert all(member.rack in (None, "left") for member in group.members)
    assert (name == "java-range") is any(member.rack for member in group.members)


@each_group
def test_the_client_library_of_live_groups_is_recognised(name: str) -> None:
    library, assignor = EXPECTED[name]["library"], EXPECTED[name]["assignor"]
    group = live_groups()[name]
    assert {member.client.library for member in group.members} == {library}
    by_broker = assignor in CONSUMER_PROTOCOL
    assert identify_assignor(group).is_ported is (by_broker or library == "java")
    is_range = assignor == "server-range"
    kafka_name = "range (kassay's name: server-range)" if is_range else assignor
    assert str(identify_assignor(group)).startswith(
        f"The broker assigns the partitions, with {kafka_name}."
        if by_broker
        else f"The group runs {assignor} of {'the Java client' if library == 'java' else library}."
    )


@each_group
def test_subscriptions_of_classic_live_groups_are_those_sent(name: str) -> None:
    group = live_groups()[name]
    if EXPECTED[name]["assignor"] in CONSUMER_PROTOCOL:
        assert any("subscriptions are not shown" in note for note in group.notes)
        return
    sent = sorted(sorted(member.subscription) for member in group.members)
    assert sent == sorted(EXPECTED[name]["subscriptions"])


@each_release
@each_group
def test_captured_groups_have_the_assignment_that_the_cluster_reports(
    name: str, release: str
) -> None:
    assert owners(captured_groups(release)[name]) == expected_owners(name)


@cache
def rebalances(release: str) -> dict[str, list[RecordedRebalance]]:
    """Return the rebalances of all groups in the dump of one release."""
    metadata = load_metadata(DATA / "topics.txt")
    names = {str(id): topic for topic, id in metadata.topic_ids.items()}
    with gzip.open(DATA / release / "dump.txt.gz", "rt") as lines:
        rows = list(read_dump(lines, name="dump.txt"))
    assert [row["error"] for row in rows if row["error"]] == []
    known = [row for row in rows if row["payload"] and row["kind"] not in OFFSET_COMMIT_KINDS]
    known.sort(key=itemgetter("group", "offset"))
    found = {}
    for name, group_rows in groupby(known, key=itemgetter("group")):
        records = map(from_row, group_rows)
        generations = reconstruct_generations(name, records, topic_names=names)
        found[name] = list(find_rebalances(generations, partition_counts=TOPICS))
    return found


@each_release
@each_group
def test_the_last_rebalance_in_the_history_is_the_assignment_of_the_cluster(
    name: str, release: str
) -> None:
    last = rebalances(release)[name][-1]
    assert last.group is not None
    assert last.unknown is None
    assigned = {
        id: sorted(tuple(tp) for tp in partitions) for id, partitions in last.assignment.items()
    }
    assert assigned == expected_owners(name)
    assert {m.client.library for m in last.group.members} == {EXPECTED[name]["library"]}
    subscriptions = sorted(sorted(member.subscription) for member in last.group.members)
    assert subscriptions == sorted(EXPECTED[name]["subscriptions"])


def test_unsubscribed_and_unassigned_topics_of_kafkajs_are_stated() -> None:
    name = "kafkajs-RoundRobinAssigner"
    group = live_groups()[name]
    assert any("has partitions of topics that it does not subscribe to" in n for n in group.notes)
    subscribed = {topic for member in group.members for topic in member.subscription}
    assigned = {topic for owned in expected_owners(name).values() for topic, _ in owned}
    assert subscribed - assigned == {"c.clicks"}
    assert {topic.name for topic in group.topics} == subscribed | assigned
    for release in (NEWER, OLDER):
        last = compare_rebalance(rebalances(release)[name][-1])
        assert last is not None
        assert last.ending == "invalid"


_OTHERS = ("kafkajs-RoundRobin", "kafka-python")
COMPLETE = [name for name in EXPECTED if not name.startswith(_OTHERS)]


@each_release
@pytest.mark.parametrize("name", [*COMPLETE, "kafkajs-RoundRobinAssigner-equal"])
def test_all_rebalances_are_valid(name: str, release: str) -> None:
    assert set(endings(name, release)) == {"ok"}


def endings(name: str, release: str) -> list[str]:
    comparisons = [compare_rebalance(each) for each in rebalances(release)[name]]
    assert None not in comparisons
    return [str(each.ending) for each in comparisons if each is not None]


@each_release
@each_group
def test_captured_members_are_in_the_order_of_the_coordinator(name: str, release: str) -> None:
    live = live_groups()[name]
    captured = captured_groups(release)[name]
    assert [member.id for member in captured.members] == [member.id for member in live.members]


@pytest.mark.parametrize(
    "name",
    [
        *("kafka-go-range", "kafka-python-sticky", "librdkafka-cooperative-sticky"),
        *("librdkafka-range", "kafkajs-RoundRobinAssigner"),
    ],
)
def test_some_libraries_are_recognised_although_the_application_sets_its_client_id(
    name: str,
) -> None:
    cluster = RecordedCluster()
    described = cluster.describe([name])[name]
    assert isinstance(described, LiveGroup)
    named = replace(
        described, members=tuple(replace(member, client_id="app") for member in described.members)
    )
    cluster.describe = lambda _: {name: named}  # type: ignore[method-assign]
    [imported] = import_live(cluster, [name], ImportOptions(), sleep=lambda _: None)
    assert imported.group is not None
    assert {m.client.library for m in imported.group.members} == {EXPECTED[name]["library"]}


STICKY = [name for name in EXPECTED if "sticky" in name]


@each_release
@pytest.mark.parametrize("name", STICKY)
def test_the_claims_of_sticky_members_tell_the_owners_after_compaction(
    name: str, release: str
) -> None:
    complete = rebalances(release)[name][-1]
    # Compaction keeps only the last record of a group.
    [alone] = find_rebalances([complete.last], partition_counts=TOPICS)
    assert alone.unknown is None
    if complete.rounds == 1:
        expected, actual = compare_rebalance(complete), compare_rebalance(alone)
        assert expected is not None
        assert actual is not None
        assert actual.movement == expected.movement
