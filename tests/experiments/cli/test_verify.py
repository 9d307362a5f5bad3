import json
import subprocess
import sys
from functools import reduce
from operator import getitem

import pytest

from tests.stored_cases import stored_cases

GROUP = stored_cases("groups")["one member of two topics"]
WEIGHTED = GROUP | {"topics": {"t": {"partitions": 4, "weights": [7, 5, 4, 3]}, "u": 1}}


@pytest.fixture
def verify(kassay, tmp_path):
    def run(group, answer, *options):
        (tmp_path / "group.json").write_text(json.dumps(group))
        (tmp_path / "answer.json").write_text(json.dumps(answer))
        done = kassay(
            "verify", tmp_path / "group.json", "--assignment", tmp_path / "answer.json", *options
        )
        return done.code, done.record if done.out else None, done.err

    return run


@pytest.fixture
def solved(kassay, tmp_path):
    def run(group, *options):
        path = tmp_path / "solved.json"
        path.write_text(json.dumps(group))
        return kassay("solve", path, "--certificate", *options).record

    return run


def test_assignments_of_solve_are_valid(solved, verify):
    code, record, _ = verify(GROUP, solved(GROUP), "--require-optimal")
    assert code == 0
    assert (record["certificate"], record["optimal"]) == ("valid", True)
    assert {level["origin"] for level in record["levels"]} == {"node_prices"}


@pytest.mark.parametrize(("path", "value", "message"), stored_cases("changed_solutions"))
def test_every_changed_value_is_rejected(solved, verify, path, value, message):
    answer = solved(GROUP)
    *outer, key = path
    changed = reduce(getitem, outer, answer)
    if value is None:
        del changed[key]
    else:
        changed[key] = value
    code, record, _ = verify(GROUP, answer)
    assert code == 1
    assert message in json.dumps(record, ensure_ascii=False)
    assert record.get("optimal") is None


def test_bounds_that_only_a_solver_can_check_do_not_make_an_assignment_optimal(solved, verify):
    answer = solved(WEIGHTED, "--imbalance", "sum_of_squares")
    answer["certificate"]["claims"][0]["origin"] = "cp-sat"
    asked = ("--imbalance", "sum_of_squares")
    code, record, _ = verify(WEIGHTED, answer, *asked)
    assert (code, record["optimal"]) == (1, None)
    assert record["errors"][-1].startswith("proof: the document has {'imbalance': 'proven by cert")
    answer["proof"]["imbalance"] = "proven by CP-SAT"
    code, record, _ = verify(WEIGHTED, answer, *asked)
    assert (code, record["optimal"], record["proof"]) == (0, None, answer["proof"])
    assert verify(WEIGHTED, answer, *asked, "--require-optimal")[0] == 1


@pytest.mark.parametrize(("options", "difference"), stored_cases("objectives_of_other_documents"))
def test_the_objective_of_the_document_must_be_the_one_asked_for(
    solved, verify, options, difference
):
    plain = solved(GROUP)
    other = solved(GROUP, *options)
    assert verify(GROUP, plain)[0] == 0
    assert verify(GROUP, other, *options)[0] == 0
    for answer, asked in ((plain, options), (other, ())):
        code, record, _ = verify(GROUP, answer, *asked)
        assert (code, record["optimal"]) == (1, None)
        assert record["certificate"] == "other options"
        [error] = record["errors"]
        assert error.startswith(f"{difference}: the document has")
        assert "[" not in error


def test_the_error_about_another_tolerance_names_the_option(kassay, solved, verify, tmp_path):
    answer = solved(WEIGHTED, "--tolerance", "0")
    code, record, _ = verify(WEIGHTED, answer)
    assert (code, record["certificate"], record["optimal"]) == (1, "other options", None)
    [error] = record["errors"]
    assert "mean makespan (tolerance 2%), movement, sum_of_squares; repeat" in error
    assert error.endswith(": --tolerance 0%")
    files = (tmp_path / "group.json", "--assignment", tmp_path / "answer.json")
    assert error in kassay("verify", *files, "--format", "table").err
    record = verify(WEIGHTED, answer, "--tolerance", "0%")[1]
    assert (record["certificate"], record["optimal"]) == ("valid", True)
    shown = {"measure": record["measure"], "value": record["imbalance"]}
    assert shown | {"bound": 10} == answer["imbalance"]


def test_a_document_about_another_group_is_rejected(solved, verify):
    answer = solved(GROUP)
    other = GROUP | {"members": [GROUP["members"][0], GROUP["members"][1] | {"rack": "r"}]}
    code, record, _ = verify(other, answer)
    assert (code, record["optimal"]) == (1, None)
    assert "fingerprint: the document is about another group" in record["errors"][0]
    del answer["fingerprint"]
    code, record, _ = verify(GROUP, answer)
    assert (code, record["optimal"]) == (1, None)
    assert "no fingerprint of its group" in record["errors"][0]


