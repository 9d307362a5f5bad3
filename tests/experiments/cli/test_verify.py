import json
import subprocess
import sys

import pytest

GROUP = {
    "id": "g",
    "topics": {"t": 4, "u": 1},
    "members": [
        {"id": "a", "topics": ["t", "u"], "owned": {"t": [0, 1, 2, 3]}},
        {"id": "b", "topics": ["t"]},
    ],
}
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
    assert {level["origin"] for level in record["levels"]} == {"prices"}


@pytest.mark.parametrize("method", ["auto", "cp-sat"])
@pytest.mark.parametrize(
    ("tamper", "message"),
    [
        (lambda d: d["assignment"].update(a=[["u", 0]]), "is not assigned"),
        (
            lambda d: d.update(
                assignment={"a": [["t", 2], ["u", 0]], "b": [["t", 0], ["t", 1], ["t", 3]]}
            ),
            "movement is 3, not 2",
        ),
        (lambda d: d["movement"].update(bound=1), "movement: the bound"),
        (lambda d: d["movement"].update(value=1), "movement: the document has value 1, expected 2"),
        (lambda d: d["imbalance"].update(bound=14), "imbalance: the bound 14 is above"),
        (lambda d: d["imbalance"].update(bound="13"), "must be an integer"),
        (lambda d: d.update(movement=2), "movement: must be an object with value and bound, got 2"),
        (lambda d: d["loads"].update(a=9), "loads: the document has"),
        (
            lambda d: d["certificate"]["claims"][0].update(bound=12),
            "the bound 12 on sum_of_squares",
        ),
        (lambda d: d["certificate"]["claims"][1].update(bound=3), "the bound 3 on movement"),
        (lambda d: d["certificate"]["topics"].update(t=[5, 9]), "topic 't' at member"),
        (lambda d: d["certificate"]["members"].update(b=[9, 0]), "member 'b': price (9, 0)"),
        (lambda d: d["certificate"]["members"].pop("b"), "member 'b' has no price"),
    ],
)
def test_every_changed_value_is_rejected(solved, verify, method, tamper, message):
    answer = solved(GROUP, "--method", method)
    tamper(answer)
    code, record, _ = verify(GROUP, answer)
    assert code == 1
    assert message in json.dumps(record, ensure_ascii=False)
    assert record.get("optimal") is None


def test_a_changed_bound_of_a_weighted_result_is_rejected(solved, verify):
    answer = solved(WEIGHTED)
    assert verify(WEIGHTED, answer)[0] == 0
    for change in (1, -1):
        forged = json.loads(json.dumps(answer))
        forged["imbalance"]["bound"] += change
        assert verify(WEIGHTED, forged)[0] == 1
        forged["certificate"]["claims"][0]["bound"] += change
        assert verify(WEIGHTED, forged)[0] == 1


def test_bounds_that_only_a_solver_can_check_are_listed_as_trusted(solved, verify):
    answer = solved(WEIGHTED, "--imbalance", "sum_of_squares")
    claim = answer["certificate"]["claims"][0]
    claim["origin"] = "cp-sat"
    code, record, _ = verify(WEIGHTED, answer)
    assert (code, record["optimal"], record["trusted"]) == (0, None, ["sum_of_squares"])
    assert verify(WEIGHTED, answer, "--require-optimal")[0] == 1


def test_an_assignment_that_is_not_optimal_has_an_improvement(verify):
    code, record, _ = verify(GROUP, {"a": [["t", n] for n in range(4)] + [["u", 0]]})
    assert (code, record["optimal"]) == (0, False)
    assert record["improvement"] == ["a gives t-0 to b"]
    assert verify(GROUP, {"a": [["t", n] for n in range(4)] + [["u", 0]]}, "--require-optimal")[0]


def test_a_document_without_an_assignment_gives_exit_code_1(solved, verify):
    answer = solved(GROUP, "--max-partitions", "1")
    code, record, _ = verify(GROUP, answer)
    assert (code, record) == (
        1,
        {"id": "g", "valid": None, "reason": "the document has no assignment"},
    )


def test_an_assignment_above_a_capacity_is_rejected_with_a_reason(verify):
    small = GROUP | {"members": [GROUP["members"][0] | {"capacity": 2}, GROUP["members"][1]]}
    code, record, _ = verify(small, {"a": [["t", n] for n in range(4)] + [["u", 0]]})
    assert (code, record["valid"], record["optimal"]) == (1, True, None)
    assert "the load of 'a' is at most 2" in record["reason"]


def test_an_old_certificate_version_is_an_error(solved, verify):
    answer = solved(GROUP)
    answer["certificate"]["version"] = 1
    code, _, err = verify(GROUP, answer)
    assert code == 2
    assert "certificate: version must be 3, got 1" in err


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
