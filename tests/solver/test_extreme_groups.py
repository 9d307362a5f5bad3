"""Extreme groups: every function has a defined result."""

import json

import pytest

from kassay import Capacity, Group, MaxMoves, Member, Pinned, Topic, certify, frontier, solve
from kassay.experiments.cli import main
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import Assignment, movement, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.limits import SearchLimits
from kassay.solver.network.improving_chains import explain
from kassay.solver.objective import (
    EXACT,
    Imbalance,
    Movement,
    Tolerance,
    TopicSpread,
    default_levels,
)
from kassay.solver.sizing import Resizing, members_needed

HUGE = 2**53 + 1


def group(weights, *, capacity=None, owned=()):
    topic = Topic(name="t", partitions=3, weights=weights)
    return Group(
        topics=(topic,),
        members=(
            Member(id="a", subscription=("t",), capacity=capacity, owned=owned),
            Member(id="b", subscription=("t",), capacity=capacity),
        ),
    )


OWNED = tuple(("t", number) for number in range(3))
NOTHING = Group(topics=(), members=())
NO_MEMBERS = Group(topics=(Topic(name="t", partitions=3),), members=())
NO_TOPICS = Group(topics=(), members=(Member(id="a", subscription=("t",)),))
ZERO = group((0, 0, 0), owned=OWNED)
SOME_ZERO = group((0, 0, 4), owned=OWNED)
ONE_HUGE = group((1, 1, HUGE), owned=OWNED)
EQUAL = group(None, owned=OWNED)
CAPPED = group((5, 5, 5), capacity=4)

# Name, group, (imbalance, movement) of the optimum.
ANSWERS = [
    ("nothing", NOTHING, (0, 0)),
    ("no members", NO_MEMBERS, (0, 0)),
    ("no topics", NO_TOPICS, (0, 0)),
    ("zero weights", ZERO, (0, 0)),
    ("some zero weights", SOME_ZERO, (4, 0)),
    ("one huge weight", ONE_HUGE, (HUGE, 1)),
    ("equal weights", EQUAL, (5, 1)),
]
GROUPS = [pytest.param(group, id=name) for name, group, _ in ANSWERS]


OPTIMA = [pytest.param(group, best, id=name) for name, group, best in ANSWERS]


@pytest.mark.parametrize(("group", "optimum"), OPTIMA)
def test_the_optimum_is_found_and_certified(group, optimum):
    solution = solve(group, levels=default_levels(group, tolerance=EXACT))
    assert (solution.imbalance.value, solution.movement.value) == optimum
    assert solution.status == "optimal"
    assert list(violations(group, solution.assignment)) == []
    certificate = certify(group, solution)
    assert certificate.is_optimal
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


@pytest.mark.parametrize(("group", "optimum"), OPTIMA)
def test_a_time_limit_of_zero_leaves_an_assignment(group, optimum):
    solution = solve(group, limits=SearchLimits(time=0))
    assert list(violations(group, solution.assignment)) == []
    assert solution.imbalance.bound <= optimum[0] <= solution.imbalance.value
    if solution.imbalance.value == optimum[0]:
        assert solution.movement.bound <= optimum[1] <= solution.movement.value
    certificate = certify(group, solution)
    assert certificate.is_optimal == solution.is_optimal
    assert list(certificate_errors(group, solution.assignment, certificate)) == []


@pytest.mark.parametrize("time_limit", [60.0, 0.0])
@pytest.mark.parametrize("group", GROUPS)
def test_max_moves_of_zero_keeps_every_partition_at_its_owner(group, time_limit):
    solution = solve(group, constraints=(MaxMoves(0),), limits=SearchLimits(time=time_limit))
    assert solution.movement.value == 0
    assert list(violations(group, solution.assignment)) == []


@pytest.mark.parametrize("time_limit", [60.0, 0.0])
def test_capacities_below_every_partition_are_reported_as_conflict(time_limit):
    solution = solve(CAPPED, limits=SearchLimits(time=time_limit))
    assert (solution.status, solution.assignment) == ("infeasible", None)
    assert solution.certificate.conflict.constraints
    assert solution.conflict
    assert "is at most 4" in solution.conflict[0]
    assert frontier(CAPPED).conflict
    limit = "the load of every member is at most 0"
    assert solve(EQUAL, constraints=(Capacity(0),)).conflict == (limit,)


@pytest.mark.parametrize("group", GROUPS)
def test_the_frontier_has_a_point_and_ends_at_no_moves(group):
    found = frontier(group)
    assert found.complete
    assert found.points[0].movement.value == 0


@pytest.mark.parametrize("group", GROUPS)
def test_a_frontier_without_time_has_a_point(group):
    assert frontier(group, limits=SearchLimits(time=0)).points


@pytest.mark.parametrize(
    ("group", "needed"),
    [
        pytest.param(NOTHING, 0, id="nothing"),
        pytest.param(NO_MEMBERS, 0, id="no members"),
        pytest.param(NO_TOPICS, 0, id="no topics"),
        pytest.param(ZERO, 1, id="zero weights"),
        pytest.param(ONE_HUGE, None, id="one huge weight"),
        pytest.param(EQUAL, 3, id="equal weights"),
        pytest.param(CAPPED, None, id="capacities"),
    ],
)
def test_members_needed_are_a_number_or_a_reason(group, needed):
    sizing = members_needed(Resizing.of(group), makespan=1)
    assert (None if sizing.needed is None else sizing.needed.value) == needed
    assert bool(sizing.reason) == (needed is None)


