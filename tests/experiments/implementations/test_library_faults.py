"""Faults of client libraries, each with its smallest known group."""

import json
from pathlib import Path

import pytest

from kassay.experiments.comparison.compare_libraries import compare_with_reference
from kassay.experiments.implementations.client_libraries import driver_command, repetitions_of
from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.reference.documents.json_codec import load_group, parse_group
from tests.experiments.implementations.test_installed_libraries import require
from tests.stored_cases import stored_cases

pytestmark = pytest.mark.libraries

PAGE = Path(__file__).parents[3] / "docs" / "results" / "implementations.md"
FAULTS = Path(__file__).parents[3] / "examples" / "library-faults"


@pytest.mark.parametrize(("name", "assignor", "ending", "detail"), stored_cases("library_faults"))
def test_a_fault_is_found_again(name, assignor, ending, detail):
    result = run_until_stable(load_group(FAULTS / f"{name}.json"), require(assignor))
    assert result.ending == ending, result.detail
    assert detail in (result.detail or "")


def _smallest_groups():
    """Return the rows of the documented table: shortcoming, assignor and group."""
    table = PAGE.read_text().partition("<!-- smallest groups: begin -->")[2]
    for line in table.partition("<!-- smallest groups: end -->")[0].splitlines()[4:]:
        if not line:
            continue
        kind, assignors, group = (cell.strip() for cell in line.strip("|").split(" | "))
        for assignor in assignors.split(", "):
            yield kind, assignor.strip("`"), json.loads(group.strip("`"))


@pytest.mark.parametrize(("kind", "assignor", "document"), list(_smallest_groups()))
def test_a_documented_group_shows_the_shortcoming_of_an_assignor(kind, assignor, document):
    name, _, method = require(assignor).partition(":")
    limit = 3 if kind == "nonterminating" else 30
    compared = compare_with_reference(
        parse_group(document),
        [f"{name}@{limit}s:{method}"],
        repetitions=20 if repetitions_of(assignor) > 1 else 1,
    )
    kinds = {"crash": "crashed", "failure": "failed"}
    assert kinds.get(kind, kind) in next(compared).kinds


def test_the_address_sanitizer_names_the_function_of_a_crash(monkeypatch):
    monkeypatch.setenv("KASSAY_SANITIZER", "address")
    driver_command.cache_clear()
    name = require("librdkafka:cooperative-sticky")
    result = run_until_stable(load_group(FAULTS / "use-after-free.json"), name)
    driver_command.cache_clear()
    assert result.ending is Ending.FAILED
    assert "SUMMARY: AddressSanitizer: heap-use-after-free" in (result.detail or "")
