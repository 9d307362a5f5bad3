import pytest

from tests.experiments.cli.conftest import LOPSIDED_GROUP


@pytest.fixture
def run(kassay, write_groups):
    def frontier(*options, groups=(LOPSIDED_GROUP,)):
        return kassay("frontier", write_groups(*groups), *options)

    return frontier


def test_each_point_has_bounds_and_loads(run):
    done = run()
    record = done.record
    assert done.code == 0
    assert list(record) == ["id", "measure", "complete", "points"]
    assert record["complete"]
    assert [(p["moves"], p["imbalance"]) for p in record["points"]] == [(0, 16), (1, 10), (2, 8)]
    assert record["points"][1] == {
        "moves": 1,
        "imbalance": 10,
        "bound": {"moves": 1, "imbalance": 10},
        "proven": True,
        "loads": {"a": 3, "b": 1},
    }


def test_each_group_has_a_reproducible_plot(run, tmp_path):
    file = tmp_path / "f.svg"
    run("--plot", file, groups=[LOPSIDED_GROUP, {**LOPSIDED_GROUP, "id": "h"}])
    once = file.read_text()
    assert "partitions moved" in once
    assert (tmp_path / "f-2.svg").exists()
    run("--plot", file)
    assert file.read_text() == once


def test_an_unsupported_plot_format_is_a_usage_error(run):
    done = run("--plot", "f.gif")
    assert (done.code, done.out) == (2, "")
    assert "f.gif" in done.err


def test_an_infeasible_group_gives_exit_code_1(run):
    members = [{**member, "capacity": 1} for member in LOPSIDED_GROUP["members"]]
    done = run(groups=[{**LOPSIDED_GROUP, "members": members}])
    assert (done.code, done.record["points"]) == (1, [])
    assert done.record["conflict"]


def test_the_table_has_one_row_per_point(run):
    assert run("--format", "table").out.count("sum_of_squares") == 3
