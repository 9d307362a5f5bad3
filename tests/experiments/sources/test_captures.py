"""The captures of a real broker, imported, against what was really run there."""

import json
from functools import cache

import pytest
from typer.testing import CliRunner

from kassay.experiments.cli import app
from kassay.experiments.sources.capture_files import import_groups, load_metadata
from kassay.experiments.sources.group_documents import (
    AssumedSubscriptions,
    ImportOptions,
    load_subscriptions,
)
from kassay.experiments.sources.partition_weights import WeightOptions
from tests.experiments.sources.corpus import CAPTURES

MANIFEST = json.loads((CAPTURES / "manifest.json").read_text())
GROUPS = MANIFEST["groups"]
NAMES = sorted(set(GROUPS) - {"no-such-group"})


def imported(joining=None, path=CAPTURES):
    found = {each.id: each for each in import_groups([path], joining or ImportOptions())}
    assert {name for name, each in found.items() if each.error} == set()
    return {name: each.group for name, each in found.items() if each.group is not None}


@cache
def everything():
    return imported()


@cache
def whole_truth():
    joining = ImportOptions(
        subscriptions=load_subscriptions(CAPTURES / "subscriptions.json"),
        counts=load_metadata(CAPTURES / "topics.txt").counts,
    )
    return imported(joining)


def members_of(name):
    members = GROUPS[name]["members"]
    return {member["id"]: member for member in members}


def test_every_group_of_the_broker_is_found_and_no_other():
    assert sorted(everything()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_group_has_the_members_and_the_ownership_it_had(name):
    group, truth = everything()[name], members_of(name)
    assert {member.id for member in group.members} == set(truth)
    for member in group.members:
        stated = truth[member.id]
        assert sorted(member.owned) == sorted(
            (topic, number) for topic, numbers in stated["assigned"].items() for number in numbers
        )
        assert member.instance_id == stated.get("instance_id")


@pytest.mark.parametrize("name", NAMES)
def test_with_subscriptions_and_metadata_a_document_is_the_group_itself(name):
    group, truth = whole_truth()[name], members_of(name)
    for member in group.members:
        assert set(member.subscription) == set(truth[member.id]["topics"])
    for topic in group.topics:
        assert topic.partitions == MANIFEST["topics"][topic.name]["partitions"]
    assert not any("not shown" in note and "partition counts" in note for note in group.notes)


def test_offsets_alone_give_the_same_ownership_but_no_idle_members():
    whole = everything()["audit-idle"]
    offsets = imported(path=CAPTURES / "audit-idle" / "offsets.txt")["audit-idle"]
    busy = {member.id: member.owned for member in whole.members if len(member.owned)}
    assert {member.id: member.owned for member in offsets.members} == busy
    assert len(whole.members) > len(busy)
    assert any("members without partitions are not known" in note for note in offsets.notes)


def test_members_without_their_partitions_are_refused():
    path = CAPTURES / "audit-idle" / "members.txt"
    (found,) = import_groups([path], ImportOptions())
    assert found.group is None
    assert "of which the captures show 0" in found.error


def test_lags_become_weights():
    joining = ImportOptions(weights=WeightOptions.LAG)
    group = imported(joining, CAPTURES / "checkout-range")["checkout-range"]
    rows = (CAPTURES / "checkout-range" / "offsets.txt").read_text().split("\n")
    shown = {
        tuple(cells[1:3]): int(cells[5])
        for cells in map(str.split, rows)
        if len(cells) == 9 and cells[5].isdigit()
    }
    assert shown
    for topic in group.topics:
        assert topic.weights == tuple(shown[topic.name, str(n)] for n in range(topic.partitions))


def test_equal_subscriptions_are_the_union():
    group = imported(ImportOptions(assume=AssumedSubscriptions.EQUAL))["search-sticky"]
    assert {member.subscription for member in group.members} == {("x.one", "y.two")}


def test_a_reconciling_group_says_so():
    notes = everything()["stuck-reconciling"].notes
    assert any("Reconciling" in note for note in notes)
    assert any("not what they shall have" in note for note in notes)


def test_an_empty_group_is_a_document_without_members_and_the_batch_goes_on():
    done = CliRunner().invoke(
        app, ["import", *(str(CAPTURES / name) for name in ("nightly-empty", "audit-idle"))]
    )
    empty, audit = map(json.loads, done.stdout.splitlines())
    assert done.exit_code == 0
    assert (empty["members"], len(audit["members"])) == ([], len(members_of("audit-idle")))
    assert "the group has no active members" in empty["notes"]
