"""The watcher records what changes between two observations of a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kassay.experiments.planning.survey import SurveyedGroup
from kassay.experiments.watch import plan_process
from kassay.experiments.watch.event_database import Store
from kassay.experiments.watch.server import Pages
from kassay.experiments.watch.watcher import Watcher
from kassay.reference.model.errors import InputError, RunError, UsageError
from kassay.reference.model.group import Group, Member, Topic
from tests.experiments.watch.scripted_cluster import ScriptedCluster

BALANCED = {"a-1": [0, 1, 2, 3], "b-1": [4, 5, 6, 7]}


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        self.now += 60
        return self.now


def watching(cluster: ScriptedCluster, store: Store, **options: bool) -> Watcher:
    return Watcher(lambda: cluster, store, clock=Clock(), **options)  # type: ignore[arg-type,return-value]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "watch.sqlite")


def test_a_rebalance_has_its_cause_and_its_moves(store: Store) -> None:
    cluster = ScriptedCluster({"g": BALANCED})
    watcher = watching(cluster, store)
    watcher.observe()
    cluster.groups["g"] = {"a-1": [0, 1, 2], "b-1": [4, 5, 3], "c-1": [6, 7]}
    watcher.observe()
    event, *_ = store.events("g")
    assert (event["kind"], event["cause"], event["joined"]) == ("rebalance", "joined", ["c"])
    assert (event["moves"], event["unnecessary_moves"]) == (3, 1)
    assert event["maximum_load"] == {"before": 4, "after": 3}
    assert store.values("rebalances") == [("g", "joined", 1)]
    assert store.values("unnecessary_moves") == [("g", "", 1)]


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        ({"a-1": [0, 1, 2, 3, 4, 5, 6, 7]}, "left"),
        ({"a-2": [0, 1, 2, 3], "b-1": [4, 5, 6, 7]}, "replaced"),
        ({"a-1": [4, 1, 2, 3], "b-1": [0, 5, 6, 7]}, "other"),
    ],
)
def test_causes_follow_from_the_members(
    store: Store, after: dict[str, list[int]], cause: str
) -> None:
    cluster = ScriptedCluster({"g": BALANCED})
    watcher = watching(cluster, store)
    watcher.observe()
    cluster.groups["g"] = after
    watcher.observe()
    assert store.events("g")[0]["cause"] == cause


def test_the_partitions_of_a_deleted_topic_do_not_move(store: Store) -> None:
    cluster = ScriptedCluster({"g": BALANCED})
    watcher = watching(cluster, store)
    watcher.observe()
    cluster.topics, cluster.subscription = lambda names: {}, ()  # type: ignore[method-assign]
    cluster.groups["g"] = {"a-1": [], "b-1": []}
    watcher.observe()
    assert (store.events("g")[0]["cause"], store.events("g")[0]["moves"]) == ("partitions", 0)


def test_unchanged_groups_are_described_but_not_read_again(store: Store) -> None:
    cluster = ScriptedCluster({f"g{n}": BALANCED for n in range(5)})
    watcher = watching(cluster, store)
    watcher.observe()
    before = cluster.described
    watcher.observe()
    assert cluster.described == before + 5
    kinds = [event["kind"] for event in store.events()]
    assert kinds == ["cluster-answers"] + ["appeared"] * 5
    assert len(watcher.results().groups) == 5


def test_a_rebalance_in_progress_counts_as_time_and_not_as_a_change(store: Store) -> None:
    cluster = ScriptedCluster({"g": BALANCED})
    watcher = watching(cluster, store)
    watcher.observe()
    cluster.states["g"] = "PreparingRebalance"
    cluster.groups["g"] = {"a-1": [], "b-1": []}
    watcher.observe()
    cluster.states.clear()
    cluster.groups["g"] = BALANCED
    watcher.observe()
    assert store.values("not_stable_seconds") == [("g", "", 60.0)]
    assert not store.values("rebalances")


def test_a_cluster_that_is_away_is_a_state(store: Store) -> None:
    cluster = ScriptedCluster({"g": BALANCED})
    changes: list[str] = []
    watcher = Watcher(lambda: cluster, store, on_change=changes.append, clock=Clock())  # type: ignore[arg-type,return-value]
    watcher.observe()
    cluster.is_away = True
    watcher.observe()
    watcher.observe()
    assert watcher.problem is not None
    assert "no answer" in watcher.problem
    assert len(watcher.results().groups) == 1
    assert "does not answer: broker:9092" in str(Pages(watcher, store, source="").find("/"))
    cluster.is_away = False
    watcher.observe()
    assert watcher.problem is None
    kinds = [event["kind"] for event in store.events() if event["group"] is None]
    assert kinds == ["cluster-answers", "cluster-away", "cluster-answers"]
    assert len(changes) == 3


def test_a_restart_keeps_events_and_totals_and_sees_changes_in_between(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    cluster = ScriptedCluster({"g": BALANCED})
    first = Store(path)
    watching(cluster, first).observe()
    first.close()
    cluster.groups["g"] = {"a-1": [0, 1, 2, 3, 4, 5, 6, 7]}
    second = Store(path)
    watching(cluster, second).observe()
    assert [event["kind"] for event in second.events("g")] == ["rebalance", "appeared"]


def test_a_group_that_does_not_exist_any_more_is_removed(store: Store) -> None:
    cluster = ScriptedCluster({"g": BALANCED, "h": BALANCED})
    watcher = watching(cluster, store)
    watcher.observe()
    del cluster.groups["h"]
    watcher.observe()
    assert [group.id for group in watcher.results().groups] == ["g"]
    assert store.events("h")[0]["kind"] == "removed"


def test_hashed_names_are_stable_and_hide_all_names(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    names = []
    for _ in range(2):
        store = Store(path)
        watcher = watching(ScriptedCluster({"secret": BALANCED}), store, hash_names=True)
        watcher.observe()
        [found] = watcher.results().groups
        assert isinstance(found, SurveyedGroup)
        names.append(found.id)
        store.close()
    assert names[0] == names[1] != "secret"
    content = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"secret" not in content
    assert b"a-1" not in content


@pytest.mark.long
def test_a_week_of_rebalances_and_restarts_leaves_nothing_behind(tmp_path: Path) -> None:
    path, clock, cluster, states = tmp_path / "w.sqlite", Clock(), ScriptedCluster({}), []
    for day in range(7):
        store = Store(path, days=1)
        watcher = Watcher(lambda: cluster, store, clock=clock)  # type: ignore[arg-type,return-value]
        for step in range(48):
            clock.now += 1800 - 60
            names = {"g": f"b-{day}-{step}", f"job-{day}-{step}": "b-1"}
            cluster.groups = {id: {"a-1": [0, 1], b: [2, 3]} for id, b in names.items()}
            cluster.is_away = step % 20 == 19
            watcher.observe()
        count, memory = len(store.events(limit=10_000)), Path("/proc/self/statm").read_text()
        store.close()
        states.append((count, path.stat().st_size, int(memory.split()[1]) * 4096))
    counts, sizes, memories = zip(*states[2:], strict=True)
    assert set(counts) == {counts[0]}
    assert max(sizes) < 2 * min(sizes)
    assert memories[-1] - memories[0] < 10e6


def test_another_file_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "text.sqlite"
    path.write_text("no database " * 100)
    with pytest.raises(InputError, match="cannot open the database"):
        Store(path)


def test_a_plan_page_takes_no_memory_of_the_watcher() -> None:
    program = """from pathlib import Path
