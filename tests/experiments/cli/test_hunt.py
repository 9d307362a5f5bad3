import pytest

from kassay.experiments.cli.commands import hunt
from kassay.experiments.counterexamples.find_counterexample import (
    CaseSearch,
    CounterexampleOptions,
    Shortcoming,
    check_deterministic,
    find_counterexample,
)
from kassay.experiments.study.cases import imported_cases
from kassay.reference.model.errors import UsageError

GROUP = '{"id": "mine", "topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]}\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give exactly one"),
        (("--assignor", "sticky", "--assignor-cmd", "cat"), "give exactly one"),
        (("--assignor", "stickier"), "unknown assignor"),
        (("--assignor-python", "os"), "module:function"),
        (("--assignor", "sticky", "--family", "nowhere"), "unknown family"),
    ],
)
def test_invalid_options_write_nothing(kassay, tmp_path, options, message):
    done = kassay("hunt", *options, "-o", tmp_path / "out")
    assert done.code == 2
    assert message in done.message
    assert not (tmp_path / "out").exists()


def test_an_assignor_command_that_fails_gives_a_result_and_exit_code_1(kassay, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GROUP + GROUP)
    done = kassay("assign", groups, "--assignor-cmd", "false")
    assert done.code == 1
    assert [record["failed"] for record in done.records] == [
        "the process ended without writing an assignment (exit code 1)"
    ] * 2


def test_an_assignor_function_is_compared_with_the_optimum(kassay, tmp_path):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(GROUP)
    function = "kassay.reference.assignors.client.range:assign"
    done = kassay("compare", groups, "--assignor", "range", "--assignor-python", function)
    mine, theirs = done.record["comparisons"]
    assert done.code == 0
    assert mine | {"assignor": ""} == theirs | {"assignor": ""}
    assert {mine["assignor"], theirs["assignor"]} == {"range", f"python:{function}"}


COIN = """
import itertools
from kassay import Assignment

runs = itertools.count()

def assign(group):
    names = [m.id for m in group.members]
    chosen = names[max(0, next(runs) - {steady}) % len(names)]
    partitions = [(t.name, n) for t in group.topics for n in range(t.partitions)]
    return Assignment({{m: partitions if m == chosen else [] for m in names}})
"""
TWO_MEMBERS = GROUP.replace('[{"id"', '[{"id": "b", "topics": ["t"]}, {"id"')


@pytest.fixture
def coin(tmp_path):
    """Write an assignor that returns equal results only in its first runs."""

    def write(steady):
        module = tmp_path / "coin.py"
        module.write_text(COIN.format(steady=steady))
        return f"{module}:assign"

    return write


def test_an_assignor_that_is_not_deterministic_is_refused_at_once(kassay, tmp_path, coin):
    groups = tmp_path / "groups.jsonl"
    groups.write_text(TWO_MEMBERS)
    options = ("--assignor-python", coin(0), "--groups", groups, "-o", tmp_path / "out")
    done = kassay("hunt", *options)
    assert done.code == 2
    assert "is not deterministic" in done.message
    assert not (tmp_path / "out").exists()


def test_an_assignor_that_is_not_deterministic_after_30_runs_ends_the_search(tmp_path, coin):
    options = CounterexampleOptions(
        assignor=f"python:{coin(30)}", shortcoming=Shortcoming.FAILURE, attempts=1
    )
    documents = [TWO_MEMBERS.strip().replace('"mine"', f'"mine-{n}"') for n in range(20)]
    cases = imported_cases(documents, assignors=[options.assignor])
    for number in range(10):
        check_deterministic(options.assignor, cases[number].name, cases[number].build())
    found = [find_counterexample(cases[number], options) for number in range(20)]
    assert [one.error for one in found[:3]] == [None] * 3
    changed = next(one for one in found if not one.is_deterministic)
    assert f"different assignments of the group {changed.case!r}" in str(changed.error)
    shown = hunt._show_finds(iter(found), tmp_path / "found.jsonl")
    with pytest.raises(UsageError, match="is not deterministic"):
        list(shown)


def test_each_kind_of_counterexample_is_shown_when_it_is_found(tmp_path, capsys):
    file = tmp_path / "out" / "found.jsonl"
    smallest = GROUP.strip()
    finds = [
        CaseSearch(case="f/1", smallest=smallest, kind="k", smallest_severity="1/2"),
        CaseSearch(case="f/2"),
        CaseSearch(case="f/3", smallest=smallest, kind="k", smallest_severity="1/2"),
    ]
    shown = hunt._show_finds(iter(finds), file)
    assert not file.exists()
    next(shown)
    assert file.read_text() == smallest + "\n"
    assert "counterexample 1 after 0 s: 1 members, 1 partitions" in capsys.readouterr().err
    assert len(list(shown)) == 2
    assert capsys.readouterr().err == ""