def test_documents_without_an_id_are_found_by_their_fingerprint(kassay, write_groups, tmp_path):
    groups = [{key: GROUP[key] for key in ("topics", "members")} for _ in range(2)]
    groups[1] = groups[1] | {"topics": {"t": 4, "u": 2}}
    path = write_groups(*groups)
    answers = kassay("solve", path, "--certificate").records
    assert answers[0]["fingerprint"] != answers[1]["fingerprint"]
    swapped = tmp_path / "answers.jsonl"
    swapped.write_text("".join(json.dumps(answer) + "\n" for answer in answers[::-1]))
    done = kassay("verify", path, "--assignment", swapped)
    assert [record["optimal"] for record in done.records] == [True, True]


def test_an_error_line_fails_only_its_own_group(kassay, tmp_path):
    path = tmp_path / "groups.jsonl"
    broken = GROUP | {"id": "broken", "topics": {"t": -1}}
    path.write_text("".join(json.dumps(g) + "\n" for g in (broken, GROUP, GROUP | {"id": "h"})))
    solved = kassay("solve", path, "--certificate")
    assert solved.code == 2
    records = solved.records
    records[2]["certificate"]["version"] = 1
    lines = [json.dumps(record) + "\n" for record in records]
    (tmp_path / "answers.jsonl").write_text("".join(lines))
    done = kassay("verify", path, "--assignment", tmp_path / "answers.jsonl")
    assert done.code == 2
    assert [record.get("optimal") for record in done.records] == [None, True, None]
    assert "version must be 4, got 1" in done.records[2]["error"]
    path.write_text(json.dumps(GROUP | {"id": "broken"}) + "\n")
    done = kassay("verify", path, "--assignment", tmp_path / "answers.jsonl")
    assert "the document reports an error" in done.record["error"]


def forged(answer, **changes):
    copy = json.loads(json.dumps(answer))
    copy["certificate"].update(changes)
    return copy


def test_bounds_of_documents_without_a_certificate_are_not_believed(kassay, write_groups, verify):
    apart = {"a": [["t", 0], ["u", 0]], "b": [["t", 1], ["t", 2], ["t", 3]]}
    answer = {
        "id": "g",
        "status": "optimal",
        "imbalance": {"measure": "makespan", "value": 12, "bound": 12},
        "movement": {"value": 3, "bound": 3},
        "assignment": apart,
    }
    code, record, _ = verify(WEIGHTED, answer)
    assert (code, record["optimal"]) == (0, None)
    assert set(record["proof"].values()) == {"not proven"}
    assert record["unproven"] == [
        "makespan: the bound 12 is above the proven bound 10",
        "movement: the bound 3 is above the proven bound 1",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        {"constraint": "pinned", "topic": "gone", "partition": 0, "member": "a"},
        {"constraint": "forbidden", "topic": "t", "member": "unknown"},
        {"constraint": "max_partitions", "limit": -1},
    ],
)
def test_a_constraint_that_the_group_cannot_have_is_an_input_error(solved, verify, rule):
    answer = forged(solved(GROUP), constraints=[rule])
    code, record, err = verify(GROUP, answer)
    assert code == 2
    assert "constraint" in record["error"]
    assert "Traceback" not in err


def test_an_assignment_that_is_not_optimal_has_an_improvement(verify):
    code, record, _ = verify(GROUP, {"a": [["t", n] for n in range(4)] + [["u", 0]]})
    assert (code, record["optimal"]) == (0, False)
    assert record["improvement"] == ["a gives t-0 to b"]
    assert verify(GROUP, {"a": [["t", n] for n in range(4)] + [["u", 0]]}, "--require-optimal")[0]


def test_a_conflict_is_checked_without_a_solver(solved, verify):
    asked = ("--max-partitions", "2", "--max-moves", "3")
    answer = solved(GROUP, *asked)
    assert answer["status"] == "infeasible"
    code, record, _ = verify(GROUP, answer, *asked)
    assert (code, record["infeasible"]) == (0, True)
    assert record["proof"] == answer["proof"] == {"conflict": "proven by certificate"}
    assert record["conflict"] == ["every member has at most 2 partitions"]
    assert verify(GROUP, answer, *asked, "--require-optimal")[0] == 1
    assert verify(GROUP, answer)[0] == 1
    answer["certificate"]["conflict"]["constraints"] = [{"constraint": "max_moves", "limit": 3}]
    code, record, _ = verify(GROUP, answer, *asked)
    assert (code, record["infeasible"]) == (1, None)
    assert "the conflict is not proven" in record["errors"][0]


def test_verification_loads_no_solver(solved, tmp_path):
    (tmp_path / "group.json").write_text(json.dumps(GROUP))
    (tmp_path / "answer.json").write_text(json.dumps(solved(GROUP)))
    script = (
        "import sys\ncode = 0\n"
        "from kassay.experiments.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as exit_:\n    code = exit_.code or 0\n"
        "found = [name for name in sys.modules if name.split('.')[0] == 'ortools']\n"
        "sys.exit(99 if found else code)\n"
    )
    files = [tmp_path / "group.json", "--assignment", tmp_path / "answer.json"]
    done = subprocess.run(
        [sys.executable, "-c", script, "verify", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["optimal"] is True
