"""Groups keep their rows, names, clusters and moments, whatever else the input contains."""

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import import_groups
from kassay.experiments.sources.read_capture import read_capture
from tests.stored_cases import stored_cases

HEADER = "TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
SHOP = f"GROUP {HEADER}\nshop orders 0 10 60 50 c-1 /10.0.0.1 c\n"

SHOWN = {
    "error": lambda one: one.error or "",
    "unused": lambda one: one.unused or "",
    "notes": lambda one: " ".join(one.group.notes),
    "owned": lambda one: {m.id: [list(tp) for tp in m.owned] for m in one.group.members},
    "instances": lambda one: [member.instance_id for member in one.group.members],
    "hosts": lambda one: [member.client.host for member in one.group.members],
    "partitions": lambda one: {topic.name: topic.partitions for topic in one.group.topics},
    "weights": lambda one: [weight for topic in one.group.topics for weight in topic.weights],
    "weight_source": lambda one: one.group.weight_source,
    "rebalancing": lambda one: one.group.status.is_rebalancing,
    "assignor": lambda one: one.group.status.assignor,
}
TEXTS = ("error", "unused", "notes")


@pytest.mark.parametrize("case", stored_cases("imported_captures"), ids=lambda case: case["name"])
def test_the_groups_in_captures_are_those_stated(case, tmp_path):
    for name, text in case["files"].items():
        (tmp_path / name).write_text(text)
    files = [tmp_path] if len(case["files"]) > 1 else list(tmp_path.iterdir())
    found = list(import_groups(files, ImportOptions(**case.get("options", {}))))
    assert [one.id for one in found] == [id for id, _ in case["groups"]]
    for one, (_, expected) in zip(found, case["groups"], strict=True):
        assert one.error is None or "error" in expected
        for name, value in expected.items():
            shown = SHOWN[name](one)
            assert value in shown if name in TEXTS else shown == value


def test_unrelated_files_of_a_directory_are_named(tmp_path):
    texts = {"other.json": '{"a": 1}', "notes.md": "text", "members": "nothing here"}
    for name, text in (texts | {"offsets.txt": SHOP}).items():
        (tmp_path / name).write_text(text)
    found = list(import_groups([tmp_path], ImportOptions()))
    notes = sorted(one.unused for one in found if one.unused)
    assert [one.id for one in found if one.group] == ["shop"]
    assert [
        name for note in notes for name in ("members", "notes.md", "other.json") if name in note
    ] == ["notes.md", "members", "other.json"]


def test_the_account_names_the_rule_of_each_line():
    text = f"$ x --group g\n{SHOP}\nSome words of the author\nbroken 1\n"
    assert str(read_capture(text, name="x").account).splitlines() == [
        "x:1: ignored: prompt",
        "x:2: read: header of offsets table",
        "x:3: read: offsets table",
        "x:4: ignored: blank line",
        "x:5: ignored: prose",
        "x:6: error: the line is not a complete row of the offsets table above it",
        "x:7: ignored: blank line",
    ]


@pytest.mark.parametrize(
    ("rule", "line"),
    [(rule, line) for rule, lines in stored_cases("lines_of_noise").items() for line in lines],
)
def test_a_line_without_data_below_a_table_is_known(rule, line):
    account = read_capture(f"{SHOP}\n{line}\n", name="x").account
    assert f"x:4: ignored: {rule}\n" in str(account)
