import json

import pytest

from kassay.experiments.planning.what_if_options import ScenarioSpec
from kassay.experiments.planning.what_if_scenarios import scenarios, what_if
from kassay.reference import Group, InputError, Member, Topic

GROUP = Group(
    id="g",
    topics=(Topic(name="t", partitions=4, weights=(1, 2, 3, 4)),),
    members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=())),
)


def _names(**words):
    return [one.name for one in scenarios(GROUP, ScenarioSpec(**words).alternatives())]


def test_no_wish_is_the_group_as_it_is():
    assert _names() == ["today"]


def test_sizes_are_absolute_relative_or_swept():
    assert _names(members="3") == ["3 members"]
    assert _names(members="+1,-1") == ["members +1", "members -1"]
    assert _names(members="2..8:3") == ["2 members", "5 members", "8 members"]
    assert _names(members="+0..+1") == ["members +0", "members +1"]


def test_sweeps_are_combined():
    assert _names(members="1..2", growth="1,1.5") == [
        "1 members, growth 1",
        "1 members, growth 1.5",
        "2 members, growth 1",
        "2 members, growth 1.5",
    ]


def test_all_changes_apply_together(tmp_path):
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({"t": [1, 1, 1, 1, 1, 1]}))
    wishes = ScenarioSpec(
        partitions=("t=6",),
        subscriptions=("b=t",),
        members="3",
        like="a",
        weights=weights,
        growth="2",
        capacity=4,
    )
    [scenario] = scenarios(GROUP, wishes.alternatives())
    found = what_if(scenario, before=GROUP)
    assert (found.members, found.partitions, found.makespan.value) == (3, 6, 4)
    assert found.scenario.name == (
        "t 6 partitions, b reads t, 3 members, weights weights.json, growth 2, capacity 4"
    )


def test_topics_that_nobody_reads_any_more_are_named():
    [scenario] = scenarios(GROUP, ScenarioSpec(without=("a",)).alternatives())
    assert what_if(scenario, before=GROUP).unserved == ("t",)


def test_a_capacity_that_cannot_be_met_is_a_result():
    [scenario] = scenarios(GROUP, ScenarioSpec(capacity=3).alternatives())
    found = what_if(scenario, before=GROUP)
    assert (str(found.status), found.makespan, found.movement) == ("infeasible", None, None)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"partitions": ("t",)}, "--partitions wants TOPIC=COUNT, got 't'"),
        ({"partitions": ("t=x",)}, "got 't=x'"),
        ({"subscriptions": ("b",)}, "--subscribe wants MEMBER=TOPIC, got 'b'"),
        ({"members": "few"}, "got 'few'"),
        ({"members": "5..2"}, "no number is in '5..2'"),
        ({"members": "2..9:0"}, "no number is in '2..9:0'"),
        ({"members": "+1..3"}, "got '\\+1..3'"),
        ({"growth": "x"}, "--growth wants a factor like 1.5, got 'x'"),
        ({"growth": "1/0"}, "got '1/0'"),
    ],
)
def test_what_cannot_be_read_is_named(words, complaint):
    with pytest.raises(InputError, match=complaint):
        ScenarioSpec(**words).alternatives()


@pytest.mark.parametrize("text", ["[", "[1]", '{"t": 1}', '{"t": [true]}', '{"t": [-1]}'])
def test_weights_that_are_none_are_refused(tmp_path, text):
    file = tmp_path / "w.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"w\.json"):
        ScenarioSpec(weights=file).alternatives()
