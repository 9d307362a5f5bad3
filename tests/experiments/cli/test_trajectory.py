import json

import pytest

from kassay.reference.documents.json_codec import parse_assignment, parse_group
from kassay.solver.certificate.check import trajectory_errors
from kassay.solver.certificate.documents import parse_trajectory_certificate


def group(*names, partitions=4):
    members = [{"id": name, "topics": ["t"]} for name in names]
    return {"topics": {"t": partitions}, "members": members}


STREAM = [group("a", "b"), group("a"), group("a", "b")]


@pytest.fixture
def run(kassay, tmp_path):
    def trajectory(*options, text):
        file = tmp_path / "stream.json"
        file.write_text(text)
        return kassay("trajectory", file, *options)

    return trajectory


@pytest.mark.parametrize(
    "text",
    [json.dumps(STREAM, indent=1), "\n".join(map(json.dumps, STREAM))],
    ids=["array", "lines"],
)
def test_arrays_and_lines_give_the_same_result(run, text):
    done = run(text=text)
    assert done.code == 0
    assert done.record["moves"] == {"value": 2, "bound": 2}
    assert done.record["per_rebalance"] == [0, 0, 2]
    assert done.record["partition_seconds_without_owner"]["cooperative"] == 2 * 3.5
    assert done.record["one_after_the_other"] == {"moves": 2, "per_rebalance": [0, 0, 2]}
    loads = [[*map(len, one.values())] for one in done.record["assignments"]]
    assert loads == [[2, 2], [4], [2, 2]]


@pytest.mark.parametrize("share", ["0.5", "50%"])
def test_a_tolerance_of_the_maximum_load_saves_moves(run, share):
    record = run("--imbalance", "makespan", "--tolerance", share, text=json.dumps(STREAM)).record
    assert record["moves"] == {"value": 1, "bound": 1}


@pytest.mark.parametrize(("limit", "moves"), [(0, 2), (2, 2), (3, 1), (4, 0)])
def test_a_limit_on_the_maximum_load_saves_moves(run, limit, moves):
    record = run("--maximum-load", limit, "--certificate", text=json.dumps(STREAM)).record
    assert record["moves"] == {"value": moves, "bound": moves}
    assignments = [parse_assignment(one) for one in record["assignments"]]
    certificate = parse_trajectory_certificate(record["certificate"])
    groups = [parse_group(one) for one in STREAM]
    assert [*trajectory_errors(groups, assignments, certificate)] == []


def test_weights_limit_the_maximum_load_of_each_rebalance(run):
    topics = {"t": {"partitions": 4, "weights": [5, 3, 3, 1]}}
    record = run(text=json.dumps([{**one, "topics": topics} for one in STREAM])).record
    assert record["load_limits"] == [{"value": limit, "bound": limit} for limit in (6, 12, 6)]
    assert record["moves"] == {"value": 2, "bound": 2}


def test_the_largest_number_of_moves_is_minimised(run):
    stream = [group("a", partitions=8), *(group("a", "b", partitions=8),) * 3]
    tolerant = ("--objective", "largest", "--tolerance", "1")
    record = run("--certificate", *tolerant, text=json.dumps(stream)).record
    assert record["largest"] == {"value": 0, "bound": 0}
    record = run("--objective", "largest", text=json.dumps(stream)).record
    assert (record["largest"], record["moves"]["value"]) == ({"value": 4, "bound": 4}, 4)


def test_a_missing_proof_gives_exit_code_1(run):
    done = run("--require-optimal", "--time-limit", "0", text=json.dumps(STREAM))
    assert (done.code, done.record["moves"]) == (1, {"value": 2, "bound": 0})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no group"),
        ("[]", "contains no group"),
        ("[1]", "stream.json[0]: expected an object"),
        (json.dumps([group("a"), group("a", partitions=-1)]), "stream.json[1]: topics['t']"),
        (json.dumps(group("a")) + "\n{", "stream.json:2"),
        (
            json.dumps([{**group("a"), "topics": {"t": {"partitions": 2, "weights": [1, 2**44]}}}]),
            "groups[0]: the total load must be below",
        ),
    ],
)
def test_bad_input_gives_exit_code_2(run, text, message):
    done = run(text=text)
    assert done.code == 2
    assert message in done.err
