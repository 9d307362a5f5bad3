import pytest

from kassay.experiments.comparison import compare_assignors as command
from kassay.experiments.comparison.optimum import solve_optimum
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from kassay.reference.documents.json_codec import group_document


@pytest.fixture
def file(write_groups):
    return write_groups(*(group_document(NAMED_GROUPS[name].group) for name in "CD"))


def test_each_group_gives_the_optimum_and_the_selected_assignors(kassay, file):
    done = kassay("compare", file, "--assignor", "sticky", "--assignor", "range")
    one, two = done.records
    assert done.code == 0
    assert (one["id"], two["id"]) == ("C", "D")
    assert one["optimum"] == {
        "status": "optimal",
        "measure": "sum_of_squares",
        "imbalance": 6,
        "imbalance_bound": 6,
        "movement": 1,
        "loads": [2, 1, 1],
    }
    sticky, range_ = one["comparisons"]
    assert (sticky["assignor"], range_["assignor"]) == ("sticky", "range")
    assert sticky["movement"] == {"value": 2, "optimum": 1, "gap": 1}
    assert sticky["unnecessary_moves"] == 1
    assert sticky["sum_of_squares"] == {"value": 6, "optimum": 6, "gap": 0}


def test_an_assignor_that_does_not_terminate_has_no_imbalance(kassay, file):
    (entry,) = kassay("compare", file, "--assignor", "sticky").records[1]["comparisons"]
    assert entry["ending"] == "nonterminating"
    assert "sum_of_squares" not in entry
    assert "unnecessary_moves" not in entry


def test_all_assignors_are_compared_by_default(kassay, file):
    comparisons = kassay("compare", file).records[0]["comparisons"]
    names = [entry["assignor"] for entry in comparisons]
    assert {"range", "roundrobin", "sticky", "cooperative-sticky", "uniform"} <= set(names)


def test_the_table_has_one_row_per_assignor(kassay, file):
    options = ("--assignor", "sticky", "--assignor", "range", "--format", "table")
    done = kassay("compare", file, *options)
    assert done.code == 0
    results = {
        (cells[0], cells[1]): cells[-1]
        for line in done.out.splitlines()
        if line.startswith("│")
        for cells in [[cell.strip() for cell in line.strip("│").split("│")]]
    }
    assert results[("C", "sticky")] == "unnecessary moves"
    assert results[("C", "range")] == "imbalance not optimal"
    assert results[("D", "sticky")].startswith("nonterminating")


def test_the_table_names_the_measure_of_weighted_groups(kassay, file, write_groups):
    options = ("--assignor", "range", "--format", "table")
    assert "measure" not in kassay("compare", file, *options).out
    topics = {"t": {"partitions": 3, "weights": [9, 5, 3]}}
    members = [{"id": name, "topics": ["t"]} for name in "ab"]
    weighted = write_groups({"id": "w", "topics": topics, "members": members})
    assert "maximum load" in kassay("compare", weighted, *options).out


def test_an_unknown_assignor_is_a_usage_error_with_the_choices(kassay, file):
    done = kassay("compare", file, "--assignor", "stikcy")
    assert (done.code, done.out) == (2, "")
    assert "unknown assignor 'stikcy'" in done.message
    assert "cooperative-sticky" in done.message


@pytest.mark.parametrize(("assignor", "share"), [("sticky", 1 / 15), ("range", 1 / 2)])
def test_the_fewest_moves_are_searched_shortly_if_all_assignors_miss_the_makespan(
    kassay, write_groups, monkeypatch, assignor, share
):
    work = []

    def recorded(group, **options):
        work.append(options["limits"].work)
        return solve_optimum(group, **options)

    monkeypatch.setattr(command, "solve_optimum", recorded)
    # Range gives 9 to one member and 5 + 3 to the other; sticky keeps 9 + 5.
    weights, owned = [9, 5, 3], ({"t": [0, 1]}, {"t": [2]})
    members = [
        {"id": id, "topics": [*"tu"], "owned": own} for id, own in zip("ab", owned, strict=True)
    ]
    topics = {"t": {"partitions": 3, "weights": weights}}
    if assignor == "range":
        topics["t"]["weights"] = [4, 5, 9]
    path = write_groups({"id": "w", "topics": topics | {"u": 1}, "members": members})
    record = kassay("compare", path, "--assignor", assignor, "--work", 30).record
    assert record["comparisons"][0]["unnecessary_moves"] == 0
    assert [one <= 30 * share for one in work] == [True]
    assert [one > 30 * share / 2 for one in work] == [True]
