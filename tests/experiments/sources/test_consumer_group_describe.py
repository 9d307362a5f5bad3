"""Subscriptions, racks and epochs of the consumer protocol, from recorded answers of a broker.

`tests/data/consumer_group_descriptions.json` contains the bodies of responses to
ConsumerGroupDescribe, version 1, of a broker of Kafka 4.4.0 with Java consumers.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import verdict
from kassay.experiments.planning.survey_groups import survey_group
from kassay.experiments.planning.survey_result import SurveyedGroup
from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.sources.live_cluster import admin_client, kafka_python
from kassay.experiments.sources.live_cluster.cluster_interface import LiveGroup, LiveTopic
from kassay.experiments.sources.live_cluster.consumer_group_describe import (
    decode_description,
    describe_consumer_groups,
)
from kassay.experiments.sources.live_cluster.kafka_python import (
    UnreadableDescriptionError,
    kafka_python_settings,
)
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Protocol
from kassay.solver.limits import SearchLimits
from tests.conftest import ROOT
from tests.experiments.sources.test_live_groups import Tables

RECORDED: Mapping[str, str] = json.loads(
    (ROOT / "tests" / "data" / "consumer_group_descriptions.json").read_text()
)
TOPICS = {"orders": 4, "lowrate": 2, "billing.eu": 3, "billing_old": 1}


def description(name: str) -> LiveGroup:
    return decode_description(bytes.fromhex(RECORDED[name]), version=1)[name]


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
        replace(one, subscription=replace(one.subscription, pattern=pattern))
        if one.client_id == "r1" and one.subscription is not None
        else one
        for one in live.members
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
    assert sorted(map(len, by_client(group).values())) == [1, 2]
    assert sorted(member.assumed for member in group.members) == [(), ("topics",)]
    assert group.notes[-1] == (
        "subscriptions and epochs of the consumer protocol are not read: "
        "kafka-python 3 is not installed"
    )


def test_only_groups_of_the_consumer_protocol_are_described_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Sequence[str]] = []

    def describe(_: str, __: Mapping[str, str], names: Sequence[str], *, timeout: float) -> object:
        asked.append(names)
        if len(asked) > 1:
            raise UnreadableDescriptionError("no route")
        return {"equal": description("equal")}

    monkeypatch.setattr(admin_client, "describe_consumer_groups", describe)
    cluster = admin_client.LiveCluster("127.0.0.1:1")
    bare = LiveGroup("equal", "Stable", (), "uniform", Protocol.CONSUMER)
    answers = {"equal": bare, "old": LiveGroup("old", "Stable", protocol=Protocol.CLASSIC)}
    assert cluster._complete(answers) == {"equal": description("equal")}
    assert cluster._complete({"old": answers["old"]}) == {}
    assert cluster._complete(answers)["equal"].incomplete == "no route"
    assert asked == [["equal"], ["equal"]]


def test_an_unreachable_broker_is_a_reason_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bootstrap(*_: object) -> None:
        raise kafka_python.KafkaError("no route")

    monkeypatch.setattr(kafka_python.KafkaConnectionManager, "bootstrap", bootstrap)
    with pytest.raises(UnreadableDescriptionError, match=r"kafka-python: .*no route"):
        describe_consumer_groups("127.0.0.1:1", {}, ["g"], timeout=0.2)


def test_a_missing_library_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_python, "ApiMessage", None)
    with pytest.raises(UnreadableDescriptionError, match="kafka-python 3 is not installed"):
        describe_consumer_groups("127.0.0.1:1", {}, ["g"], timeout=0.2)


def test_tls_settings_become_a_context() -> None:
    strict = kafka_python_settings({"security.protocol": "ssl"})["ssl_context"]
    lax = kafka_python_settings(
        {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}
    )["ssl_context"]
    unnamed = kafka_python_settings(
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none"}
    )["ssl_context"]
    assert [one.check_hostname for one in (strict, lax, unnamed)] == [True, False, False]
    assert [one.verify_mode for one in (strict, lax, unnamed)] == [
        ssl.CERT_REQUIRED,
        ssl.CERT_NONE,
        ssl.CERT_REQUIRED,
    ]


def test_a_property_without_a_translation_is_named_without_its_value() -> None:
    with pytest.raises(
        InputError, match=r"does not support the property 'ssl\.keystore\.location'$"
    ):
        kafka_python_settings({"ssl.keystore.location": "secret.p12"})


@pytest.mark.parametrize(
    ("name", "loads"),
    [
        ("equal", {"e1": 3, "e2": 3}),
        ("regex", {"r1": 6, "r2": 3}),
        ("racks", {"k1": 2, "k2": 2}),
        ("moving", {"m1": 4, "m2": 0}),
        ("half", {"h1": 3, "h2": 3}),
    ],
)
def test_plans_start_from_the_partitions_that_the_clients_had(
    name: str, loads: dict[str, int]
) -> None:
    group = imported(description(name))
    result = plan(group, limits=SearchLimits(time=5))
    clients = {member.id: member.client.id for member in group.members}
    assert {clients[id]: load for id, load in result.current.loads.items()} == loads
    assert not verdict(result).startswith("If ")
    assert ("The group is reconciling" in verdict(result)) is (name == "moving")
    surveyed = survey_group(group)
    assert isinstance(surveyed, SurveyedGroup)
    assert surveyed.current.makespan == max(loads.values())
    assert (surveyed.verdict.condition, surveyed.state) == (None, group.status.state)
