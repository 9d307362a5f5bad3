"""The members table of releases 3.8 and 3.9 shows partitions without topics."""

import pytest

from kassay.experiments.sources.capture_files import import_groups
from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.model.errors import InputError

OFFSETS = """
GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
g     t     0         4              9              5   c1          /h   app
g     t     1         4              9              5   c1          /h   app
g     u     4         -              9              -   c1          /h   app
g     u     5         -              9              -   c2          /h   app
"""
MEMBERS = """
GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT
g     c1          /h   app       3           (0,1), (4)
g     c2          /h   app       1           (5)
g     c3          /h   app       0           -
"""


@pytest.fixture
def imported(tmp_path):
    def run(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.txt").write_text(text)
        (found,) = import_groups([tmp_path], ImportOptions())
        return found

    return run


@pytest.mark.parametrize("separator", [", ", ","])
def test_the_topics_follow_from_the_offsets_table_of_the_same_moment(imported, separator):
    group = imported(members=MEMBERS.replace("), (", f"){separator}("), offsets=OFFSETS).group
    assert {member.id: list(member.owned) for member in group.members} == {
        "c1": [("t", 0), ("t", 1), ("u", 4)],
        "c2": [("u", 5)],
        "c3": [],
    }


def test_the_table_alone_is_an_error_that_names_the_missing_capture(imported):
    error = imported(members=MEMBERS).error
    assert "member 'c1' has the partitions (0,1), (4) of topics that the members table" in error
    assert "Kafka 3.8 and 3.9 does not name; add the output of --describe --offsets" in error


def test_an_offsets_table_of_another_moment_is_an_error(imported):
    moved = OFFSETS.replace(
        "c1          /h   app\ng     u     5", "c2          /h   app\ng     u     5"
    )
    error = imported(
        members=MEMBERS.replace("3           (0,1), (4)", "2           (1,4)"), offsets=moved
    )
    assert "has the partitions (1,4) in the members table, but (0,1) in the offsets" in error.error


def test_a_cut_row_is_an_error():
    with pytest.raises(InputError, match="not a complete row"):
        parse_text(MEMBERS.replace("(0,1), (4)", "(0,1), (4"), name="x")
    with pytest.raises(InputError, match="has 3 partitions but lists 2"):
        parse_text(MEMBERS.replace("(0,1), (4)", "(0,1)"), name="x")
