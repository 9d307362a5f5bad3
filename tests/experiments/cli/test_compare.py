import json

import pytest

from kassay.experiments.study.families.finite_families import NAMED_GROUPS
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


def test_a_line_below_the_table_defines_unnecessary_moves(kassay, file):
    shown = kassay("compare", file, "--assignor", "sticky", "--format", "table").out.splitlines()
    assert shown[-1].startswith("unnecessary: moves minus the fewest with equal or lower imbalance")


def test_the_failing_assignor_of_the_group_comes_first(kassay, file):
    document = json.loads(file.read_text().splitlines()[1])
    file.write_text(json.dumps({**document, "assignor": "sticky", "protocol": "classic"}))
    done = kassay("compare", file, "--assignor", "range", "--assignor", "sticky")
    assert [one["assignor"] for one in done.record["comparisons"]] == ["sticky", "range"]
    assert "the group's own assignor sticky: nonterminating" in done.err


def test_an_assignor_that_does_not_terminate_has_no_imbalance(kassay, file):
    (entry,) = kassay("compare", file, "--assignor", "sticky").records[1]["comparisons"]
    assert entry["ending"] == "nonterminating"
    assert "sum_of_squares" not in entry
    assert "unnecessary_moves" not in entry


def test_all_assignors_are_compared_by_default(kassay, file):
    comparisons = kassay("compare", file).records[0]["comparisons"]
    names = [entry["assignor"] for entry in comparisons]
    assert {"range", "roundrobin", "sticky", "cooperative-sticky", "uniform"} <= set(names)
