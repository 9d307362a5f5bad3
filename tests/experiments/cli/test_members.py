import pytest

from tests.experiments.cli.conftest import fixture_to_run

GROUP = {
    "id": "g",
    "topics": {"t": 6, "u": 2},
    "members": [
        {"id": "a", "topics": ["t", "u"], "owned": {"t": [0, 1, 2, 3], "u": [0, 1]}},
        {"id": "b", "topics": ["t"], "owned": {"t": [4, 5]}},
    ],
}

run = fixture_to_run("members", GROUP)


def test_output_shows_the_minimum_number_of_members_and_its_neighbours(run):
    done = run("--maximum-load", 3)
    record = done.record
    assert done.code == 0
    assert list(record) == ["id", "current", "needed", "bound", "proven", "sizes"]
    assert (record["current"], record["needed"], record["proven"]) == (2, 3, True)
    assert [size["members"] for size in record["sizes"]] == [2, 3, 4]
    assert record["sizes"][0] == {
        "members": 2,
        "sufficient": False,
        "makespan": {"value": 4, "bound": 4},
        "imbalance": 32,
        "movement": {"value": 2, "bound": 2},
    }


def test_from_and_to_select_the_numbers_of_members_shown(run):
    record = run("--maximum-load", 4, "--from", 1, "--to", 4).record
    assert [size["members"] for size in record["sizes"]] == [1, 2, 3, 4]
    assert [size["sufficient"] for size in record["sizes"]] == [False, True, True, True]


@pytest.mark.parametrize(
    ("options", "shown"), [(("--to", 3), [1, 2, 3]), (("--from", 1), [1, 2]), (("--from", 4), [4])]
)
def test_from_and_to_have_defaults(run, options, shown):
    assert [size["members"] for size in run("--maximum-load", 4, *options).record["sizes"]] == shown


def test_an_impossible_target_gives_a_reason_and_exit_code_1(run):
    impossible = ("--maximum-load", 1, "--like", "b", "--to", 2)
    done = run(*impossible)
    assert (done.code, done.record["needed"]) == (1, None)
    assert "'u'" in done.record["reason"]
    rows = [line for line in run(*impossible, "--format", "table").out.split("\n") if "│" in line]
    assert "added" in rows[0]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--maximum-load", "1", "--to", "0"),
        ("--maximum-load", "1", "--from", "3", "--to", "2"),
    ],
)
def test_contradictory_options_are_a_usage_error(run, options):
    done = run(*options)
    assert (done.code, done.out) == (2, "")
    assert "--" in done.err


def test_an_unknown_member_for_like_is_one_error_line(run):
    done = run("--maximum-load", 1, "--like", "z")
    assert done.code == 2
    assert done.err.strip() == "kassay: no member 'z' in group 'g'"


def test_the_table_lists_topics_without_subscribers(run):
    members = [{"id": "b", "topics": ["t"]}, {"id": "a", "topics": ["u"]}]
    done = run("--maximum-load", 6, "--format", "table", group={**GROUP, "members": members})
    assert "no, no subscriber of u" in done.out


def test_the_table_marks_the_minimum_and_the_current_number(run):
    done = run("--maximum-load", 3, "--format", "table")
    assert "yes, minimum" in done.out
    assert "no, current" in done.out
