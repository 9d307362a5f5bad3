"""Calls of the documented functions as users write them."""

import re
import sys

import numpy as np
import pytest

import kassay
from kassay.reference.model.group_remarks import GroupWarning

WEIGHTS = tuple(range(1, 301))
OWNED = [("t", number) for number in range(300)]
GROUP = kassay.Group(
    (kassay.Topic("t", 300, weights=WEIGHTS),),
    (kassay.Member("a", ("t",), owned=OWNED), kassay.Member("b", ("t",))),
    id="g",
)
SMALL = kassay.Group(
    (kassay.Topic("t", 4, weights=(4, 3, 2, 1)),),
    (kassay.Member("a", ("t",), owned=OWNED[:4]), kassay.Member("b", ("t",))),
)

EMPTY = kassay.Assignment({})


def test_the_name_and_the_number_of_partitions_need_no_keyword():
    assert kassay.Topic("t", 3) == kassay.Topic(name="t", partitions=3)
    assert type(kassay.Member("a", ("t",), generation=np.int64(3)).generation) is int
    with pytest.raises(kassay.InputError, match="partitions must be an integer, got 't'"):
        kassay.Topic(3, "t")


@pytest.mark.parametrize(
    "call",
    [
        lambda limits: kassay.solve(SMALL, limits=limits).is_optimal,
        lambda limits: kassay.frontier(SMALL, limits=limits).complete,
        lambda limits: kassay.compare(SMALL, "sticky", limits=limits).proven,
        lambda limits: kassay.plan(SMALL, limits=limits).solution.is_optimal,
        lambda limits: kassay.scale(SMALL, maximum_load=5, limits=limits).needed.optimum.gap == 0,
        lambda limits: not kassay.explain(SMALL, kassay.solve(SMALL).assignment, limits=limits),
    ],
)
def test_a_time_limit_may_be_a_number_of_seconds(call):
    assert call(20)
    with pytest.raises(kassay.UsageError, match=r"limits must be SearchLimits or .* got '5 s'"):
        call("5 s")


def test_levels_may_be_names():
    by_name = kassay.solve(SMALL, levels=["makespan", "movement"])
    assert [(level.name, level.value) for level in by_name.levels] == [
        ("makespan", 5),
        ("movement", 2),
    ]
    assert kassay.solve(SMALL, levels="spread").levels[0].value == 0
    assert kassay.plan(SMALL, levels=["makespan", "movement"]).movement == 2
    with pytest.raises(kassay.UsageError, match=r"one of imbalance, .*movement.* got 'makspan'"):
        kassay.solve(SMALL, levels=["makspan"])


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ([kassay.Member("a", ("t", "u"))], "'a' subscribes to topic 'u', which the group does"),
        ([kassay.Member("a", ("t",), owned=[("t", 7)])], "t-7: the partition does not exist"),
        (
            [kassay.Member(id, ("t",), owned=[("t", 0)]) for id in "ab"],
            "t-0: another member claims it in the same generation (and 1 more)",
        ),
    ],
)
def test_parts_of_a_group_without_effect_give_a_warning(members, text):
    group = kassay.Group((kassay.Topic("t", 4),), members)
    for call in (kassay.solve, lambda group: kassay.assign(group, "range")):
        with pytest.warns(GroupWarning) as seen:
            call(group)
        assert text in str(seen[0].message)
        assert seen[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: kassay.Member(1, ("t",)), "member 1: the id must be a string"),
        (lambda: kassay.Member("a", None), "subscription must be a list, got None"),
        (lambda: kassay.Member("a", (1,)), "topics and racks must be strings, got 1"),
        (lambda: kassay.Topic(None, 1), "topic None: the name must be a string"),
        (lambda: kassay.Topic("t", True), "partitions must be an integer, got True"),
        (lambda: kassay.Member("a", ("t",), generation="7"), "must be an integer, got '7'"),
        (lambda: kassay.Member("a", ("t",), capacity=[1, 2.5]), "an integer, got 2.5"),
        *(
            (lambda pair=pair: kassay.Member("a", ("t",), owned=[("t", 1), pair]), shown)
            for pair in ("t0", "t-0", ("t", 0.0), ("t", "0"), (1, 0), None, ("t", 2**40))
            if (shown := f"'a': owned must contain (topic, partition) pairs, got {pair!r}")
        ),
        (lambda: kassay.Assignment({"a": ["t-0"]}), "(topic, partition) pairs, got 't-0'"),
        (lambda: kassay.Leave(members="c0"), "members must be a list, got the string 'c0'"),
        (lambda: kassay.Subscribe(members=["a"], topics="t"), "topics must be a list"),
        (lambda: kassay.Crash(members=()), "members must have at least one name"),
        (lambda: kassay.Rebalance(at=-5), "at must be at least 0 seconds, got -5"),
        (lambda: kassay.predict(SMALL, kassay.Rebalance()), "configuration must be a"),
        (lambda: kassay.predict(SMALL, "range", ["a"]), "at least one event, got ['a']"),
        (lambda: kassay.compare(SMALL, ["range"]), "must be a name or a function, got ['range']"),
        (lambda: kassay.compare(SMALL, "range", levels="x"), "got 'x'"),
        (lambda: kassay.imbalance(SMALL, EMPTY, measure="leximax"), "got 'leximax'"),
        (lambda: kassay.frontier(SMALL, measure="x"), "one of sum_of_squares, makespan"),
        *(
            (lambda call=call: call(SMALL, constraints=kassay.MaxMoves(3)), "such as [MaxMoves(3)]")
            for call in (kassay.solve, kassay.frontier, kassay.plan)
        ),
        (lambda: kassay.certify(SMALL, {}), "a Solution or an Assignment, got dict"),
        (lambda: kassay.load_group("/none"), "/none: no such file or directory"),
    ],
)
def test_errors_name_the_value_and_the_expected_ones(call, text):
    with pytest.raises((kassay.InputError, kassay.UsageError), match=re.escape(text)):
        call()


