"""Commands about client libraries."""

import pytest

from kassay.experiments.implementations import installation
from tests.experiments.cli.conftest import LOPSIDED_GROUP


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("KASSAY_IMPLEMENTATIONS", str(tmp_path / "libraries"))
    installation.driver_command.cache_clear()
    yield
    installation.driver_command.cache_clear()


def test_the_list_shows_libraries_versions_and_the_directory(kassay, tmp_path):
    done = kassay("libraries")
    assert done.code == 0
    assert str(tmp_path / "libraries") in done.message.replace(" ", "")
    (java,) = (
        r
        for r in kassay("libraries", "--format", "jsonl").records
        if r["library"] == "kafka-clients"
    )
    assert java["installed"] == []
    assert "0.9.0.1" in java["versions"]
    assert java["needs"] == "JDK 17+ and Maven"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["remove", "sarama"], "expected: install LIBRARY[@VERSION]..., got 'remove sarama'"),
        (["install"], "expected: install LIBRARY[@VERSION]..., got 'install'"),
        (["install", "kafka"], "unknown library 'kafka'; choose from kafka-clients"),
    ],
)
def test_a_wrong_request_is_a_usage_error(kassay, arguments, message):
    done = kassay("libraries", *arguments)
    assert done.code == 2
    assert message in done.message


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("assign", ["--assignor", "kafka-clients@2.4.0:sticky"]),
        ("compare", ["--assignor", "kafka-clients@2.4.0:sticky"]),
        ("plan", ["--assignor", "kafka-clients@2.4.0:sticky"]),
    ],
)
def test_a_missing_library_is_a_usage_error_with_the_command_to_install_it(
    kassay, write_groups, command, options
):
    done = kassay(command, write_groups(LOPSIDED_GROUP), *options)
    assert (done.code, done.out) == (2, "")
    assert "run: kassay libraries install kafka-clients@2.4.0" in done.message


def test_releases_need_an_installed_library(kassay, write_groups):
    done = kassay(
        "compare", write_groups(LOPSIDED_GROUP), "--releases", "--assignor", "kafka-clients:sticky"
    )
    assert done.code == 2
    assert "no version of kafka-clients with sticky is installed" in done.message


def test_agreement_counts_groups_and_shows_the_smallest(kassay, write_groups):
    file = write_groups(LOPSIDED_GROUP)
    done = kassay("compare", file, "--libraries", "--assignor", "range", "--cases", 5)
    assert (done.code, done.record["agreement"]["identical"]) == (0, done.record["groups"])
    assert done.record["groups"] > 5
    assert done.record["smallest"]["identical"]["members"]
    assert kassay("compare", file, "--libraries").code == 2
    aliased = kassay("compare", file, "--libraries", "--assignor", "mine=sticky").record
    assert (aliased["assignor"], aliased["reference"]) == ("mine", "sticky")


@pytest.mark.parametrize(
    "options",
    [
        ("--cases", 5),
        ("--libraries", "--releases"),
        ("--libraries", "--max-moves", 1),
        ("--releases",),
        ("--releases", "--assignor", "sarama:sticky", "--assignor", "franz-go:sticky"),
    ],
)
def test_options_of_libraries_that_do_not_fit_are_a_usage_error(kassay, write_groups, options):
    done = kassay("compare", write_groups(LOPSIDED_GROUP), *options)
    assert (done.code, done.out) == (2, "")
