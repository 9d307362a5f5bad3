import json

import pytest

from kassay.experiments.cli import main
from kassay.experiments.study.families.named_groups import NAMED_GROUPS
from kassay.reference.documents.json_codec import group_document


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "groups.jsonl"
    documents = (group_document(NAMED_GROUPS[name].group) for name in "CD")
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as leaving:
        main(["compare", *map(str, arguments)])
    out, err = capsys.readouterr()
    return leaving.value.code, out, err


def test_each_group_gives_a_line_with_the_optimum_and_every_assignor_asked_for(capsys, file):
    code, out, _ = run(capsys, file, "--assignor", "sticky", "--assignor", "range")
    one, two = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert (one["id"], two["id"]) == ("C", "D")
    assert one["optimum"] == {
        "status": "optimal",
        "measure": "sum_of_squares",
        "imbalance": 6,
        "movement": 1,
        "loads": [2, 1, 1],
    }
    sticky, range_ = one["comparisons"]
    assert (sticky["assignor"], range_["assignor"]) == ("sticky", "range")
    assert sticky["movement"] == {"greedy": 2, "optimum": 1, "gap": 1}
    assert sticky["unnecessary_moves"] == 1
    assert sticky["sum_of_squares"] == {"greedy": 6, "optimum": 6, "gap": 0}


def test_an_assignor_that_never_ends_is_told_and_has_no_figures(capsys, file):
    _, out, _ = run(capsys, file, "--assignor", "sticky")
    (entry,) = json.loads(out.splitlines()[1])["comparisons"]
    assert entry["ending"] == "nonterminating"
    assert "sum_of_squares" not in entry
    assert "unnecessary_moves" not in entry


def test_every_assignor_is_compared_unless_some_are_named(capsys, file):
    _, out, _ = run(capsys, file)
    names = [entry["assignor"] for entry in json.loads(out.splitlines()[0])["comparisons"]]
    assert {"range", "roundrobin", "sticky", "cooperative-sticky", "uniform"} <= set(names)


def test_the_table_has_a_verdict_for_each(capsys, file):
    code, out, _ = run(
        capsys, file, "--assignor", "sticky", "--assignor", "range", "--format", "table"
    )
    assert code == 0
    verdicts = {
        (cells[0], cells[1]): cells[-1]
        for line in out.splitlines()
        if line.startswith("│")
        for cells in [[cell.strip() for cell in line.strip("│").split("│")]]
    }
    assert verdicts[("C", "sticky")] == "moves too much"
    assert verdicts[("C", "range")] == "misses the optimum"
    assert verdicts[("D", "sticky")].startswith("nonterminating")


def test_an_unknown_assignor_is_a_usage_error_that_names_those_there_are(capsys, file):
    code, out, err = run(capsys, file, "--assignor", "stikcy")
    assert (code, out) == (2, "")
    assert "stikcy" in err
    assert "cooperative-sticky" in err
