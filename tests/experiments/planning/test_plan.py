import csv
import io
import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from kassay.experiments.planning import render_plan
from kassay.experiments.planning.plan import plan, plan_options
from kassay.experiments.planning.plan_verdict import quality_of
from kassay.experiments.planning.render_plan import (
    render_html,
    render_ticket,
    short_names,
)
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from kassay.reference import Group, Member, Topic
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import movement, violations
from kassay.reference.model.errors import UsageError
from kassay.reference.model.metrics import Measure, loads
from kassay.solver import MaxMoves
from kassay.solver.frontier import Frontier, FrontierPoint
from kassay.solver.objective import Imbalance, Movement, MovementCost
from kassay.solver.solution import LevelValue, Solution
from tests.strategies import groups

SCHEMA = json.loads((Path(render_plan.__file__).parent / "plan.schema.json").read_text())


@given(groups(weighted=True))
@settings(max_examples=settings.default.max_examples // 4)
def test_plan_documents_match_the_schema_and_the_metrics(group):
    result = plan(group, growth=[Fraction(1)])
    document = json.loads(json.dumps(render_plan.plan_document(result)))
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


def test_the_report_includes_assignors_that_do_not_terminate():
    result = plan(NAMED_GROUPS["D"].group)
    endings = {outcome.assignor: outcome.ending for outcome in result.assignor_outcomes}
    assert endings["sticky"] == "nonterminating"
    assert endings["range"] == "ok"
    assert "nonterminating" in render_html(result)


def test_more_traffic_needs_more_members():
    group = Group(
        topics=(Topic(name="t", partitions=12),),
        members=tuple(Member(id=name, subscription=("t",)) for name in "ab"),
    )
    rows = plan(group, growth=[Fraction(1), Fraction(3, 2), Fraction(2)]).growth_sizings
    assert [(row.makespan, row.sizing.needed.value) for row in rows] == [(6, 2), (4, 3), (3, 4)]


def test_a_group_without_an_assignment_has_no_plan():
    with pytest.raises(LookupError):
        plan(
            Group(
                topics=(Topic(name="t", partitions=1),),
                members=(Member(id="a", subscription=("t",), capacity=0),),
            )
        )


def test_the_levels_of_a_plan_must_include_movement():
    with pytest.raises(UsageError, match="must include movement, got makespan"):
        plan(NAMED_GROUPS["E"].group, levels="makespan")


def test_the_csv_and_json_files_agree_with_the_plan():
    result = plan(NAMED_GROUPS["D"].group, batch_size=3)
    rows = list(csv.DictReader(io.StringIO(render_plan.moves_csv(result))))
    assert len(rows) == len(result.moves)
    assert {row["batch"] for row in rows} == {str(n + 1) for n in range(len(result.batches))}
    table = list(csv.DictReader(io.StringIO(render_plan.loads_csv(result))))
    assert {row["member"]: int(row["planned load"]) for row in table} == result.planned.loads
    lists = render_plan.static_assignment(result)["members"]
    assert {m: sum(map(len, topics.values())) for m, topics in lists.items()} == (
        result.assignment.counts()
    )


def test_the_group_after_the_plan_is_optimal():
    result = plan(NAMED_GROUPS["D"].group)
    again = plan(parse_group(render_plan.group_after(result)))
    assert (again.moves, again.steps) == ((), ())
    assert "Nothing to do" in render_ticket(again)
    assert "Nothing to do" in render_html(again)


def test_the_page_loads_nothing_and_escapes_names():
    group = Group(
        id="<script>alert(1)</script>",
        topics=(Topic(name="t&", partitions=3),),
        members=(Member(id="<b>", subscription=("t&",), owned=[("t&", 0)]),),
    )
    page = render_html(plan(group))
    assert "<script>alert" not in page
    assert "<b>" not in page.replace("<b>0", "").replace("<b>1", "").replace("<b>3", "")
    assert "t&-1" not in page
    for loading in ("<link", "@import", 'src="http', "url(http"):
        assert loading not in page


def test_the_page_shows_notes_on_the_source():
    group = replace(NAMED_GROUPS["E"].group, notes=("subscriptions are not shown",))
    assert "Notes on the source: subscriptions are not shown." in render_html(plan(group))
    assert "Notes on the source" not in render_html(plan(NAMED_GROUPS["E"].group))


def test_sentences_and_the_page_show_the_unit_of_the_weights():
    topics = (Topic(name="t", partitions=3, weights=(5, 3, 2)),)
    members = (Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),)
    members = (*members, Member(id="b", subscription=("t",)))
    result = plan(Group(topics=topics, members=members, weight_unit="messages/s"))
    assert "maximum load from 10 to 5 messages/s" in render_ticket(result)
    page = render_html(result)
    assert "loads are sums of partition weights, in messages/s." in page
    assert "Loads are sums of weights, in messages/s." in page


