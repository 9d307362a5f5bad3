"""Import from a real cluster, compared with the output of Kafka's tools."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kassay.experiments.cli import main
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.capture_contents import DocumentRows
from kassay.experiments.sources.import_captures import import_groups
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.model.group import NO_CLIENT, NO_STATUS, Group, WeightSource
from kassay.reference.model.topic_partitions import Partitions
from tests.conformance.admin import Administrator
from tests.conformance.captures import GROUP_TOOL, LOG_DIRS_TOOL, VIEWS, run_tool
from tests.conformance.cluster_with_groups import (
    EMPTY,
    JAAS,
    PASSWORD,
    TOPICS,
    ClusterWithGroups,
    documents,
    quoted,
    running_cluster_with_groups,
)
from tests.conformance.consumers import Profile
from tests.conformance.running_group import RunningGroup
from tests.experiments.sources.reading import content_of

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterWithGroups]:
    with running_cluster_with_groups(tmp_path_factory.mktemp("site")) as running:
        yield running


def _common_properties(group: Group) -> Group:
    """Remove properties that only some sources contain, such as the order of partitions."""
    topics = (replace(topic, id=None, racks=None) for topic in group.topics)
    members = (
        replace(
            member,
            owned=Partitions.of(sorted(member.owned)),
            generation=1,
            rack=None,
            protocol_version=3,
            client=NO_CLIENT,
            assumed=(),
        )
        for member in sorted(group.members, key=lambda member: member.id)
    )
    return replace(
        group,
        topics=tuple(topics),
        members=tuple(members),
        notes=(),
        status=NO_STATUS,
        available_weights=(),
    )


@pytest.mark.parametrize("weights", [None, WeightSource.LAG])
def test_live_import_equals_the_import_of_tool_output(
    site: ClusterWithGroups, weights: WeightSource | None
) -> None:
    import_options = ImportOptions(subscriptions=site.subscriptions, weights=weights, missing_lag=1)
    live, text = site.live(import_options), site.text(import_options)
    assert list(live) == sorted(site.groups)
    assert {name: _common_properties(group) for name, group in live.items()} == {
        name: _common_properties(group) for name, group in text.items()
    }
    assert {name: group.status for name, group in live.items() if name != EMPTY} == {
        name: group.status for name, group in text.items() if name != EMPTY
    }
    assert {m.id: m.client for group in live.values() for m in group.members} == {
        m.id: m.client for group in text.values() for m in group.members
    }
    assert live["range"].available_weights == (WeightSource.LAG, WeightSource.RATE)
    assert text["range"].available_weights == (WeightSource.LAG,)
    assert len(live[EMPTY].members) == 0
    assert sum(len(member.owned) for member in live["sticky"].members) == sum(TOPICS.values())
    if weights is WeightSource.LAG:
        [payments] = [t for t in live["range"].topics if t.name == "b.payments"]
        assert payments.weights == tuple(5 + 3 * n - (5 + 3 * n) // 3 for n in range(4))


def test_topics_have_ids_and_racks(site: ClusterWithGroups) -> None:
    for group in site.live(ImportOptions()).values():
        for topic in group.topics:
            assert topic.partitions == TOPICS[topic.name]
            assert topic.id == site.topics[topic.name].id
            assert topic.racks == site.topics[topic.name].racks


def test_message_rate_is_computed_from_two_samples(site: ClusterWithGroups) -> None:
    appended = {("b.payments", 1): 40, ("b.payments", 3): 2}
    [imported] = import_live(
        site.client(),
        [EMPTY],
        ImportOptions(weights=WeightSource.RATE),
        sleep=lambda _: site.admin.produce(appended),
    )
    assert imported.group is not None
    assert [topic.weights for topic in imported.group.topics] == [(0, 40, 0, 2)]


def test_partition_size_is_the_size_of_the_largest_replica(site: ClusterWithGroups) -> None:
    server = site.cluster.bootstrap
    printed = run_tool(LOG_DIRS_TOOL, "--describe", "--bootstrap-server", server)
    sizes = content_of(printed, name="log-dirs").sizes
    assert {tp for tp in sizes if tp[0] in TOPICS} == {
        (name, number) for name, count in TOPICS.items() for number in range(count)
    }
    on_disk = {
        (name, number): max(
            sum(segment.stat().st_size for segment in replica.glob("*.log"))
            for replica in site.cluster.directory.rglob(f"{name}-{number}")
        )
        for name, number in sizes
        if name in TOPICS
    }
    assert {tp: sizes[tp] for tp in on_disk} == on_disk
    assert min(on_disk.values()) > 0
    options = ImportOptions(weights=WeightSource.SIZE, content=DocumentRows(sizes=sizes))
    group = site.live(options)["range"]
    assert {topic.name: topic.weights for topic in group.topics} == {
        name: tuple(on_disk[name, number] for number in range(TOPICS[name]))
        for name in sorted(TOPICS)
    }


def test_import_does_not_change_the_cluster(site: ClusterWithGroups) -> None:
    before = {name: site.admin.group(name) for name in site.client().group_ids()}
    site.live(ImportOptions(weights=WeightSource.LAG, missing_lag=0))
    assert set(site.groups) <= set(before)
    assert {name: site.admin.group(name) for name in site.client().group_ids()} == before


def _config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return path


def _login(tmp_path: Path, password: str) -> Path:
    jaas = f"{JAAS} \\\n  username=reader password={quoted(password)};"
    escaped = jaas.replace("\\", "\\\\").replace("\\\\\n", "\\\n")
    return _config(
        tmp_path,
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={escaped}\n",
    )


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit code and output of a command."""

    code: object
    out: list[str]
    err: list[str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., CommandResult]:
    """Run ``kassay import --bootstrap-server``."""

    def run_import(server: str, *options: str | Path) -> CommandResult:
        with pytest.raises(SystemExit) as result:
            main(["import", "--bootstrap-server", server, *map(str, options)])
        printed = capsys.readouterr()
        return CommandResult(result.value.code, printed.out.splitlines(), printed.err.splitlines())

    return run_import


