import csv
import io
import json
from base64 import b64decode
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

from kassay.experiments import planning
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_files import (
    group_after,
    loads_csv,
    moves_csv,
    plan_document,
    static_assignment,
    sticky_seed,
)
from kassay.experiments.planning.plan_page import render_html, render_ticket, short_names
from kassay.experiments.study.families.named_groups import NAMED_GROUPS
from kassay.reference import Group, Member, Topic
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.assignment import violations
from kassay.reference.model.metrics import loads, movement
from kassay.reference.protocol.consumer_protocol import decode_sticky_user_data
from tests.strategies import groups

SCHEMA = json.loads((Path(planning.__file__).parent / "plan.schema.json").read_text())


@given(groups(weighted=True))
@settings(max_examples=25, deadline=None)
def test_every_plan_is_valid_and_says_what_it_does(group):
    found = plan(group, growth=[Fraction(1)], points=4)
    document = json.loads(json.dumps(plan_document(found)))
    jsonschema.validate(document, SCHEMA)
    assert not list(violations(group, found.assignment))
    assert document["then"]["loads"] == loads(group, found.assignment)
    assert document["moved"] == movement(group, found.assignment)
    assert document["makespan"]["bound"] <= document["makespan"]["value"]
    assert document["makespan"]["value"] == max(document["then"]["loads"].values(), default=0)


def test_group_e_moves_two_partitions_along_one_chain():
    found = plan(NAMED_GROUPS["E"].group)
    assert (found.moved, found.today.makespan, found.then.makespan) == (2, 11, 10)
    assert len(found.reasons) == 1
    assert len(found.reasons[0].transfers) == 2


def test_an_assignor_that_never_ends_is_a_line_of_the_report():
    found = plan(NAMED_GROUPS["D"].group)
    endings = {one.assignor: one.ending for one in found.alternatives}
    assert endings["sticky"] == "nonterminating"
    assert endings["range"] == "ok"
    assert "nonterminating" in render_html(found)


def test_members_grow_with_the_traffic():
    group = Group(
        topics=(Topic(name="t", partitions=12),),
        members=tuple(Member(id=name, subscription=("t",)) for name in "ab"),
    )
    needs = plan(group, growth=[Fraction(1), Fraction(3, 2), Fraction(2)]).needs
    assert [(need.makespan, need.sizing.needed.value) for need in needs] == [(6, 2), (4, 3), (3, 4)]


def test_a_group_without_members_has_no_plan():
    with pytest.raises(LookupError):
        plan(
            Group(
                topics=(Topic(name="t", partitions=1),),
                members=(Member(id="a", subscription=("t",), capacity=0),),
            )
        )


def test_files_agree_with_the_plan():
    found = plan(NAMED_GROUPS["D"].group, batch=3)
    rows = list(csv.DictReader(io.StringIO(moves_csv(found))))
    assert len(rows) == len(found.moves)
    assert {row["batch"] for row in rows} == {str(n + 1) for n in range(len(found.batches))}
    table = list(csv.DictReader(io.StringIO(loads_csv(found))))
    assert {row["member"]: int(row["load then"]) for row in table} == found.then.loads
    lists = static_assignment(found)["members"]
    assert {m: sum(map(len, topics.values())) for m, topics in lists.items()} == (
        found.assignment.loads()
    )


def test_the_group_after_the_plan_has_nothing_left_to_do():
    found = plan(NAMED_GROUPS["D"].group)
    again = plan(parse_group(group_after(found)))
    assert (again.moves, again.reasons) == ((), ())
    assert "Nothing to do" in render_ticket(again)
    assert "Nothing to do" in render_html(again)


@pytest.mark.parametrize("name", "BDE")
def test_the_sticky_seed_holds_the_plan_and_a_newer_generation_than_any(name):
    group = NAMED_GROUPS[name].group
    found = plan(group)
    seed = sticky_seed(found)
    told = {
        member: decode_sticky_user_data(b64decode(data, validate=True))
        for member, data in seed["members"].items()
    }
    assert {member: set(memory.partitions) for member, memory in told.items()} == {
        member: set(partitions) for member, partitions in found.assignment.items()
    }
    assert {memory.generation for memory in told.values()} == {seed["generation"]}
    assert seed["generation"] > max(member.generation for member in group.members)


def test_the_page_needs_no_network_and_escapes_names():
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


def test_the_page_tells_what_the_source_left_open():
    group = replace(NAMED_GROUPS["E"].group, notes=("subscriptions are not shown",))
    assert "left open: subscriptions are not shown." in render_html(plan(group))
    assert "left open" not in render_html(plan(NAMED_GROUPS["E"].group))


def test_equal_plans_make_equal_pages():
    group = NAMED_GROUPS["D"].group
    assert render_html(plan(group)) == render_html(plan(group))


def test_names_are_cut_only_while_they_tell_members_apart():
    random = ("-00000000-0000-0000-0000-000000000001", "-00000000-0000-0000-0000-000000000002")
    ids = [f"a{random[0]}", f"b{random[0]}", f"b{random[1]}", "c"]
    members = [Member(id=id, subscription=()) for id in ids]
    assert list(short_names(members).values()) == ["a", ids[1], ids[2], "c"]
