"""Extreme groups: every function has a defined result."""

import json

import pytest

from kassay import Capacity, Group, MaxMoves, Member, Pinned, Topic, certify, frontier, solve
from kassay.experiments.cli import main
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.assignment import movement, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.load_metrics import Measure
from kassay.solver.capacity_planning import Resizing, members_needed
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
from tests.notation import changed, even_group
from tests.notation import group as small_group

HUGE = 2**53 + 1


NOTHING, NO_MEMBERS, NO_TOPICS = small_group(""), small_group("t:3"), small_group("", a="t")
ZERO = even_group((0, 0, 0), 2, [0, 0, 0])
SOME_ZERO = even_group((0, 0, 4), 2, [0, 0, 0])
ONE_HUGE = even_group((1, 1, HUGE), 2, [0, 0, 0])
EQUAL = small_group("t:3", a="t | t-0..2", b="t")
CAPPED = changed(even_group((5, 5, 5), 2), c0={"capacity": 4}, c1={"capacity": 4})

# Name, group, (imbalance, movement) of the optimum.
ANSWERS = [
    ("nothing", NOTHING, (0, 0)),
    ("no members", NO_MEMBERS, (0, 0)),
    ("no topics", NO_TOPICS, (0, 0)),
    ("no partitions", small_group("t:0", a="t"), (0, 0)),
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
    assert isinstance(explain(group, solution.assignment), tuple)


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


COMMANDS = [
    ("solve", "--certificate"),
    ("solve", "--time-limit", "0", "--max-moves", "0"),
    ("scale", "--maximum-load", "0"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_report_a_result_for_every_group(command, tmp_path, capsys):
    groups = [group for _, group, _ in ANSWERS] + [CAPPED]
    if command[0] == "scale":  # It refuses groups without members, whose subscription is unknown.
        groups = [group for group in groups if group.members]
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
    group = even_group(range(1, 41), 3, [0] * 40)
    found = solve(group, levels=["leximax"], constraints=[MaxMoves(4)], limits=limits)
    assert found.assignment is not None
    assert movement(group, found.assignment) <= 4


LARGE_MULTIPLE = (9973, 9967, 9949, 9941, 9931, 9929, 9923)
"""Speeds of members whose least common multiple exceeds 64 bits."""


@pytest.mark.parametrize("measure", list(Measure))
@pytest.mark.parametrize(("partitions", "weight"), [(9, 0), (30, 0), (40, 5)])
def test_a_large_common_multiple_of_the_speeds_has_a_bound(partitions, weight, measure):
    speeds = {f"c{at}": {"speed": speed} for at, speed in enumerate(LARGE_MULTIPLE)}
    group = changed(even_group([weight] * partitions, len(speeds)), **speeds)
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
        solve(EQUAL, constraints=[rule])


def test_levels_and_methods_have_known_names_and_whole_numbers():
    with pytest.raises(UsageError, match=r"measure must be one of .*, got 'bad'"):
        Imbalance("bad")
    with pytest.raises(UsageError, match="method must be one of auto, flow, cp-sat, got 'foo'"):
        solve(EQUAL, method="foo")
    with pytest.raises(UsageError, match=r"the cost of a move must be an integer, got 1\.9"):
        Movement({("t", 0): 1.9})
    with pytest.raises(UsageError, match=r"absolute tolerance must be an integer, got 0\.5"):
        Tolerance(absolute=0.5)


def test_a_value_with_many_digits_has_a_text():
    many = even_group([1] * 6000, 1200)
    solution = solve(many, levels=["leximax"], limits=5)
    assert str(solution.levels[0]).startswith("leximax about 2**")
    claim = LevelClaim(Imbalance("leximax"), 1, 0, Origin.COUNTING)
    [error] = certificate_errors(many, solution.assignment, Certificate((claim,)))
    assert error.endswith("the claim is 1")


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
    assert "has too many digits to print" in capsys.readouterr().err
