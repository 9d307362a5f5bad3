"""Hosts, speeds, joined groups and the order of levels on the command line."""

import json

import pytest

from tests.stored_cases import stored_cases

ORDERS = stored_cases("groups")["orders"]
MAIL = stored_cases("groups")["mail"]
PODS = ("--hosts", "(pod-[a-z])")
BY_HOST = ("--level", "hosts", "--level", "imbalance")


@pytest.fixture
def groups(write_groups):
    return write_groups(ORDERS, MAIL)


@pytest.fixture
def write_json(tmp_path):
    def write(document) -> str:
        path = tmp_path / "table.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)

    return write


def hosts(done) -> list[str | None]:
    return [member.get("host") for member in done.record["members"]]


def test_hosts_come_from_a_pattern_the_client_id_or_a_file(kassay, write_groups, write_json):
    file = write_groups(ORDERS)
    assert hosts(kassay("import", file, *PODS)) == ["pod-a", "pod-a", "pod-b"]
    assert hosts(kassay("import", file, "--hosts", "client-id"))[0] == "pod-a-1"
    table = write_json({"o1": "x", "pod-a-2": "y", "o3": "x"})
    assert hosts(kassay("import", file, "--hosts", table)) == ["x", "y", "x"]


def test_speeds_are_integers_or_measured_rates_of_members_or_hosts(
    kassay, write_groups, write_json
):
    file = write_groups(ORDERS)
    exact = kassay("import", file, "--speeds", write_json({"o1": 2, "o2": 3, "o3": 3}))
    assert [member["speed"] for member in exact.record["members"]] == [2, 3, 3]
    rates = write_json({"pod-a": 812.5, "pod-b": 1625.0})
    measured = kassay("import", file, *PODS, "--speeds", rates)
    speeds = [member["speed"] for member in measured.record["members"]]
    assert speeds == [50, 50, 100]


def test_levels_are_solved_in_the_given_order_with_proof(kassay, write_groups, tmp_path):
    file = write_groups(ORDERS)
    order = ("--level", "movement=+1", "--level", "hosts", "--level", "imbalance")
    solution = kassay("solve", file, *PODS, *order, "--certificate")
    assert list(solution.record["proof"]) == ["movement", "host_sum_of_squares", "imbalance"]
    assert solution.record["movement"]["value"] == 1
    path = tmp_path / "solution.json"
    path.write_text(solution.out, encoding="utf-8")
    checked = kassay("verify", file, *PODS, *order, "--assignment", path).record
    assert (checked["certificate"], checked["optimal"]) == ("valid", True)
    claims = [claim["level"] for claim in solution.record["certificate"]["claims"]]
    assert claims == ["movement", "host_sum_of_squares", "sum_of_squares"]


def test_hosts_come_first_if_they_are_the_first_level(kassay, write_groups):
    done = kassay("solve", write_groups(ORDERS), *PODS, *BY_HOST)
    assert list(done.record["proof"]) == ["host_sum_of_squares", "imbalance", "movement"]
    assert done.record["loads"] == {"o1": 2, "o2": 2, "o3": 2}


def test_groups_on_shared_hosts_are_balanced_together(kassay, groups):
    apart = kassay("solve", groups, *PODS, *BY_HOST).records
    together = kassay("solve", groups, *PODS, *BY_HOST, "--together").record
    assert together["id"] == "orders+mail"
    # Pod a has three of five members: 3 * (5 * 5 / 3 + 4 * 4 / 2) for the speeds 3 and 2.
    assert together["host_sum_of_squares"] == {"value": 49, "bound": 49}
    pods = {"pod-a": 0, "pod-b": 0}
    for member, load in together["loads"].items():
        pods["pod-b" if member in ("orders/o3", "mail/m2") else "pod-a"] += load
    assert sorted(pods.values()) == [4, 5]
    assert len(apart) == 2


def test_assignors_run_for_each_of_the_joined_groups(kassay, groups):
    options = ("--assignor", "roundrobin", "--max-moves", "1")
    together = kassay("compare", groups, "--together", *options).record
    moves = [
        one["comparisons"][0]["levels"]["movement"]["value"]
        for one in kassay("compare", groups, *options).records
    ]
    (comparison,) = together["comparisons"]
    assert comparison["levels"]["movement"]["value"] == sum(moves)
    assert comparison["violated"] == ["at most 1 partition moves"]


def test_colocation_can_be_a_level(kassay, write_groups):
    group = stored_cases("groups")["topics to colocate"]
    options = ("--colocate", "a,b", "--level", "colocation")
    first = kassay("solve", write_groups(group), *options, "--level", "movement").record
    assert (first["colocation"]["value"], first["movement"]["value"]) == (0, 2)
    last = kassay("solve", write_groups(group), "--level", "movement", *options).record
    assert (last["colocation"]["value"], last["movement"]["value"]) == (2, 0)


def test_a_plan_shows_all_levels_and_relative_loads(kassay, write_groups, tmp_path):
    group = json.loads(json.dumps(ORDERS))
    group["members"][2]["speed"] = 2
    file = write_groups(group)
    plan = kassay("plan", file, *PODS, *BY_HOST, "-o", tmp_path / "plan").record
    assert list(plan["proof"]) == ["host_makespan", "imbalance", "movement"]
    assert plan["makespan"] == {"current": 6, "planned": 4}


def test_further_commands_have_the_options_of_the_plan_that_they_take(kassay, groups):
    options = (*PODS, *BY_HOST, "--level", "topic_spread", "--group", "orders")
    done = kassay("plan", groups, *options, "--format", "text")
    commands = [line.strip() for line in done.out.splitlines() if line.startswith("  kassay")]
    levels = "--level hosts --level imbalance --level topic_spread"
    shared = f"{groups} --hosts '(pod-[a-z])' --group orders"
    assert commands == [
        f"kassay plan {shared} {levels} -o plan",
        f"kassay forecast {shared} --current range --format table",
        f"kassay forecast {shared} --members +0..+2 --format table",
    ]
