import csv
import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from kassay import Group, MaxMoves, Member, Topic
from kassay.experiments import planning
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plans import (
    PAGE,
    TICKET,
    loads_csv,
    moves_csv,
    plan_document,
    render_plan,
    static_assignment,
)
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.model.assignment import movement, rejoin, violations
from kassay.reference.model.load_metrics import Measure, loads
from kassay.solver.objective import Imbalance, Movement, MovementCost
from tests.notation import changed
from tests.notation import group as small_group
from tests.strategies import groups

SCHEMA = json.loads((Path(planning.__file__).parent / "plan.schema.json").read_text())


@given(groups(weighted=True))
@settings(max_examples=settings.default.max_examples // 4)
def test_plan_documents_match_the_schema_and_the_metrics(group):
    result = plan(group)
    document = json.loads(json.dumps(plan_document(result)))
    jsonschema.validate(document, SCHEMA)
    assert not list(violations(group, result.assignment))
    assert document["planned"]["loads"] == loads(group, result.assignment)
    assert document["movement"] == movement(group, result.assignment)
    assert document["makespan"]["bound"] <= document["makespan"]["value"]
    assert document["makespan"]["value"] == max(document["planned"]["loads"].values(), default=0)


def test_the_plan_of_group_e_has_one_chain_of_two_moves():
    result = plan(NAMED_GROUPS["E"].group)
    assert (result.movement, result.current.makespan, result.planned.makespan) == (2, 11, 10)
    assert len(result.steps) == 1
    assert len(result.steps[0].moves) == 2


@pytest.mark.parametrize(("most", "makespan"), [(0, 40), (10, 30), (14, 26), (15, 25)])
def test_a_limit_on_moves_bounds_the_maximum_load_of_equal_weights(most, makespan):
    topics = tuple(Topic(name=f"t{number}", partitions=5) for number in range(20))
    names = tuple(topic.name for topic in topics)
    numbers = {"a": (0, 1), "b": (2,), "c": (3,), "d": (4,)}
    members = tuple(
        Member(id=id, subscription=names, owned=tuple(product(names, kept)))
        for id, kept in numbers.items()
    )
    found = plan(Group(topics=topics, members=members), constraints=(MaxMoves(most),))
    assert (found.makespan.value, found.makespan.bound) == (makespan, makespan)


def test_a_group_without_an_assignment_has_no_plan():
    with pytest.raises(LookupError):
        plan(changed(small_group("t:1", a="t"), a={"capacity": 0}))


def test_the_csv_and_json_files_agree_with_the_plan():
    result = plan(NAMED_GROUPS["D"].group, batch_size=3)
    rows = list(csv.DictReader(io.StringIO(moves_csv(result))))
    assert len(rows) == len(result.moves)
    assert {row["batch"] for row in rows} == {str(n + 1) for n in range(len(result.batches))}
    table = list(csv.DictReader(io.StringIO(loads_csv(result))))
    assert {row["member"]: int(row["planned load"]) for row in table} == result.planned.loads
    lists = static_assignment(result)["members"]
    assert {m: sum(map(len, topics.values())) for m, topics in lists.items()} == (
        result.assignment.counts()
    )


def test_the_group_after_the_plan_is_optimal():
    result = plan(NAMED_GROUPS["D"].group)
    again = plan(rejoin(result.group, result.assignment))
    assert (again.moves, again.steps) == ((), ())
    assert "No moves" in render_plan(again, TICKET)
    assert "No moves" in render_plan(again, PAGE)


def test_the_page_loads_nothing_and_escapes_names():
    group = Group(
        id="<script>alert(1)</script>",
        topics=(Topic(name="t&", partitions=3),),
        members=(Member(id="<b>", subscription=("t&",), owned=[("t&", 0)]),),
    )
    page = render_plan(plan(group), PAGE)
    assert "<script>alert" not in page
    assert "<b>" not in page.replace("<b>0", "").replace("<b>1", "").replace("<b>3", "")
    assert "t&-1" not in page
    for loading in ("<link", "@import", 'src="http', "url(http"):
        assert loading not in page


def test_sentences_and_the_page_show_the_unit_of_the_weights():
    group = small_group("t:5,3,2", a="t | t-0..2", b="t")
    result = plan(replace(group, weight_unit="messages/s"))
    assert "maximum load from 10 to 5 messages/s" in render_plan(result, TICKET)
    page = render_plan(result, PAGE)
    assert "loads are sums of partition weights, in messages/s." in page
    assert "Loads are sums of weights, in messages/s." in page


def test_a_member_name_that_is_a_formula_is_text_in_the_csv_files():
    members = (Member("=1+1", ("@t",), owned=[("@t", 0), ("@t", 1)]), Member("b", ("@t",)))
    result = plan(Group((Topic("@t", 2),), members))
    (move,) = csv.DictReader(io.StringIO(moves_csv(result)))
    assert (move["topic"], move["from"], move["to"]) == ("'@t", "'=1+1", "b")
    rows = csv.DictReader(io.StringIO(loads_csv(result)))
    assert [row["member"] for row in rows] == ["'=1+1", "b"]
    assert plan_document(result)["current"]["loads"] == {"=1+1": 2, "b": 0}


@pytest.mark.parametrize("moves", [Movement(MovementCost.WEIGHT), Movement({}, other=0)])
def test_the_frontier_of_a_plan_counts_moves_whatever_their_cost(moves):
    group = small_group("t:1,2,3,4", a="t | t-0..3", b="t")
    levels = (Imbalance(Measure.SUM_OF_SQUARES), moves)
    points = plan(group, levels=levels, limits=10).frontier.points
    found = [(one.movement.value, one.imbalance.value) for one in points]
    assert found == [(0, 100), (1, 52), (2, 50)]
    for one in points:
        assert movement(group, one.assignment) == one.movement.value