def test_an_option_that_ignores_the_limit_on_moves_has_it_in_its_name():
    group = NAMED_GROUPS["D"].group
    label = "minimum imbalance without the limit on moves"
    limited = plan(group, constraints=[MaxMoves(1)])
    assert all(label in render(limited) for render in (render_html, render_ticket))
    assert "without the limit" not in render_html(plan(group))


def test_equal_plans_give_equal_pages():
    group = NAMED_GROUPS["D"].group
    assert render_html(plan(group)) == render_html(plan(group))


def _one_idle_member(partitions):
    owned = tuple(("t", number) for number in range(partitions))
    members = (
        Member(id="a", subscription=("t",), owned=owned),
        Member(id="b", subscription=("t",)),
    )
    return Group(topics=(Topic(name="t", partitions=partitions),), members=members)


@pytest.mark.parametrize(("partitions", "is_offered"), [(20, False), (22, True)])
def test_a_limit_of_ten_moves_is_offered_only_for_plans_with_more(partitions, is_offered):
    result = plan(_one_idle_member(partitions))
    for text in (render_ticket(result), render_html(result)):
        assert ("--max-moves 10" in text) is is_offered


def test_the_recommended_action_is_one_of_the_ways_to_carry_out_a_plan():
    page = render_html(plan(_one_idle_member(4)))
    assert "There are four ways" in page
    assert "Recommended: carry out the first action" in page
    assert "There are three ways" in render_html(plan(NAMED_GROUPS["E"].group))


def test_member_names_are_shortened_only_if_they_stay_unique():
    random = ("-00000000-0000-0000-0000-000000000001", "-00000000-0000-0000-0000-000000000002")
    ids = [f"a{random[0]}", f"b{random[0]}", f"b{random[1]}", "c"]
    members = [Member(id=id, subscription=()) for id in ids]
    assert list(short_names(members).values()) == ["a", ids[1], ids[2], "c"]


def test_a_member_name_that_is_a_formula_is_text_in_the_csv_files():
    owned = (("@t", 0), ("@t", 1))
    members = (
        Member(id="=1+1", subscription=("@t",), owned=owned, generation=1),
        Member(id="b", subscription=("@t",), generation=1),
    )
    result = plan(Group(topics=(Topic(name="@t", partitions=2),), members=members))
    (move,) = csv.DictReader(io.StringIO(render_plan.moves_csv(result)))
    assert (move["topic"], move["from"], move["to"]) == ("'@t", "'=1+1", "b")
    rows = csv.DictReader(io.StringIO(render_plan.loads_csv(result)))
    assert [row["member"] for row in rows] == ["'=1+1", "b"]
    assert render_plan.plan_document(result)["current"]["loads"] == {"=1+1": 2, "b": 0}


def test_the_progress_names_the_parts_of_a_plan():
    names: list[str] = []
    plan(NAMED_GROUPS["E"].group, progress=names.append)
    assert {"members for growing traffic", "results of Kafka's assignors"} <= set(names)


def test_the_distance_to_the_minimum_is_rounded_up():
    makespan = LevelValue("makespan", 9_567_120, 9_500_000)  # 0.7065 %
    assert quality_of(makespan) == "that is at most 0.8% above the minimum"


@pytest.mark.parametrize(("complete", "bound"), [(True, 12), (False, 8)])
def test_the_bound_of_an_option_holds_for_all_its_moves(complete, bound):
    group = NAMED_GROUPS["E"].group
    found = plan(group)
    values = [(0, 20), (1, 12), (30, 8)]
    points = tuple(
        FrontierPoint(
            LevelValue("movement", moves, moves),
            LevelValue("makespan", value, value),
            found.assignment,
        )
        for moves, value in values
    )
    best = Solution(
        assignment=found.assignment,
        levels=(points[-1].imbalance, points[-1].movement),
        method="cp-sat",
    )
    options = plan_options(group, best, best, Frontier(Measure.MAKESPAN, points, complete))
    assert [option.name for option in options] == ["plan", "at most ten moves"]
    assert (options[1].imbalance.value, options[1].imbalance.bound) == (12, bound)


@pytest.mark.parametrize("moves", [Movement(MovementCost.WEIGHT), Movement({}, other=0)])
def test_the_frontier_of_a_plan_counts_moves_whatever_their_cost(moves):
    topic = Topic("t", 4, weights=(1, 2, 3, 4))
    owned = [("t", number) for number in range(4)]
    group = Group((topic,), (Member("a", ("t",), owned=owned), Member("b", ("t",))))
    levels = (Imbalance(Measure.SUM_OF_SQUARES), moves)
    points = plan(group, levels=levels, limits=10).frontier.points
    found = [(one.movement.value, one.imbalance.value) for one in points]
    assert found == [(0, 100), (1, 52), (2, 50)]
    for one in points:
        assert movement(group, one.assignment) == one.movement.value
