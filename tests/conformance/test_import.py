"""What a live import tells of a real cluster is what Kafka's own tools print about it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kassay.experiments.cli import main
from kassay.experiments.sources.capture_files import import_groups, load_sizes
from kassay.experiments.sources.import_options import ImportOptions, WeightSource
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import Partitions
from tests.conformance.admin import Administrator
from tests.conformance.captures import GROUP_TOOL, LOG_DIRS_TOOL, VIEWS, run_tool
from tests.conformance.cluster_with_groups import (
    EMPTY,
    JAAS,
    PASSWORD,
    RACKS,
    TOPICS,
    ClusterWithGroups,
    documents,
    quoted,
    running_site,
)
from tests.conformance.consumers import BROKER_ASSIGNORS, CLIENT_ASSIGNORS, Profile
from tests.conformance.running_group import RunningGroup

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterWithGroups]:
    with running_site(tmp_path_factory.mktemp("site")) as running:
        yield running


def _in_common(group: Group) -> Group:
    """Leave out what only some sources tell, the order of what members have included."""
    topics = (replace(topic, id=None, racks=None) for topic in group.topics)
    members = (
        replace(
            member,
            owned=Partitions.of(sorted(member.owned)),
            generation=1,
            rack=None,
            protocol_version=3,
        )
        for member in group.members
    )
    return replace(group, topics=tuple(topics), members=tuple(members), notes=())


@pytest.mark.parametrize("weights", [WeightSource.NONE, WeightSource.LAG])
def test_the_cluster_tells_what_its_tools_print(
    site: ClusterWithGroups, weights: WeightSource
) -> None:
    joining = ImportOptions(subscriptions=site.told, weights=weights, missing_lag=1)
    live, text = site.live(joining), site.text(joining)
    assert list(live) == sorted(site.groups)
    assert {name: _in_common(group) for name, group in live.items()} == {
        name: _in_common(group) for name, group in text.items()
    }
    assert len(live[EMPTY].members) == 0
    assert sum(len(member.owned) for member in live["sticky"].members) == sum(TOPICS.values())
    if weights is WeightSource.LAG:
        [payments] = [t for t in live["range"].topics if t.name == "b.payments"]
        assert payments.weights == tuple(5 + 3 * n - (5 + 3 * n) // 3 for n in range(4))


@pytest.fixture(scope="module")
def remembered(
    site: ClusterWithGroups, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Group]:
    """Groups with members, as ``__consumer_offsets`` has them."""
    out = tmp_path_factory.mktemp("remembered")
    server = ("--bootstrap-server", site.cluster.bootstrap)
    with pytest.raises(SystemExit) as ended:
        main(["history", *server, "--output", str(out), "--master", "local[1]", "--tasks", "1"])
    assert ended.value.code == 0
    groups = map(parse_group, map(json.loads, (out / "groups.jsonl").read_text().splitlines()))
    return {group.id: group for group in groups if group.id in site.groups}


@pytest.mark.parametrize("name", [*CLIENT_ASSIGNORS, *BROKER_ASSIGNORS])
def test_the_history_ends_in_what_the_cluster_tells(
    site: ClusterWithGroups, remembered: Mapping[str, Group], name: str
) -> None:
    assert set(remembered) == set(site.groups) - {EMPTY}
    wanted = {client: tuple(sorted(topics)) for client, topics in site.told[name].items()}
    of_classic = name in CLIENT_ASSIGNORS  # whose subscriptions are told
    joining = ImportOptions() if of_classic else ImportOptions(subscriptions={name: wanted})
    live = site.live(joining)[name]
    assert _in_common(remembered[name]) == _in_common(live)
    assert {m.generation for m in remembered[name].members if len(m.owned)} == {
        site.groups[name].generation
    }
    clients = {member.id: client for client, member in site.admin.group(name).members.items()}
    assert {clients[member.id]: member.rack for member in remembered[name].members} == {
        client: RACKS.get(client) for client in site.told[name]
    }


@pytest.mark.parametrize("name", CLIENT_ASSIGNORS)
def test_subscriptions_and_racks_of_classic_groups_are_told(
    site: ClusterWithGroups, name: str
) -> None:
    group = site.live(ImportOptions())[name]
    clients = {member.id: client for client, member in site.admin.group(name).members.items()}
    assert {clients[m.id]: set(m.subscription) for m in group.members} == {
        client: set(topics) for client, topics in site.told[name].items()
    }
    assert {clients[m.id]: m.rack for m in group.members} == {
        client: RACKS.get(client) for client in site.told[name]
    }
    assert not any("subscription" in note for note in group.notes)


@pytest.mark.parametrize("name", BROKER_ASSIGNORS)
def test_the_document_says_what_is_not_told_of_consumer_groups(
    site: ClusterWithGroups, name: str
) -> None:
    group = site.live(ImportOptions())[name]
    assert any("subscriptions are not shown" in note for note in group.notes)
    assert any("client.rack is shown of no member" in note for note in group.notes)


def test_topics_come_with_their_ids_and_racks(site: ClusterWithGroups) -> None:
    for group in site.live(ImportOptions()).values():
        for topic in group.topics:
            assert topic.partitions == TOPICS[topic.name]
            assert topic.id == site.topics[topic.name].id
            assert topic.racks == site.topics[topic.name].racks


def test_a_rate_is_what_was_appended_between_two_samples(site: ClusterWithGroups) -> None:
    appended = {("b.payments", 1): 40, ("b.payments", 3): 2}
    [imported] = import_live(
        site.ask(),
        [EMPTY],
        ImportOptions(weights=WeightSource.RATE),
        sleep=lambda _: site.admin.produce(appended),
    )
    assert imported.group is not None
    assert [topic.weights for topic in imported.group.topics] == [(0, 40, 0, 2)]


def test_sizes_are_those_of_the_largest_replicas(site: ClusterWithGroups, tmp_path: Path) -> None:
    server = site.cluster.bootstrap
    printed = run_tool(LOG_DIRS_TOOL, "--describe", "--bootstrap-server", server)
    file = tmp_path / "sizes.txt"
    file.write_text(printed)
    sizes = load_sizes(file)
    assert {place for place in sizes if place[0] in TOPICS} == {
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
    assert {place: sizes[place] for place in on_disk} == on_disk
    assert min(on_disk.values()) > 0
    group = site.live(ImportOptions(weights=WeightSource.SIZE, sizes=sizes))["range"]
    assert {topic.name: topic.weights for topic in group.topics} == {
        name: tuple(on_disk[name, number] for number in range(TOPICS[name]))
        for name in sorted(TOPICS)
    }


def test_a_cluster_is_as_before_after_it_was_read(site: ClusterWithGroups) -> None:
    before = {name: site.admin.group(name) for name in site.ask().group_ids()}
    site.live(ImportOptions(weights=WeightSource.LAG, missing_lag=0))
    assert set(site.groups) <= set(before)
    assert {name: site.admin.group(name) for name in site.ask().group_ids()} == before


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
class Ended:
    """How a command ended."""

    code: object
    out: list[str]
    err: list[str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run ``kassay import --bootstrap-server``."""

    def run_import(server: str, *options: str | Path) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(["import", "--bootstrap-server", server, *map(str, options)])
        printed = capsys.readouterr()
        return Ended(ended.value.code, printed.out.splitlines(), printed.err.splitlines())

    return run_import


