"""Plan of a group with one heavy partition: proven points, least loaded receivers, reason."""

from pathlib import Path

import pytest

from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plan import (
    plan_document,
    render_html,
    render_summary,
    render_ticket,
)
from kassay.reference.documents.json_codec import load_group
from kassay.reference.model.assignment import movement

GROUP = load_group(Path(__file__).parents[2] / "data" / "group_with_one_heavy_partition.json")


@pytest.fixture(scope="module")
def final():
    return plan(GROUP, limits=30)


def test_the_plan_has_the_proven_values(final):
    assert final.movement == 26
    assert 9_308 <= final.planned.makespan <= 9_152 * 102 // 100
    assert movement(GROUP, final.assignment) == 26
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
    assert reason in render_html(final)
    assert reason in render_summary(final, directory="out")
    assert reason in render_ticket(final).replace("\\", "")
    assert plan_document(final)["limiting_partition"]["reason"].startswith(reason)
