"""Plans for groups with several windows: moves and loads are those of the peak."""

import json
from dataclasses import replace
from random import Random

import jsonschema
import pytest

import kassay
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import PlanArguments, verdict
from kassay.experiments.planning.render_plans import PAGE, TEXT, render_plan, write_plan
from kassay.experiments.planning.scale import scale
from kassay.experiments.planning.window_plan_check import Peak
from kassay.experiments.prediction.predict import partition_weights
from kassay.experiments.sources.build_group import ImportOptions, with_weights
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import load_weights
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, GroupStatus, Member, Protocol, Topic, Windows
from kassay.reference.model.load_metrics import Measure, measures
from kassay.solver.capacity_planning import Resizing, load_by_member_count
from kassay.solver.constraints import MaxMoves
from kassay.solver.limits import SearchLimits
from tests.experiments.planning.test_plan import SCHEMA


def hourly_group(members: int = 3, windows: int = 24) -> Group:
    """Return a group with 12 partitions, owned in order, and random weights per hour."""
    rng, size = Random(0), 12 // members
    rows = tuple(tuple(round(rng.expovariate(0.01)) for _ in range(windows)) for _ in range(12))
    owners = (
        Member(f"m{at}", ("t",), owned=[("t", size * at + n) for n in range(size)], generation=1)
        for at in range(members)
    )
    return Group((Topic("t", 12, profiles=rows),), tuple(owners), windows=Windows(seconds=3_600))


@pytest.fixture(scope="module")
def hourly():
    return plan(hourly_group(), limits=SearchLimits(work=4))


def test_the_moves_end_at_the_planned_peak(hourly):
    peak = measures(hourly.group, hourly.assignment)[Measure.MAKESPAN]
    assert hourly.planned.makespan == hourly.makespan.value == peak < hourly.current.makespan
    assert hourly.batches[-1].makespan == peak
    assert hourly.steps[-1].makespan[1] == peak


def test_a_page_shows_the_peaks(hourly):
    page = render_plan(hourly, PAGE, arguments=PlanArguments())
    assert f"{hourly.current.makespan} → {hourly.planned.makespan}" in page.replace("&rarr;", "→")


@pytest.mark.parametrize("capacities", [None, (100, 300, 200)])
def test_predictions_have_the_peaks_of_scale(capacities):
    rows = ((90, 5, 5), (5, 60, 5), (5, 5, 80), (40, 20, 5), (5, 30, 10), (10, 10, 10))
    topics = (Topic("t", 6, profiles=rows), Topic("u", 2))
    status = GroupStatus(state="Stable", assignor="range", protocol=Protocol.CLASSIC)
    plain = Group(
        topics,
        tuple(Member(f"m{n}", ("t", "u")) for n in range(3)),
        windows=Windows(names=("a", "b", "c"), capacities=capacities),
    )
    group = replace(rejoin(plain, assign(plain, "range"), generation=1), status=status)
    steps = kassay.scale(group, first=2, last=4).steps
    for step in steps:
        found = kassay.predict(group, events=kassay.ScaleTo(members=step.members), samples=2)
        assert found.events[0].maximum_load.values == (step.assignor, step.assignor)
    assert kassay.predict(group, samples=2).events[0].maximum_load.mean == steps[1].assignor
    found = plan(group, limits=SearchLimits(work=4))
    for action in found.actions:
        assert action.predicted_load in (None, action.metrics.makespan)
    text = render_plan(found, TEXT, arguments=PlanArguments())
    sentence = "Loads are divided by the capacity of their window, and multiplied by 600"
    assert (sentence in text) == (capacities is not None)


def test_the_subscription_of_new_members_of_an_empty_group_is_not_known():
    with pytest.raises(InputError, match="has no members"):
        kassay.scale(Group((Topic("t", 6),), ()))


