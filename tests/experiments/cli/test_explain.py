import json
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples" / "groups.jsonl"


def test_the_example_groups_have_one_chain_each(kassay):
    done = kassay("explain", EXAMPLES)
    records = done.records
    assert done.code == 0
    assert [record["id"] for record in records] == ["A", "B", "C", "D", "E"]
    last = records[-1]["steps"]
    assert [len(record["steps"]) for record in records] == [1, 1, 1, 1, 1]
    assert last[0]["description"].endswith(
        "M3 drops from 11 to 10, M1 rises from 9 to 10, two more owned partitions move"
    )
    assert (last[0]["direct"], last[0]["moves"], len(last[0]["transfers"])) == (False, 2, 2)


def test_each_group_has_a_plot_of_transfers_and_loads(kassay, tmp_path):
    assert kassay("explain", EXAMPLES, "--plot", tmp_path / "why.svg").code == 0
    names = ["why-2.svg", "why-3.svg", "why-4.svg", "why-5.svg", "why.svg"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    plot = (tmp_path / "why-5.svg").read_text()
    for text in ("M1", "M2", "M3", "T1-9", "T2-4", "before", "after", "step 1"):
        assert f">{text}<" in plot
    kassay("explain", EXAMPLES, "--plot", tmp_path / "again.svg")
    assert (tmp_path / "again-5.svg").read_text() == plot


def test_the_plot_of_an_optimal_assignment_shows_that_it_is_optimal(kassay, tmp_path):
    group = {"id": "g", "topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"]}]}
    (tmp_path / "group.json").write_text(json.dumps(group))
    assert kassay("explain", tmp_path / "group.json", "--plot", tmp_path / "why.svg").code == 0
    assert "g: optimal" in (tmp_path / "why.svg").read_text()


def test_an_unsupported_plot_format_is_a_usage_error(kassay):
    done = kassay("explain", EXAMPLES, "--plot", "why.gif")
    assert done.code == 2
    assert "'why.gif'" in done.err
