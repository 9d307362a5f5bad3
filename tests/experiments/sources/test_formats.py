"""Samples of the formats of tools: the groups in them, and damage of them."""

import random

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import import_groups
from kassay.reference.model.group_remarks import condition
from tests.conftest import ROOT
from tests.experiments.sources.format_damage import JSON, TEXT
from tests.experiments.sources.test_capture_account import assert_accounted, read_groups
from tests.stored_cases import stored_cases

FOLDER = ROOT / "tests" / "data" / "formats"
FILES = sorted(FOLDER.glob("*"))
OWNED = {
    "c-1-4b0be0d1-3f67-4ac5-9d6b-7b1a6a6a2a01": [("orders", 0), ("returns", 0)],
    "c-2-5c1bf1e2-4f78-4bd6-8e7c-8c2b7b7b3b02": [("orders", 1)],
}
IDLE = "c-3-6d2c02f3-5089-4ce7-9f8d-9d3c8c8c4c03"
BY_CLIENT = {"c-1_/10.0.0.1": OWNED["c-1-4b0be0d1-3f67-4ac5-9d6b-7b1a6a6a2a01"],
             "c-2_/10.0.0.2": OWNED["c-2-5c1bf1e2-4f78-4bd6-8e7c-8c2b7b7b3b02"]}  # fmt: skip
WITH_IDLE = stored_cases("formats_with_idle_members")
WITHOUT_IDS = ("kaf", "kafkactl", "kafkactl-tables")
WITH_STATE = (*WITH_IDLE, "kaf", "kafkactl", "kafbat", "rpk")
WITH_SUBSCRIPTIONS = ("kafka-python.json", "kafkajs.json", "kcl.json")
WITHOUT_GROUPS = ("confluent-consumers.txt", "connect-status.json", "kcat-L.txt")
PER_KIND = 2


def imported(*files):
    return [one for file in files for one in import_groups([file], ImportOptions(), group="shop")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_group_in_a_sample_is_read(file):
    assert_accounted(file.read_text())
    name = file.name.partition(".")[0]
    [found] = imported(file)
    if file.name in WITHOUT_GROUPS:
        assert found.group is None
        return
    group = found.group
    assert group is not None, found.error
    owned = {one.id: [tuple(each) for each in one.owned] for one in group.members}
    if file.name == "prometheus-matrix.json":
        assert "members are not shown, only their number: 3" in group.notes
    elif name in WITHOUT_IDS:
        assert owned == BY_CLIENT
    else:
        assert owned == OWNED | ({IDLE: []} if name in WITH_IDLE else {})
    topics = {topic.name: topic.partitions for topic in group.topics}
    assert topics == {"orders": 3 if file.name == "rpk.txt" else 2, "returns": 1}
    assert (group.status.state == "Stable") is (name in WITH_STATE)
    stated = condition(group) or ""
    assert ("the group is stable" in stated) is (name not in WITH_STATE and bool(owned))
    # kaf shows and rpk counts as many members as have partitions.
    if owned and name not in WITH_IDLE and file.name not in ("kaf.txt", "rpk.json"):
        assert "every member has partitions" in stated or "does not show" in stated
    assert ("subscribes" in stated) is (bool(owned) and file.name not in WITH_SUBSCRIPTIONS)


def test_a_rebalance_in_the_spelling_of_confluent_kafka_is_one(tmp_path):
    text = (FOLDER / "confluent-kafka.json").read_text()
    file = tmp_path / "groups.json"
    file.write_text(text.replace("State.STABLE", "State.PREPARING_REBALANCING"))
    [found] = imported(file)
    assert "the group was rebalancing, state PreparingRebalance" in found.group.notes


def test_members_of_one_capture_and_lags_of_another_are_joined():
    captures = [FOLDER / "confluent-lag.txt", FOLDER / "confluent-consumers.txt"]
    [found] = import_groups(captures, ImportOptions(), is_joined=True)
    assert {one.id for one in found.group.members} == {*OWNED, IDLE}


def test_statuses_of_connectors_are_one_cluster():
    [found] = imported(FOLDER / "connect-status.json")
    content = found.document.content
    assert content["steps"][0]["connectors"] == {"sink": 2, "source": 1}
    assert "tasks that have failed still count for their worker: sink-1" in content["notes"]


@pytest.mark.parametrize("kind", [*TEXT, *(f"json {name}" for name in JSON)])
def test_damage_of_samples_is_an_error_or_changes_no_group(kind, tmp_path):
    is_json = kind.startswith("json ")
    change = JSON[kind.removeprefix("json ")] if is_json else TEXT[kind]
    for file in FILES:
        text = file.read_text()
        expected, _ = read_groups(text, tmp_path)
        for seed in range(0 if is_json and file.suffix != ".json" else PER_KIND):
            changed = change(text, random.Random(f"{file.name} {kind} {seed}"))
            if changed == text:
                continue
            assert_accounted(changed)
            groups, errors = read_groups(changed, tmp_path)
            different = {id for id in expected | groups if groups.get(id) != expected.get(id)}
            if kind.startswith("id ") and groups.keys() == expected.keys():
                # Any text can be an id, so an id that is damaged everywhere is another id.
                different = {id for id in different if renamed(groups[id]) != renamed(expected[id])}
            is_known = different <= errors or (errors and different <= expected.keys())
            assert is_known, f"{file.name}: {different - errors}\n{changed}"


def renamed(shown):
    return (sorted((one[1:] for one in shown[0]), key=str), *shown[1:])