def test_a_new_partition_has_the_mean_of_each_window():
    group = hourly_group(windows=2)
    rows = group.topics[0].profiles
    means = tuple(-(-sum(column) // 12) for column in zip(*rows, strict=True))
    assert partition_weights(group, "t", 12) == means
    assert partition_weights(group, "new", 0) == tuple(
        round(sum(one) / 12) for one in zip(*rows, strict=True)
    )


def two_days(second: tuple[int, ...]) -> Group:
    """Return a group of two members; the second day has the hourly weights of other partitions."""
    shape = tuple(20 if hour == 8 else 1 for hour in range(24))
    rows = tuple(
        tuple((1 + 9 * (at < 2)) * one for one in shape)
        + tuple((1 + 9 * (at in second)) * one for one in shape)
        for at in range(4)
    )
    members = (
        Member("a", ("t",), owned=[("t", 0), ("t", 1)], generation=1),
        Member("b", ("t",), owned=[("t", 2), ("t", 3)], generation=1),
    )
    return Group((Topic("t", 4, profiles=rows),), members, windows=Windows(seconds=3_600))


def test_a_plan_that_holds_on_the_last_day_is_recommended():
    found = plan(two_days((0, 1)))
    test = found.windows.hold_out
    assert (test.planned, test.tested, test.is_better) == ("day 1", "day 2", True)
    assert [(one.assignment, one.planned, one.tested) for one in test.ratios] == [
        ("plan", 1.0, 1.0),
        ("current assignment", 1.8182, 1.8182),
        ("range", 1.8182, 1.8182),
    ]
    assert found.windows.current == Peak("a", "9", 400)
    dates = [(one.dates, one.moves, one.ratio) for one in found.windows.replanning]
    assert dates[:2] == [("never", 0, 1.8182), ("once", 2, 1.0)]
    assert dates[-1] == ("once, in hindsight", 2, 1.0)
    assert verdict(found).endswith("current assignment 1.82, range 1.82.")


def test_a_plan_that_fails_on_the_last_day_recommends_nothing(tmp_path):
    group = two_days((0, 3))
    found = plan(group, constraints=[MaxMoves(1)])
    assert found.moves
    assert verdict(found).startswith("Not recommended: a plan of day 1 does not lower the peak")
    assert (found.cause, found.actions) == (None, ())
    text = render_plan(found, TEXT, directory=None)
    assert "\nTo do: Nothing.\n" in text
    assert "gives" not in text
    write_plan(found, tmp_path)
    document = json.loads((tmp_path / "plan.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert document["windows"]["hold_out"]["is_better"] is False


def test_the_page_and_the_text_draw_loads_by_time_of_the_day():
    found = plan(two_days((0, 1)))
    page = render_plan(found, PAGE)
    # The current load of one member exceeds the planned maximum in one hour of the day.
    assert page.count('<rect class="hot"') == 1
    assert page.count('fill-opacity="1"') == 1
    assert "Hold-out: a plan of day 1, tested in day 2" in page
    text = render_plan(found, TEXT, directory=None)
    assert "a  ▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  220" in text


def test_a_cycle_requires_two_cycles_of_windows():
    with pytest.raises(UsageError, match="the group has 48 windows of 3,600 seconds"):
        plan(two_days((0, 1)), cycle=604_800)


def test_the_number_of_members_has_headroom_for_the_growth_in_the_last_cycle():
    rows = [[10] * 24 + [15] * 24] * 12
    topic = Topic("t", 12, profiles=tuple(map(tuple, rows)))
    windows = Windows(seconds=3_600)
    needed = scale(Group((topic,), (Member("m", ("t",)),), windows=windows), maximum_load=60).needed
    assert (needed.optimum.value, needed.headroom, needed.with_headroom.value) == (3, 1.5, 6)
    assert needed.record()["with_headroom"] == {"value": 6, "bound": 6}


def test_loads_by_number_of_members_are_peaks():
    group = hourly_group()
    found = load_by_member_count(Resizing.of(group), range(1, 2))
    totals = [sum(column) for column in zip(*group.topics[0].profiles, strict=True)]
    assert found[1].value == max(totals)


def test_files_of_weights_have_one_integer_per_window(tmp_path):
    path = tmp_path / "weights.json"
    path.write_text('{"t": [[1, 5], [4, 2]]}')
    options = ImportOptions(weight_table=load_weights(path))
    group = Group((Topic("t", 2, weights=(7, 7)),), (Member("m", ("t",)),))
    assert with_weights(group, options).topics[0].profiles == ((1, 5), (4, 2))
    path.write_text('{"t": [[1, 5], [4, -2]]}')
    with pytest.raises(InputError, match="weights must be at least 0, got -2"):
        load_weights(path)