def test_import_logs_in_with_the_configuration_of_the_tools(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., CommandResult]
) -> None:
    server, config = site.cluster.listeners["LOGIN"], _login(tmp_path, PASSWORD)
    options = ("--bootstrap-server", server, "--command-config", str(config))
    assert sorted(run_tool(GROUP_TOOL, *options, "--list").split()) == site.client().group_ids()
    result = run(server, "--command-config", config, "--group", "sticky", "--group", "uniform")
    assert (result.code, result.err) == (0, [])
    assert [json.loads(line)["id"] for line in result.out] == ["sticky", "uniform"]
    assert _subscriptions(result.out[1]) == _sent(site, "uniform")


def test_wrong_password_gives_one_error_message(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., CommandResult]
) -> None:
    server, config = site.cluster.listeners["LOGIN"], _login(tmp_path, "guessed")
    result = run(server, "--command-config", config)
    assert (result.code, result.out) == (2, [])
    [error] = result.err
    assert "Authentication failed" in error
    assert "guessed" not in error


def test_import_uses_tls(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., CommandResult]
) -> None:
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={site.authority}\n"
    config = _config(tmp_path, f"security.protocol=SSL\n{trust}")
    result = run(site.cluster.listeners["TLS"], "--command-config", config)
    assert (result.code, result.err) == (0, [])
    groups = {json.loads(line)["id"]: line for line in result.out}
    assert list(groups) == site.client().group_ids()
    assert _subscriptions(groups["uniform"]) == _sent(site, "uniform")


def _subscriptions(document: str) -> dict[str, set[str]]:
    return {
        member["client_id"]: set(member["topics"]) for member in json.loads(document)["members"]
    }


def _sent(site: ClusterWithGroups, group: str) -> dict[str, set[str]]:
    return {client: set(topics) for client, topics in site.subscriptions[group].items()}


@pytest.mark.parametrize(
    ("assignor", "state", "note"),
    [
        ("sticky", "PreparingRebalance", "the group was rebalancing"),
        ("uniform", "Reconciling", "the group was reconciling"),
    ],
)
def test_blocked_rebalance_is_imported_like_the_tool_output(
    site: ClusterWithGroups, assignor: str, state: str, note: str, tmp_path: Path
) -> None:
    group = RunningGroup(f"blocked-{assignor}", site.cluster.bootstrap, site.admin, TOPICS)
    # Each of two members must revoke partitions for the third member.
    profiles = [Profile(client=c, topics=("c.clicks",), assignor=assignor) for c in ("v", "w", "x")]
    try:
        group.join(*profiles[:2])
        group.await_stable()
        group.freeze("v")
        group.join(profiles[2])
        group.await_state(state)
        _await_no_change(site.admin, group.name)
        group.await_state(state)
        for view in ("offsets", "members-verbose", "state"):
            options = ("--bootstrap-server", site.cluster.bootstrap, "--group", group.name)
            (tmp_path / f"{view}.txt").write_text(run_tool(GROUP_TOOL, *VIEWS[view], *options))
        (tmp_path / "topics.txt").write_text((site.captures / "topics.txt").read_text())
        import_options = ImportOptions(subscriptions={group.name: dict(group.subscriptions)})
        live = documents(import_live(site.client(), [group.name], import_options))[group.name]
        text = documents(import_groups([tmp_path], import_options))[group.name]
    finally:
        group.close()
    assert _common_properties(live) == _common_properties(text)
    assert len(live.members) >= 2
    assert any(line.startswith(note) for line in live.notes)
    assert any(line.startswith(note) for line in text.notes)


def _await_no_change(admin: Administrator, name: str) -> None:
    """Wait until a group stops changing."""
    for _ in range(20):
        before = admin.group(name)
        time.sleep(2)
        if admin.group(name) == before:
            return
    raise TimeoutError(f"{name!r} does not stop changing")
