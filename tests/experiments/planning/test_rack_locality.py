import json
from dataclasses import replace
from pathlib import Path

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from kassay import Group, Member, Topic
from kassay.experiments.planning import render_plans
from kassay.experiments.planning.assignor_outcomes import assignment_metrics
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_plans import plan_document
from kassay.reference.model.load_metrics import has_racks
from kassay.solver.evaluation import level_value
from kassay.solver.objective import CrossRack
from kassay.solver.problem import build_problem
from tests.strategies import RACKS as NAMES
from tests.strategies import groups, valid_assignments

SCHEMA = json.loads((Path(render_plans.__file__).parent / "plan.schema.json").read_text())
RACKED = Group(
    id="racked",
    topics=(Topic(name="t", partitions=4, racks=(("a",), ("a", "b"), (None,), ("b",))),),
    members=(
        Member(id="c0", subscription=("t",), rack="a", owned=[("t", 2), ("t", 3)]),
        Member(id="c1", subscription=("t",), rack="b", owned=[("t", 0), ("t", 1)]),
        Member(id="c2", subscription=("gone",)),
    ),
)


def test_a_plan_compares_the_racks():
    result = plan(RACKED)
    assert (result.current.cross_rack, result.planned.cross_rack) == (2, 2)
    assert [(*one.values(),) for one in result.racks()] == [
        ("a", 1, 2, {"current": 2, "planned": 2}),
        ("b", 1, 2, {"current": 2, "planned": 2}),
        (None, 1, 0, {"current": 0, "planned": 0}),
    ]


def test_each_assignor_has_a_count_of_cross_rack_partitions():
    document = json.loads(json.dumps(plan_document(plan(RACKED))))
    jsonschema.validate(document, SCHEMA)
    counts = {one["assignor"]: one.get("cross_rack_partitions") for one in document["assignors"]}
    assert (counts["range"], counts["sticky"], counts["uniform"]) == (0, 0, 2)


@st.composite
def racked_groups(draw):
    group = draw(groups())
    names = st.sampled_from([*NAMES, None])
    return replace(
        group,
        topics=tuple(
            replace(
                topic, racks=[draw(st.lists(names, max_size=2)) for _ in range(topic.partitions)]
            )
            for topic in group.topics
        ),
        members=tuple(replace(member, rack=draw(names)) for member in group.members),
    )


@given(racked_groups(), st.data())
def test_the_count_equals_the_objective_of_the_solver(group, data):
    assignment = data.draw(valid_assignments(group))
    counted = assignment_metrics(group, assignment).cross_rack
    problem = build_problem(group)
    by_solver = level_value(problem, CrossRack(), problem.to_placement(assignment))
    assert counted == (by_solver if has_racks(group) else None)
    assert counted is not None or by_solver == 0
