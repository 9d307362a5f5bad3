"""Tables, graphs, figures and captures in notebooks."""

import json
import math
from pathlib import Path

import pytest

import kassay
from kassay import InputError, UsageError
from kassay.experiments.study.families.finite_families import NAMED_GROUPS

GROUP = NAMED_GROUPS["E"].group
CAPTURE = Path(__file__).parents[2] / "examples" / "captures" / "billing-roundrobin"


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (GROUP, GROUP.partition_count),
        (kassay.assign(GROUP, "sticky"), GROUP.partition_count),
        (kassay.solve(GROUP), 2),
        (kassay.compare(GROUP, "sticky"), 6),
        (kassay.frontier(GROUP), 2),
        (kassay.plan(GROUP), 2),
    ],
    ids=["group", "assignment", "solution", "comparison", "frontier", "plan"],
)
def test_each_result_has_a_data_frame(value, rows):
    assert len(kassay.to_frame(value)) == rows
    assert len(kassay.to_frame([value, value])) == 2 * rows


def test_the_frame_of_a_comparison_has_no_gap_of_moves_above_the_minimum_imbalance():
    frame = kassay.to_frame(kassay.compare(GROUP, "range")).set_index("measure")
    assert frame.gap["sum_of_squares"] > 0
    assert frame.optimum["movement"] == 2
    assert math.isnan(frame.gap["movement"])
    frame = kassay.to_frame(kassay.compare(GROUP, "range", levels=["makespan", "movement"]))
    assert list(frame.measure) == ["imbalance", "movement"]
    assert frame.gap.notna().all()


def test_the_weights_of_a_group_document_are_kept_unless_none_removes_them(tmp_path):
    topics = {"t": {"partitions": 2, "weights": [3, 4]}}
    path = tmp_path / "group.json"
    path.write_text(
        json.dumps({"id": "g", "topics": topics, "members": [{"id": "a", "topics": ["t"]}]})
    )
    for options, weights in (({}, (3, 4)), ({"weights": "none"}, None)):
        [group] = kassay.load_captures(path, **options)
        assert group.topics[0].weights == weights


@pytest.mark.parametrize("kind", ["frontier", "plan", "solution", "assignment"])
def test_a_plot_is_one_call_and_notebooks_show_it(kind, tmp_path):
    solution = kassay.solve(GROUP)
    value = {
        "frontier": lambda: kassay.frontier(GROUP),
        "plan": lambda: kassay.plan(GROUP),
        "solution": lambda: solution,
        "assignment": lambda: solution.assignment,
    }[kind]()
    drawing = kassay.plot(value, title="orders")
    assert "<svg" in drawing._repr_svg_()
    drawing.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_loads_without_weights_are_numbers_of_partitions():
    assert kassay.plot(kassay.solve(GROUP)).figure.axes[0].get_xlabel() == "partitions"


def test_captures_load_with_one_call():
    (group,) = kassay.load_captures(CAPTURE, subscriptions="equal")
    assert (group.id, len(group.members)) == ("billing-roundrobin", 4)
    with pytest.raises(InputError, match="no such file or directory"):
        kassay.load_captures(CAPTURE / "missing")


@pytest.mark.parametrize(
    "call",
    [
        kassay.solve,
        kassay.frontier,
        kassay.plan,
        lambda group: kassay.assign(group, "range"),
        lambda group: kassay.compare(group, "range"),
        lambda group: kassay.predict(group, "range"),
        lambda group: kassay.explain(group, kassay.Assignment({})),
    ],
)
def test_a_value_that_is_not_a_group_is_a_clear_error(call):
    with pytest.raises(UsageError, match="group must be a Group, got dict"):
        call({})
