"""Plans for groups with several windows: moves and loads are those of the peak."""

from random import Random

import pytest

from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import PlanArguments
from kassay.experiments.planning.render_plan import render_html
from kassay.experiments.sources.build_group import ImportOptions, with_weights
from kassay.reference.documents.json_codec import load_weights
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, Topic, Windows
from kassay.reference.model.metrics import Measure, measures
from kassay.solver.limits import SearchLimits
from kassay.solver.sizing import Resizing, load_by_member_count


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
    page = render_html(hourly, arguments=PlanArguments())
    assert f"{hourly.current.makespan} → {hourly.planned.makespan}" in page.replace("&rarr;", "→")


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
