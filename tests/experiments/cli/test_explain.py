import json
from dataclasses import replace
from pathlib import Path

import pytest

from kassay.experiments.cli.commands import explain as command
from kassay.solver.solution import LevelValue
from tests.experiments.cli.conftest import LOPSIDED_GROUP

EXAMPLES = Path(__file__).parents[3] / "examples" / "groups.jsonl"


def test_the_example_groups_have_one_chain_each(kassay):
    done = kassay("explain", EXAMPLES, "--assignor", "sticky")
    records = done.records
    assert done.code == 0
    assert [record["id"] for record in records] == ["A", "B", "C", "D", "E"]
    last = records[-1]["steps"]
    assert [len(record["steps"]) for record in records] == [1, 1, 1, 1, 1]
    assert last[0]["description"].endswith(
        "M3 drops from 11 to 10, M1 rises from 9 to 10, 2 moves more than without this step"
    )
    assert (last[0]["direct"], last[0]["moves"], len(last[0]["transfers"])) == (False, 2, 2)


def test_each_group_has_a_plot_of_transfers_and_loads(kassay, tmp_path):
    assert (
        kassay("explain", EXAMPLES, "--assignor", "sticky", "--plot", tmp_path / "why.svg").code
        == 0
    )
    names = ["why-2.svg", "why-3.svg", "why-4.svg", "why-5.svg", "why.svg"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    plot = (tmp_path / "why-5.svg").read_text()
    for text in ("M1", "M2", "M3", "T1-9", "T2-4", "before", "after", "step 1"):
        assert f">{text}<" in plot
    last = tmp_path / "last.jsonl"
    last.write_text(EXAMPLES.read_text().splitlines()[-1])
    kassay("explain", last, "--assignor", "sticky", "--plot", tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == plot


def test_the_plot_of_an_optimal_assignment_shows_that_it_is_optimal(kassay, tmp_path):
    group = {"id": "g", "topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}
    (tmp_path / "group.json").write_text(json.dumps(group))
    assert kassay("explain", tmp_path / "group.json", "--plot", tmp_path / "why.svg").code == 0
    assert "g: optimal" in (tmp_path / "why.svg").read_text()


def test_an_unsupported_plot_format_is_a_usage_error(kassay):
    done = kassay("explain", EXAMPLES, "--plot", "why.gif")
    assert done.code == 2
    assert "'why.gif'" in done.err


WEIGHTED = {
    "id": "w",
    "topics": {"t": {"partitions": 4, "weights": [6, 4, 1, 1]}},
    "members": [
        {"id": "a", "topics": ["t"], "owned": {"t": [0, 1]}},
        {"id": "b", "topics": ["t"], "owned": {"t": [2, 3]}},
    ],
}


def test_the_current_assignment_is_explained_if_members_own_partitions(kassay, write_groups):
    record = kassay("explain", write_groups(LOPSIDED_GROUP)).record
    assert (record["assignment"], record["optimal"], len(record["steps"])) == ("current", False, 2)


def test_the_own_assignor_is_explained_if_no_member_owns_a_partition(kassay, write_groups):
    members = [{"id": name, "topics": ["t", "u"]} for name in "ab"]
    group = {"id": "g", "topics": {"t": 1, "u": 1}, "members": members}
    ranged = kassay("explain", write_groups(group)).record
    assert (ranged["assignor"], ranged["optimal"]) == ("range", False)
    own = kassay("explain", write_groups(group | {"assignor": "roundrobin"})).record
    assert (own["assignor"], own["optimal"]) == ("roundrobin", True)


def test_an_uneven_weighted_assignment_with_equal_counts_is_not_optimal(kassay, write_groups):
    record = kassay("explain", write_groups(WEIGHTED)).record
    assert (record["optimal"], record["imbalance"]) == (False, {"value": 10, "bound": 6})
    (step,) = record["steps"]
    assert step["transfers"] == [{"partition": ["t", 1], "from": "a", "to": "b"}]
    assert step["loads"] == {"a": [10, 6], "b": [2, 6]}
    assert record["planned_movement"] == {"value": 1, "bound": 1}
    table = kassay("explain", write_groups(WEIGHTED), "--format", "table").out
    assert "a gives t-1 to b" in table
    assert "by sticky" not in table
    assert "by sticky" in kassay("explain", write_groups(LOPSIDED_GROUP), "--format", "table").out


def test_moves_above_their_bound_have_a_note_without_a_time_limit(
    kassay, write_groups, monkeypatch
):
    explain_weighted = command.explain_weighted

    def unproven(*arguments, **options):
        return replace(
            explain_weighted(*arguments, **options), planned=LevelValue("movement", 7, 4)
        )

    monkeypatch.setattr(command, "explain_weighted", unproven)
    table = kassay("explain", write_groups(WEIGHTED), "--format", "table").out
    note = "note: the steps make 7 moves; at least 4 are needed, so fewer moves may be possible"
    assert note in " ".join(table.replace("│", " ").split())


def test_a_balanced_weighted_assignment_is_optimal(kassay, write_groups):
    members = [WEIGHTED["members"][0] | {"owned": {"t": [0]}}]
    members += [WEIGHTED["members"][1] | {"owned": {"t": [1, 2, 3]}}]
    record = kassay("explain", write_groups(WEIGHTED | {"members": members})).record
    assert (record["optimal"], record["steps"]) == (True, [])
    assert (record["movement"], record["moved"]) == ({"value": 0, "bound": 0}, [])


def test_each_move_of_a_weighted_assignment_has_its_reason(kassay, write_groups, tmp_path):
    given = tmp_path / "assignment.json"
    given.write_text(json.dumps({"a": [["t", 0], ["t", 2]], "b": [["t", 1], ["t", 3]]}))
    path = write_groups(WEIGHTED)
    record = kassay("explain", path, "--assignment", given).record
    assert record["movement"] == {"value": 2, "bound": 1}
    assert [(move["partition"], move["unnecessary"]) for move in record["moved"]] == [
        (["t", 1], False),
        (["t", 2], True),
    ]
    table = kassay("explain", path, "--assignment", given, "--format", "table").out
    assert "unnecessary move of t-2 from b to a" in " ".join(table.replace("│", " ").split())


def named_client(library, *, owns):
    members = [{"id": name, "topics": ["t"], "library": library} for name in "ab"]
    if owns:
        members[0] |= {"owned": {"t": [0, 1, 2]}}
    return {"id": "g", "topics": {"t": 3}, "members": members, "assignor": "range"}


@pytest.mark.parametrize(("library", "is_noted"), [("java", False), ("sarama", True)])
def test_commands_state_that_a_port_is_not_of_the_library(kassay, write_groups, library, is_noted):
    note = "The group runs range of sarama. The results of range in this output are those of the"
    path = write_groups(named_client(library, owns=True))
    answer = kassay("what-if", path)
    assert (note in answer.message) is is_noted
    assert answer.record["own_assignor"]["is_ported"] is not is_noted
    current = kassay("explain", path).record
    assert (current["assignment"], "assignor" in current) == ("current", False)
    fresh = write_groups(named_client(library, owns=False))
    explained = kassay("explain", fresh).record
    assert (explained["assignor"], note in json.dumps(explained)) == ("range", is_noted)
    table = " ".join(kassay("explain", fresh, "--format", "table").out.replace("│", " ").split())
    assert ("note: The group runs range of sarama." in table) is is_noted
