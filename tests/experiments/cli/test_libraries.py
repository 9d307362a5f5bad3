"""Commands about client libraries."""

import pytest

from kassay.experiments.implementations import client_libraries
from tests.experiments.cli.conftest import LOPSIDED_GROUP


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("KASSAY_IMPLEMENTATIONS", str(tmp_path / "libraries"))
    client_libraries.driver_command.cache_clear()
    yield
    client_libraries.driver_command.cache_clear()


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


def test_agreement_counts_groups_and_shows_the_smallest(kassay, write_groups):
    file = write_groups(LOPSIDED_GROUP)
    done = kassay("compare", file, "--libraries", "--assignor", "range", "--cases", 5)
    assert (done.code, done.record["agreement"]["identical"]) == (0, done.record["groups"])
    assert done.record["groups"] > 5
    assert done.record["smallest"]["identical"]["members"]
    assert kassay("compare", file, "--libraries").code == 2
    aliased = kassay("compare", file, "--libraries", "--assignor", "mine=sticky").record
    assert (aliased["assignor"], aliased["reference"]) == ("mine", "sticky")