def test_a_file_that_lets_the_tools_log_in_lets_the_import_log_in(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., Ended]
) -> None:
    server, config = site.cluster.listeners["LOGIN"], _login(tmp_path, PASSWORD)
    asked = ("--bootstrap-server", server, "--command-config", str(config))
    assert sorted(run_tool(GROUP_TOOL, *asked, "--list").split()) == site.ask().group_ids()
    ended = run(server, "--command-config", config, "--group", "sticky", "--group", "uniform")
    assert (ended.code, ended.err) == (0, [])
    assert [json.loads(line)["id"] for line in ended.out] == ["sticky", "uniform"]


def test_a_wrong_password_is_one_clear_error(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., Ended]
) -> None:
    server, config = site.cluster.listeners["LOGIN"], _login(tmp_path, "guessed")
    ended = run(server, "--command-config", config)
    assert (ended.code, ended.out) == (2, [])
    [error] = ended.err
    assert "Authentication failed" in error
    assert "guessed" not in error


def test_a_cluster_is_read_by_tls(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., Ended]
) -> None:
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={site.authority}\n"
    config = _config(tmp_path, f"security.protocol=SSL\n{trust}")
    ended = run(site.cluster.listeners["TLS"], "--command-config", config)
    assert (ended.code, ended.err) == (0, [])
    assert [json.loads(line)["id"] for line in ended.out] == site.ask().group_ids()


