"""Installed libraries answer through their drivers. Tests of missing libraries are skipped."""

import pytest

from kassay.experiments.implementations.client_libraries import libraries, parse_library_assignor
from kassay.experiments.implementations.run_assignor import Ending, run, run_until_stable
from kassay.experiments.study.cases import cases_of
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from tests.installed_library import require_library
from tests.notation import group as small_group

pytestmark = pytest.mark.libraries

NEWEST = [
    f"{library.name}@{library.versions[0]}:{assignor}"
    for library in libraries().values()
    for assignor in library.assignors_of(library.versions[0])
]
PORTED = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "server-range")
EQUAL = small_group("t:5 ü:4", **dict.fromkeys("abé", "t ü"))


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
    result = run_until_stable(small_group("t:2", a=" | t-0", b=""), require(name))
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
    group = small_group("t:4 u:2", a="t | t-0..3 @3", b="t u")
    broken = run(group, "kafka-clients@2.8.2:sticky").assignment
    assert broken.counts() == run(group, "sticky").assignment.counts()
    assert broken != run(group, "sticky").assignment
