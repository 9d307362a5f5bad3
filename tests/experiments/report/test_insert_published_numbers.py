import re
from dataclasses import replace
from pathlib import Path

import pytest

from kassay.experiments.report.assignor_results import by_assignor, by_scope
from kassay.experiments.study.tables import NAMED_FAMILY
from tools.insert_published_numbers import (
    BEGIN,
    END,
    main,
    render_libraries,
    render_numbers,
    render_places,
    replace_numbers,
)

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs" / "results" / "single-groups.md"
LIBRARIES = PAGE.with_name("implementations.md")


@pytest.fixture(scope="module")
def text(results):
    return render_numbers(results)


def test_numbers_of_the_tables_are_shown_with_intervals(results, text):
    found = by_scope(results.outcomes)["generated"]["range"]
    low, high = found.missed_maximum.interval
    cell = f"{found.missed_maximum.percent} ({100 * low:.1f} to {100 * high:.1f})"
    assert f"| range | {found.sums['groups']} | " in text
    assert f" | {cell} | " in text
    assert "31 groups of 5 families" in text


def test_every_table_has_rows_of_equal_length(text):
    assert not re.search(r"\n\n\n|^ +\||\{\{|\{%", text)
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) == 8
    for block in blocks:
        (cells,) = {line.count("|") - 1 for line in block.splitlines()}
        assert cells <= 8


@pytest.mark.long
def test_writing_twice_gives_the_same_page(study_directory, tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(f"# Mine\n\n{BEGIN}\n{END}\n\nMore.\n")
    for _ in range(2):
        assert main([str(study_directory), str(page)]) == 0
        assert page.read_text() == f"# Mine\n\n{BEGIN}\n\n{text}\n{END}\n\nMore.\n"


@pytest.mark.parametrize("page", ["nothing", f"{END} {BEGIN}", BEGIN])
def test_a_page_without_both_marks_is_an_error(page):
    with pytest.raises(ValueError, match=r"study\.md must contain <!-- numbers: begin -->"):
        replace_numbers(page, "new", where="study.md")


def test_a_study_of_libraries_has_its_own_place(results):
    first, second = "kafka-clients@2.4.1@5s:sticky", "kafka-clients@4.4.0@5s:sticky"
    one, other, *_ = sorted(set(results.outcomes["assignor"]))
    outcomes = results.outcomes[results.outcomes["assignor"].isin([one, other])]
    outcomes = outcomes.replace({"assignor": {one: second, other: first}})
    outcomes = outcomes.assign(failed=outcomes["answered"], invalid=1, crashed=0)
    cases = {"total": 50, "finished": 31}
    study = {"study": {"file": "implementations.yaml"}}
    configuration = {**results.manifest["configuration"], **study}
    manifest = {**results.manifest, "cases": cases, "configuration": configuration}
    text = render_libraries(replace(results, outcomes=outcomes, manifest=manifest))
    assert "has results of 31 of the 50 groups of\n`implementations.yaml`; a fixed order" in text
    shown = results.families.loc[results.families["family"] != NAMED_FAMILY, "compared"].sum()
    assert f"The tables show the {shown} generated groups." in text
    assert "\u202f" not in text
    rows = re.findall(r"^\| `kafka-clients@(.+):sticky` \|", text, re.MULTILINE)
    assert rows == 4 * ["2.4.1", "4.4.0"]
    assert "| family | groups | seeds | different up to names, at least | " in text
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1
    found = by_assignor(outcomes[outcomes["scope"] == "generated"], [second])[second]
    assert f"{found.missed.percent_with_interval} | " in text
    assert replace_numbers(LIBRARIES.read_text(), text, where="page", place="implementations")


def test_event_streams_are_not_shown_as_a_study_of_libraries(results):
    configuration = {**results.manifest["configuration"], "study": {"file": "trajectories.yaml"}}
    manifest = {**results.manifest, "configuration": configuration}
    page = f"{BEGIN}\n{END}\n<!-- trajectories: begin -->\n<!-- trajectories: end -->\n"
    assert render_places(replace(results, manifest=manifest), page).keys() == {"numbers"}


def test_a_missing_study_is_an_error(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    assert main([str(tmp_path), str(page)]) == 2
    assert "there is no manifest" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
    assert page.read_text() == f"{BEGIN}\n{END}\n"


def test_the_published_page_has_both_marks():
    assert replace_numbers(PAGE.read_text(), "new", where="study.md").count("new\n") == 1
