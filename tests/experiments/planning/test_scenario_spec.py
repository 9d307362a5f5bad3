import json

import pytest

from kassay.experiments.planning.what_if import named_changes, scenarios, what_if
from kassay.reference import Group, InputError, Member, Topic
from kassay.reference.model.errors import UsageError

GROUP = Group(
    id="g",
    topics=(Topic(name="t", partitions=4, weights=(1, 2, 3, 4)),),
    members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=())),
)


def _names(**options):
    return [one.name for one in scenarios(GROUP, named_changes(**options))]


def test_member_counts_are_absolute_relative_or_ranges():
    assert _names(members="3") == ["3 members"]
    assert _names(members="+1,-1") == ["members +1", "members -1"]
    assert _names(members="2..8:3") == ["2 members", "5 members", "8 members"]
    assert _names(members="+0..+1") == ["members +0", "members +1"]


def test_all_changes_apply_together(tmp_path):
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({"t": [1, 1, 1, 1, 1, 1]}))
    changes = named_changes(partitions=("t=6",), members="+2", like="a", weights=weights)
    [scenario] = scenarios(GROUP, changes)
    result = what_if(scenario, before=GROUP)
    record = result.record()
    assert (record["members"], record["partitions"], result.makespan.value) == (3, 6, 2)
    assert result.scenario.name == "t 6 partitions, members +2, weights weights.json"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partitions": ("t",)}, "--partitions must be TOPIC=COUNT, got 't'"),
        ({"partitions": ("t=x",)}, "got 't=x'"),
        ({"members": "few"}, "got 'few'"),
        ({"members": "5..2"}, "must not be closer to 0 than the first, got '5..2'"),
        ({"members": "2..9:0"}, "the step of a range must be above 0"),
        ({"members": "+1..3"}, "got '\\+1..3'"),
    ],
)
def test_invalid_options_are_quoted_in_the_error(options, message):
    with pytest.raises(UsageError, match=message):
        named_changes(**options)


@pytest.mark.parametrize("text", ["[", "[1]", '{"t": 1}', '{"t": [true]}', '{"t": [-1]}'])
def test_invalid_files_of_weights_are_rejected(tmp_path, text):
    file = tmp_path / "w.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"w\.json"):
        named_changes(weights=file)
