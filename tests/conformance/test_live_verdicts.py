"""Import, survey and plan of running groups, compared with what their clients report.

The groups have consumers of the Java client and of librdkafka, under both protocols. The brokers
authorise a second user by ACLs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kassay.experiments.cli import main
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import verdict
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import Group, Protocol, WeightSource
from kassay.solver.limits import SearchLimits
from tests.conformance.live_site import PATTERN, READER, SECONDS, Site, running_site

pytestmark = pytest.mark.kafka

LOGIN = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": READER,
    "sasl.password": READER,
}
_REFUSED_GROUP = KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running_site() as started:
        yield started


@pytest.fixture(scope="module")
def groups(site: Site) -> Mapping[str, Group]:
    return site.imported_when_stable()


def test_members_are_as_the_clients_report_them(site: Site, groups: Mapping[str, Group]) -> None:
    assert sorted(groups) == sorted(site.groups)
    for name, clients in site.groups.items():
        members = {member.client.id: member for member in groups[name].members}
        assert {
            client: (frozenset(m.subscription), frozenset(m.owned), m.rack, m.instance_id)
            for client, m in members.items()
        } == {
            client: (one.topics, one.partitions(), one.rack, one.instance)
            for client, one in clients.items()
        }, name
        assert {member.assumed for member in members.values()} <= {()}, name


def test_states_and_protocols_are_named(groups: Mapping[str, Group]) -> None:
    states = {name: group.status.state for name, group in groups.items()}
    other = {"reconciling": "Reconciling", "left": "Empty", "simple": "Empty"}
    assert states == dict.fromkeys(groups, "Stable") | other
    assert groups["simple"].status.protocol is Protocol.SIMPLE
    assert groups["half-upgraded"].notes[-1] == "1 of 2 members still use the classic protocol"
    assert any(PATTERN in note for note in groups["pattern"].notes)


def test_plans_start_from_the_partitions_of_the_clients(
    site: Site, groups: Mapping[str, Group]
) -> None:
    for name, group in groups.items():
        result = plan(group, limits=SearchLimits(time=10))
        sizes = {len(one.partitions()) for one in site.groups[name].values()}
        text = verdict(result)
        assert result.current.makespan == max(sizes, default=0), name
        assert not text.startswith("If "), name
        if not group.members:
            assert "the group has no members" in text
        if name == "reconciling":
            assert "The group is reconciling" in text
            assert (result.movement, result.planned.makespan) == (3, 3)


def test_the_survey_contains_every_group(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server = ("--bootstrap-server", site.bootstrap)
    with pytest.raises(SystemExit) as ended:
        main(["survey", *server, "--format", "jsonl", "-o", str(tmp_path), "--plans", "0"])
    assert ended.value.code == 0
    rows = {row["id"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert {name: row["members"] for name, row in rows.items()} == {
        name: len(clients) for name, clients in site.groups.items()
    }
    assert rows["reconciling"]["target"] == {"makespan": 3, "moves": 3}
    assert {row["condition"] for row in rows.values()} == {None}


def test_the_import_requires_describe_on_groups_and_topics(
    site: Site, groups: Mapping[str, Group]
) -> None:
    names = ("classic", "pattern", "two-topics")
    known = {name: groups[name] for name in names}

    def imported(*names: str, weights: WeightSource | None = None) -> dict[str | None, object]:
        cluster = LiveCluster(site.login, LOGIN, timeout=20)
        live = import_live(cluster, names, ImportOptions(weights=weights), sample_seconds=0.1)
        return {one.id: one.error or one.group for one in live}

    assert imported() == {}
    refused = imported(*names)
    assert all("Group authorization failed" in str(error) for error in refused.values())
    _allow(site, ResourceType.GROUP, *names)
    assert imported().keys() == known.keys()
    assert all("authoriz" in str(error) for error in imported(*names).values())
    _allow(site, ResourceType.TOPIC, "orders", "lowrate")
    assert imported() == imported(*names) == known
    rated = imported(weights=WeightSource.RATE).values()
    assert {type(one) for one in rated} == {Group}


def _allow(site: Site, kind: ResourceType, *names: str) -> None:
    """Allow the reader to describe resources, and wait until the brokers know it."""
    bindings = [
        AclBinding(
            *(kind, name, ResourcePatternType.LITERAL),
            *(f"User:{READER}", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW),
        )
        for name in names
    ]
    client = AdminClient({"bootstrap.servers": site.bootstrap})
    for created in client.create_acls(bindings).values():
        created.result()
    reader = AdminClient({"bootstrap.servers": site.login, **LOGIN})
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            if kind is ResourceType.GROUP:
                for described in reader.describe_consumer_groups(list(names)).values():
                    described.result()
            else:
                for found in reader.describe_topics(TopicCollection(list(names))).values():
                    found.result()
        except KafkaException as error:
            # A group is not described either without the rules for its topics.
            if kind is ResourceType.TOPIC or error.args[0].code() == _REFUSED_GROUP:
                time.sleep(0.2)
                continue
        return
    raise TimeoutError(f"the brokers do not apply the rules for {names}")
