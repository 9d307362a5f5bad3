"""Plans of a weighted group: few moves, options with bounds, and a consistent explanation."""

import random
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.weighted_groups import weighted_group
from kassay import Group, Member, Topic
from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plans import PAGE, TEXT, TICKET, plan_document, render_plan
from kassay.reference.documents.json_codec import load_group
from kassay.reference.model.assignment import movement
from kassay.reference.model.load_metrics import loads
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.problem import build_problem
from tests.log_normal_groups import log_normal_group
from tests.notation import group

GROUP = log_normal_group()


@pytest.fixture(scope="module")
def result():
    return plan(GROUP, limits=CaseLimits(time=6))


def test_the_default_plan_has_few_moves_and_reaches_the_tolerance(result):
    assert result.movement <= 25
    # The 2% refer to the best maximum load found, which is at least its lower bound.
    best = result.optimum.imbalance
    assert result.planned.makespan <= best.value * 102 // 100
    minimum = makespan_bound(build_problem(GROUP))
    assert minimum <= best.bound <= best.value <= minimum * 101 // 100
    assert result.current.makespan > minimum * 3 // 2


def test_the_options_are_the_plan_ten_moves_and_the_lowest_imbalance_with_bounds(result):
    options = {option.name: option for option in result.options}
    balanced = result.options[-1]
    is_proven = balanced.imbalance.gap == 0
    name = "minimum imbalance" if is_proven else "lowest imbalance found"
    assert list(options) == ["plan", "at most ten moves", name]
    assert options["at most ten moves"].movement.value <= 10
    for option in options.values():
        assert option.imbalance.bound <= option.imbalance.value == option.metrics.makespan
        assert option.movement.bound <= option.movement.value
        assert movement(GROUP, option.assignment) == option.movement.value
    assert balanced.imbalance.value <= options["plan"].imbalance.value


def test_each_prefix_of_the_list_of_moves_is_close_to_the_frontier(result):
    frontier = [(p.movement.value, p.imbalance.value) for p in result.frontier.points]
    assert len(frontier) >= 8
    before = result.current.makespan
    for moves, batch in enumerate(result.batches, 1):
        assert batch.makespan <= before
        before = batch.makespan
        lowest = min(imbalance for number, imbalance in frontier if number <= moves)
        assert batch.makespan <= lowest * 12 // 10


def test_no_prefix_of_the_list_of_moves_is_below_the_frontier():
    rng = random.Random(3)
    weights = [int(3000 * 0.95**rank) + 3 for rank in range(90)]
    rng.shuffle(weights)
    owners = [rng.choice([0, 0, 0, 1, rng.randrange(6)]) for _ in weights]
    found = plan(weighted_group(weights, owners, 6), limits=2.0)
    points = [(point.movement.value, point.imbalance.value) for point in found.frontier.points]
    assert len(found.batches) > 10
    for moves, batch in enumerate(found.batches, 1):
        assert min(load for number, load in points if number <= moves) <= batch.makespan


def test_explanation_and_moves_agree_partition_by_partition(result):
    listed = [move for batch in result.batches for move in batch.moves]
    explained = [move for step in result.steps for move in step.moves]
    assert explained == listed
    assert Counter(explained) == Counter(result.moves)
    assert result.steps[0].makespan[0] == result.current.makespan
    assert result.steps[-1].makespan[1] == result.planned.makespan
    assert loads(GROUP, result.assignment) == result.planned.loads


def test_a_switch_of_the_assignor_is_the_first_action_if_it_is_effective():
    result = plan(group("t:2 u:2", a="t u | t-0..1 u-0..1", b="t u @1"))
    actions = plan_document(result)["actions"]
    assert "switch the assignor to" in actions[0]["action"]
    assert actions[0]["action"].endswith(
        "(2 moves in one rebalance, maximum load 2; 1 rolling restart, with further moves)"
    )
    assert (actions[0]["maximum_load"], actions[0]["moves"]) == (2, 2)
    for text in (render_plan(result, TEXT, directory="out"), render_plan(result, TICKET)):
        assert "cause further rebalances and moves: kassay forecast --current NAME compares" in text
        # Only commands that work as printed are listed.
        assert "ASSIGNOR" not in text
        assert "improves the group so that" not in text


def test_names_in_the_ticket_cannot_break_out_of_the_markdown():
    members = (Member("a`b|c", ("t",), owned=[("t", 0), ("t", 1)]), Member("<script>", ("t",)))
    ticket = render_plan(plan(Group((Topic("t", 2),), members, id="# [x](y)")), TICKET)
    assert "# Rebalance \\# \\[x\\](y)" in ticket
    assert "``a`b\\|c``" in ticket
    assert "`<script>`" in ticket


HEAVY = load_group(Path(__file__).parents[2] / "data" / "group_with_one_heavy_partition.json")


@pytest.fixture(scope="module")
def final():
    return plan(HEAVY, limits=30)


def test_the_plan_has_the_proven_values(final):
    assert final.movement == 26
    assert 9_308 <= final.planned.makespan <= 9_152 * 102 // 100
    assert movement(HEAVY, final.assignment) == 26
    assert final.solution.movement.is_proven
    assert final.frontier.complete


def test_the_options_are_points_of_the_frontier(final):
    options = {option.name: option for option in final.options}
    points = {point.movement.value: point.imbalance for point in final.frontier.points}
    assert points[1].value == 11_245
    for name, moves, load in (("at most ten moves", 10, 9_938), ("minimum imbalance", 32, 9_152)):
        option = options[name]
        assert (option.movement.value, option.imbalance.value) == (moves, load)
        assert points[moves].value == load == points[moves].bound
    assert options["plan"].movement.value == 26


def test_the_least_loaded_members_receive_the_partitions(final):
    mean = sum(final.planned.loads.values()) / len(final.planned.loads)
    receivers = {move.target for move in final.moves}
    assert all(final.planned.loads[member] <= 1.5 * mean for member in receivers)
    assert [level.name for level in final.levels] == ["makespan", "movement", "sum_of_squares"]
    lightest = sorted(final.current.loads, key=final.current.loads.get)[: len(receivers)]
    assert receivers == set(lightest)


def test_page_ticket_summary_and_json_state_the_reason(final):
    reason = "partition big-204 alone carries 9,152, 15% of the traffic and 1.8 times the mean load"
    assert reason in render_plan(final, PAGE)
    assert reason in render_plan(final, TEXT, directory="out")
    assert reason in render_plan(final, TICKET).replace("\\", "")
    assert plan_document(final)["limiting_partition"]["reason"].startswith(reason)