@pytest.mark.parametrize("group", GROUPS)
def test_an_explanation_is_always_defined(group):
    assert isinstance(explain(group, solve(group).assignment), tuple)


def test_an_empty_assignment_of_an_empty_group_is_certified():
    certificate = certify(NOTHING, Assignment({}))
    assert certificate.is_optimal
    assert list(certificate_errors(NOTHING, Assignment({}), certificate)) == []


COMMANDS = [
    ("solve", "--certificate"),
    ("solve", "--time-limit", "0", "--max-moves", "0"),
    ("scale", "--maximum-load", "0"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_report_a_result_for_every_group(command, tmp_path, capsys):
    groups = [group for _, group, _ in ANSWERS] + [CAPPED]
    path = tmp_path / "groups.jsonl"
    path.write_text("".join(json.dumps(group_document(group)) + "\n" for group in groups))
    code = 0
    try:
        main([command[0], str(path), *command[1:]])
    except SystemExit as leaving:
        code = leaving.code or 0
    out, err = capsys.readouterr()
    records = [json.loads(line) for line in out.splitlines()]
    assert len(records) == len(groups)
    assert not any("error" in record for record in records)
    assert "Traceback" not in err
    assert code == 1


@pytest.mark.parametrize("limits", [1.0, SearchLimits(work=1)])
def test_leximax_accepts_a_limit_on_moves(limits):
    topic = Topic("t", 40, weights=tuple(range(1, 41)))
    owned = [("t", number) for number in range(40)]
    members = (Member("a", ("t",), owned=owned), Member("b", ("t",)), Member("c", ("t",)))
    group = Group((topic,), members)
    found = solve(group, levels=["leximax"], constraints=[MaxMoves(4)], limits=limits)
    assert found.assignment is not None
    assert movement(group, found.assignment) <= 4


LARGE_MULTIPLE = (9973, 9967, 9949, 9941, 9931, 9929, 9923)
"""Speeds of members whose least common multiple exceeds 64 bits."""


def with_large_multiple(partitions, weight):
    members = (Member(f"m{at}", ("t",), speed=speed) for at, speed in enumerate(LARGE_MULTIPLE))
    topic = Topic("t", partitions, weights=(weight,) * partitions)
    return Group((topic,), tuple(members))


@pytest.mark.parametrize("measure", list(Measure))
@pytest.mark.parametrize(("partitions", "weight"), [(9, 0), (30, 0), (40, 5)])
def test_a_large_common_multiple_of_the_speeds_has_a_bound(partitions, weight, measure):
    group = with_large_multiple(partitions, weight)
    levels = (Imbalance(measure), Movement(), TopicSpread())
    for chosen in (levels[:2], levels):
        solution = solve(group, levels=chosen, limits=0.2)
        assert all(level.bound <= level.value for level in solution.levels)
        certificate = solution.certificate
        assert list(certificate_errors(group, solution.assignment, certificate)) == []
        if not weight:
            assert (solution.imbalance.value, solution.imbalance.bound) == (0, 0)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Pinned("t", None, "a"), "the partition number None is not an integer"),
        (Pinned("t", "1", "a"), "'1' is not an integer"),
        (Capacity(2.5), "2.5 is not an integer"),
        (MaxMoves("3"), "'3' is not an integer"),
    ],
)
def test_the_numbers_of_constraints_are_integers(rule, message):
    with pytest.raises(InputError, match=message):
        solve(group(None), constraints=[rule])


def test_levels_and_methods_have_known_names_and_whole_numbers():
    with pytest.raises(UsageError, match=r"measure must be one of .*, got 'bad'"):
        Imbalance("bad")
    with pytest.raises(UsageError, match="method must be one of auto, flow, cp-sat, got 'foo'"):
        solve(group(None), method="foo")
    with pytest.raises(UsageError, match=r"the cost of a move must be an integer, got 1\.9"):
        Movement({("t", 0): 1.9})
    with pytest.raises(UsageError, match=r"absolute tolerance must be an integer, got 0\.5"):
        Tolerance(absolute=0.5)


def test_a_value_with_many_digits_has_a_text():
    many = Group((Topic("t", 6000),), tuple(Member(f"m{at}", ("t",)) for at in range(1200)))
    solution = solve(many, levels=["leximax"], limits=5)
    assert str(solution.levels[0]).startswith("leximax about 2**")
    claim = LevelClaim(Imbalance("leximax"), 1, 0, Origin.COUNTING)
    [error] = certificate_errors(many, solution.assignment, Certificate((claim,)))
    assert error.endswith("not 1")


@pytest.mark.long
def test_more_than_32767_members_are_enumerated():
    count = 32_769
    topics = tuple(Topic(f"t{at}", 1, weights=(1 + at % 2,)) for at in range(count))
    members = tuple(Member(f"m{at}", (f"t{at}",)) for at in range(count))
    assert solve(Group(topics, members), levels=["makespan"], limits=5).imbalance.value == 2


def test_a_value_with_too_many_digits_is_one_message(tmp_path, capsys):
    members = [{"id": f"m{at}", "topics": ["t"]} for at in range(1200)]
    path = tmp_path / "group.json"
    path.write_text(json.dumps({"topics": {"t": 6000}, "members": members}))
    with pytest.raises(SystemExit) as exit_code:
        main(["solve", str(path), "--imbalance", "leximax", "--time-limit", "5"])
    assert exit_code.value.code == 2
    assert "too many digits for a text" in capsys.readouterr().err
