"""Captures of a real broker are imported and compared with its real groups."""

import json
from functools import cache

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import (
    import_groups,
    load_metadata,
    load_subscriptions,
)
from kassay.reference.model.group import WeightSource
from tests.experiments.sources.capture_texts import CAPTURES

MANIFEST = json.loads((CAPTURES / "manifest.json").read_text())
GROUPS = MANIFEST["groups"]
NAMES = sorted(set(GROUPS) - {"no-such-group"})


def imported(options=None, path=CAPTURES):
    found = {each.id: each for each in import_groups([path], options or ImportOptions())}
    assert {name for name, each in found.items() if each.error} == set()
    return {name: each.group for name, each in found.items() if each.group is not None}


@cache
def all_groups():
    return imported()


@cache
def complete_groups():
    options = ImportOptions(
        subscriptions=load_subscriptions(CAPTURES / "subscriptions.json"),
        content=load_metadata(CAPTURES / "topics.txt"),
    )
    return imported(options)


def members_of(name):
    members = GROUPS[name]["members"]
    return {member["id"]: member for member in members}


def test_exactly_the_groups_of_the_broker_are_imported():
    assert sorted(all_groups()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_groups_have_their_members_and_owned_partitions(name):
    group, expected = all_groups()[name], members_of(name)
    assert {member.id for member in group.members} == set(expected)
    for member in group.members:
        actual = expected[member.id]
        assert sorted(member.owned) == sorted(
            (topic, number) for topic, numbers in actual["assigned"].items() for number in numbers
        )
        assert member.instance_id == actual.get("instance_id")


@pytest.mark.parametrize("name", NAMES)
def test_subscriptions_and_metadata_complete_the_groups(name):
    group, expected = complete_groups()[name], members_of(name)
    for member in group.members:
        assert set(member.subscription) == set(expected[member.id]["topics"])
    for topic in group.topics:
        assert topic.partitions == MANIFEST["topics"][topic.name]["partitions"]
    assert not any("not shown" in note and "partition counts" in note for note in group.notes)


def test_captures_of_offsets_contain_no_members_without_partitions():
    whole = all_groups()["audit-idle"]
    offsets = imported(path=CAPTURES / "audit-idle" / "offsets.txt")["audit-idle"]
    busy = {member.id: member.owned for member in whole.members if len(member.owned)}
    assert {member.id: member.owned for member in offsets.members} == busy
    assert len(whole.members) > len(busy)
    assert "assumed: every member has partitions" in offsets.notes


def test_members_without_their_partition_numbers_are_rejected():
    path = CAPTURES / "audit-idle" / "members.txt"
    (found,) = import_groups([path], ImportOptions())
    assert found.group is None
    assert "but the captures show 0 of them" in found.error


def test_lags_become_weights():
    options = ImportOptions(weights=WeightSource.LAG)
    group = imported(options, CAPTURES / "checkout-range")["checkout-range"]
    rows = (CAPTURES / "checkout-range" / "offsets.txt").read_text().split("\n")
    shown = {
        tuple(cells[1:3]): int(cells[5])
        for cells in map(str.split, rows)
        if len(cells) == 9 and cells[5].isdigit()
    }
    assert shown
    for topic in group.topics:
        assert topic.weights == tuple(shown[topic.name, str(n)] for n in range(topic.partitions))


@pytest.mark.parametrize(
    ("lag", "is_noted"), [((900, 50, 30, 20), True), ((300, 250, 250, 200), False)]
)
def test_a_lag_on_few_members_is_noted(tmp_path, lag, is_noted):
    rows = ["GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"]
    rows += [f"g t {n} 0 {one} {one} m{n} /10.0.0.{n} c" for n, one in enumerate(lag)]
    file = tmp_path / "offsets.txt"
    file.write_text("\n".join(rows))
    (found,) = import_groups([file], ImportOptions())
    notes = [note.split(":")[0] for note in found.group.notes if "% of the lag" in note]
    assert notes == ["90% of the lag is on partitions of 1 of 4 members, most on m0"] * is_noted