def test_a_comparison_shows_its_levels_or_its_failure():
    found = kassay.compare(SMALL, "range", levels=["makespan", "movement"])
    assert found.levels["movement"].value == kassay.movement(SMALL, kassay.assign(SMALL, "range"))
    assert repr(found).startswith("<range on the group: imbalance 7 (optimum 5), movement ")
    failed = kassay.compare(SMALL, lambda group: EMPTY)
    assert repr(failed) == "<<lambda> on the group: invalid: t-0 is not assigned>"
    assert "invalid: t-0 is not assigned" in failed._repr_html_()


def test_a_group_without_such_parts_gives_no_warning(recwarn):
    kassay.plan(GROUP, limits=2)
    assert not recwarn.list


@pytest.mark.parametrize(
    "value",
    [
        GROUP,
        *GROUP.topics,
        *GROUP.members,
        kassay.ownership(GROUP),
        kassay.assign(GROUP, "roundrobin"),
        kassay.solve(SMALL),
        kassay.solve(SMALL).certificate,
        kassay.frontier(SMALL),
        kassay.compare(SMALL, "range"),
        kassay.plan(SMALL),
        kassay.predict(SMALL, "range", samples=2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_text_of_a_value_is_short(value):
    assert len(repr(value)) < 250


def test_the_text_of_an_assignment_lists_few_members():
    assignment = kassay.Assignment({f"member-{n}": [("t", n)] for n in range(1_000)})
    assert repr(assignment).endswith("... 1000 in all})")
    assert len(repr(assignment)) < 500


@pytest.mark.parametrize("use", ["read tables pyarrow", "to_frame plots pandas"])
def test_a_function_without_its_package_names_the_extra(use, monkeypatch):
    name, extra, package = use.split()
    monkeypatch.delitem(vars(kassay), name, raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError, match=rf"{package}, .*pip install 'kassay\[{extra}\]'"):
        getattr(kassay, name)


def test_the_package_lists_only_its_documented_names():
    assert [name for name in dir(kassay) if not name.startswith("__")] == kassay.__all__