def test_a_certificate_that_nothing_vouches_for_is_one_clear_error(
    site: ClusterWithGroups, tmp_path: Path, run: Callable[..., Ended]
) -> None:
    config = _config(tmp_path, "security.protocol=SSL")
    ended = run(site.cluster.listeners["TLS"], "--command-config", config)
    assert (ended.code, ended.out) == (2, [])
    [error] = ended.err
    assert "certificate verify failed" in error


def test_a_group_that_is_not_there_is_an_error_and_the_others_are_imported(
    site: ClusterWithGroups, run: Callable[..., Ended]
) -> None:
    ended = run(site.cluster.bootstrap, "--group", "range", "--group", "no-such-group")
    missing, found = map(json.loads, ended.out)
    assert missing == {
        "id": "no-such-group",
        "error": "group 'no-such-group': the cluster has no such consumer group",
    }
    assert found["id"] == "range"
    assert (ended.code, ended.err) == (2, [f"kassay: {missing['error']}"])


@pytest.mark.parametrize(
    ("assignor", "state", "note"),
    [
        ("sticky", "PreparingRebalance", "the group was rebalancing"),
        ("uniform", "Reconciling", "the group was reconciling"),
    ],
)
def test_a_group_that_hangs_between_two_assignments_is_told_as_its_tools_print_it(
    site: ClusterWithGroups, assignor: str, state: str, note: str, tmp_path: Path
) -> None:
    group = RunningGroup(f"hung-{assignor}", site.cluster.bootstrap, site.admin, TOPICS)
    # Of eleven partitions, each of two members has to give one up for a third.
    seats = [Profile(client=c, topics=("c.clicks",), assignor=assignor) for c in ("v", "w", "x")]
    try:
        group.join(*seats[:2])
        group.await_stable()
        group.freeze("v")
        group.join(seats[2])
        group.await_state(state)
        _await_rest(site.admin, group.name)
        group.await_state(state)
        for view in ("offsets", "members-verbose", "state"):
            asked = ("--bootstrap-server", site.cluster.bootstrap, "--group", group.name)
            (tmp_path / f"{view}.txt").write_text(run_tool(GROUP_TOOL, *VIEWS[view], *asked))
        (tmp_path / "topics.txt").write_text((site.captures / "topics.txt").read_text())
        joining = ImportOptions(subscriptions={group.name: dict(group.subscriptions)})
        live = documents(import_live(site.ask(), [group.name], joining))[group.name]
        text = documents(import_groups([tmp_path], joining))[group.name]
    finally:
        group.close()
    assert _in_common(live) == _in_common(text)
    assert len(live.members) >= 2
    assert any(told.startswith(note) for told in live.notes)
    assert any(told.startswith(note) for told in text.notes)


def _await_rest(admin: Administrator, name: str) -> None:
    """Wait until a group that hangs has been the same for a while."""
    for _ in range(20):
        before = admin.group(name)
        time.sleep(2)
        if admin.group(name) == before:
            return
    raise TimeoutError(f"{name!r} does not come to rest")
