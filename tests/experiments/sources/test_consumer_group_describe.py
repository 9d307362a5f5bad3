"""Subscriptions, racks and epochs of the consumer protocol, from recorded answers of a broker.

`tests/data/consumer_group_descriptions.json` contains the bodies of responses to
ConsumerGroupDescribe, version 1, of a broker of Kafka 4.4.0 with Java consumers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup, LiveTopic
from kassay.experiments.sources.live_cluster.kafka_python import (
    RESPONSES,
    groups_of_response,
    live_group,
)
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.group import Group, Protocol
from tests.conftest import ROOT
from tests.experiments.sources.test_live_groups import Tables

RECORDED: Mapping[str, str] = json.loads(
    (ROOT / "tests" / "data" / "consumer_group_descriptions.json").read_text()
)
TOPICS = {"orders": 4, "lowrate": 2, "billing.eu": 3, "billing_old": 1}


def description(name: str) -> LiveGroup:
    data = bytes.fromhex(RECORDED[name])
    return live_group(groups_of_response(RESPONSES[Kind.CONSUMER].decode(data, version=1))[name])


def imported(*groups: LiveGroup, options: ImportOptions | None = None) -> Group:
    tables = Tables(
        {group.id: [group] for group in groups},
        metadata={name: LiveTopic(count) for name, count in TOPICS.items()},
    )
    [found] = import_live(tables, (), options or ImportOptions(), sleep=lambda _: None)
    assert found.group is not None, found.error
    return found.group


def by_client(group: Group) -> dict[str | None, tuple[str, ...]]:
    return {member.client.id: member.subscription for member in group.members}


def test_members_subscribe_to_topics_that_they_have_no_partitions_of() -> None:
    group = imported(description("equal"))
    assert by_client(group) == {"e1": ("lowrate", "orders"), "e2": ("lowrate", "orders")}
    assert min(len({topic for topic, _ in member.owned}) for member in group.members) == 1
    assert {member.assumed for member in group.members} == {()}
    assert {member.generation for member in group.members} == {11}
    assert group.notes == ()
    assert (group.status.state, group.status.protocol, group.status.assignor) == (
        "Stable",
        Protocol.CONSUMER,
        "uniform",
    )


def test_racks_and_instance_ids_are_read() -> None:
    members = {member.client.id: member for member in imported(description("racks")).members}
    assert {client: (m.rack, m.instance_id) for client, m in members.items()} == {
        "k1": ("left", None),
        "k2": ("right", "seat"),
    }


def test_the_current_assignment_is_owned_and_the_target_is_beside_it() -> None:
    group = imported(description("moving"))
    members = {member.client.id: member for member in group.members}
    assert group.status.state == "Reconciling"
    assert (len(members["m1"].owned), len(members["m1"].target or ())) == (4, 2)
    assert (len(members["m2"].owned), len(members["m2"].target or ())) == (0, 2)


def test_regular_expressions_are_resolved_with_the_topics_of_the_cluster() -> None:
    group = imported(description("regex"))
    assert by_client(group) == {"r1": ("lowrate", "orders"), "r2": ("billing.eu",)}
    assert group.notes == tuple(
        f"1 member subscribes to the regular expression {pattern!r}, resolved with the names of "
        "the cluster's topics"
        for pattern in ("(orders|low.*)", "billing[.].*")
    )


@pytest.mark.parametrize("pattern", ["(?U)orders|lowrate", "none"])
def test_an_expression_that_cannot_be_resolved_leaves_an_assumption(pattern: str) -> None:
    live = description("regex")
    members = tuple(
        replace(one, pattern=pattern) if one.client_id == "r1" else one for one in live.members
    )
    group = imported(replace(live, members=members))
    assumed = {member.client.id: member.assumed for member in group.members}
    assert assumed == {"r1": ("topics",), "r2": ()}
    assert any("resolved not: Python cannot match" in note for note in group.notes)


def test_members_of_the_classic_protocol_in_the_group_are_counted() -> None:
    group = imported(description("half"))
    assert by_client(group) == {"h1": ("orders",), "h2": ("lowrate", "orders")}
    assert group.notes == ("1 of 2 members still use the classic protocol",)


def test_groups_that_are_not_described_keep_the_reason() -> None:
    live = description("equal")
    members = tuple(replace(one, subscription=None, epoch=None) for one in live.members)
    group = imported(replace(live, members=members, incomplete="kafka-python 3 is not installed"))
    assert sorted(map(len, by_client(group).values())) == [2, 2]
    assert sorted(member.assumed for member in group.members) == [(), ("topics",)]
    assert group.notes[-1] == (
        "subscriptions and epochs of the consumer protocol are not read: "
        "kafka-python 3 is not installed"
    )