from kassay.experiments.watch.server import Pages
from tests.experiments.watch.test_watcher import *
store = Store(Path(":memory:"))
watcher = watching(ScriptedCluster({"g": {"a-1": range(8), "b-1": []}}), store)
watcher.observe()
memory = [Path("/proc/self/statm").read_text().split()[1]]
page = Pages(watcher, store, source="").find("/plans/g")
memory.append(Path("/proc/self/statm").read_text().split()[1])
assert "4 moves" in page[1]
assert (int(memory[1]) - int(memory[0])) * 4096 < 8e6, memory"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_error_of_a_plan_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(topics=(Topic("t", 1, copies=((2, 2),)),), members=(Member("a", ("t",)),))
    with pytest.raises(UsageError, match="supports neither partitions with several members"):
        plan_process.plan_page(group, "")
    monkeypatch.setattr(plan_process, "_send_page", slice)
    with pytest.raises(RunError, match="ended, possibly because memory ran out"):
        plan_process.plan_page(group, "")


def test_only_the_extra_live_is_needed() -> None:
    others = ("pandas", "matplotlib", "pyarrow", "pyspark")
    program = f"""import sys; sys.modules.update(dict.fromkeys({others}))
import kassay.experiments.cli.commands.watch"""
    subprocess.run([sys.executable, "-c", program], check=True)
