"""Installed libraries answer through their drivers. Tests of missing libraries are skipped."""

import pytest

from kassay import Group, Member, Topic
from kassay.experiments.implementations.library_catalogue import libraries, parse_library_assignor
from kassay.experiments.implementations.runner import Ending, run, run_until_stable
from kassay.experiments.study.cases import cases_of
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from tests.installed_library import require_library

pytestmark = pytest.mark.libraries

NEWEST = [
    f"{library.name}@{library.versions[0]}:{assignor}"
    for library in libraries().values()
    for assignor in library.assignors_of(library.versions[0])
]
PORTED = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range")
EQUAL = Group(
    topics=(Topic(name="t", partitions=5), Topic(name="ü", partitions=4)),
    members=tuple(Member(id=id, subscription=("t", "ü")) for id in ("a", "b", "é")),
)


def require(name):
    """Return the name of a library's assignor. Skip the test if the library is not installed."""
    assignor = parse_library_assignor(name)
    require_library(f"{assignor.library.name}@{assignor.version}")
    return name


@pytest.mark.parametrize("name", NEWEST)
def test_every_partition_of_equal_subscriptions_has_a_member(name):
    result = run_until_stable(EQUAL, require(name))
    assert (result.ending, result.detail) == (Ending.OK, None)
    assert sum(result.assignment.counts().values()) == 9
    assert max(result.assignment.counts().values()) <= 4


@pytest.mark.parametrize("name", NEWEST)
def test_members_without_subscriptions_get_no_partitions(name):
    group = Group(
        topics=(Topic(name="t", partitions=2),),
        members=(
            Member(id="a", subscription=(), owned=[("t", 0)], generation=1),
            Member(id="b", subscription=()),
        ),
    )
    result = run_until_stable(group, require(name))
    assert (result.ending, result.detail) == (Ending.OK, None)
    assert result.assignment.counts() == {"a": 0, "b": 0}


@pytest.mark.parametrize("assignor", PORTED)
def test_the_ports_equal_the_libraries_of_their_release(assignor):
    library = "kafka-clients" if assignor in PORTED[:4] else "kafka-broker"
    name = require(f"{library}@4.4.0@5s:{assignor}")
    cases = cases_of(
        ["mixed-join", "mixed-leave", "equal-grow", "mixed-churn"], seeds=40, assignors=["sticky"]
    )
    groups = [cases[number].build() for number in range(len(cases))]
    groups += [group.group for key, group in NAMED_GROUPS.items() if key != "D"]
    for group in groups:
        assert run(group, name).assignment == run(group, assignor).assignment, group.id


@pytest.mark.parametrize("version", libraries()["kafka-clients"].versions)
def test_range_and_roundrobin_of_each_java_release_equal_the_ports(version):
    families = ["mixed-join", "equal-leave", "mixed-churn", "equal-fresh", "mixed-fresh"]
    cases = cases_of(families, seeds=40, assignors=["range"])
    for assignor in ("range", "roundrobin"):
        name = require(f"kafka-clients@{version}@30s:{assignor}")
        for number in range(len(cases)):
            group = cases[number].build()
            assert run(group, name).assignment == run(group, assignor).assignment, group.id


def test_a_release_without_rewind_loses_owned_partitions():
    require("kafka-clients@2.8.2:sticky")
    group = Group(
        topics=(Topic(name="t", partitions=4), Topic(name="u", partitions=2)),
        members=(
            Member(id="a", subscription=("t",), owned=[("t", n) for n in range(4)], generation=3),
            Member(id="b", subscription=("t", "u")),
        ),
    )
    broken = run(group, "kafka-clients@2.8.2:sticky").assignment
    assert broken.counts() == run(group, "sticky").assignment.counts()
    assert broken != run(group, "sticky").assignment
