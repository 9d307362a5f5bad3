import re

import pytest

from kassay.experiments.report.study_tables import by_scope
from tools.insert_published_numbers import BEGIN, END, main, render_numbers, replace_numbers

pytestmark = pytest.mark.spark


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


@pytest.mark.parametrize("page", ["nothing", f"{END} {BEGIN}", BEGIN])
def test_a_page_without_both_marks_is_an_error(page):
    with pytest.raises(ValueError, match=r"study\.md must contain <!-- numbers: begin -->"):
        replace_numbers(page, "new", where="study.md")


def test_a_missing_study_is_an_error(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    assert main([str(tmp_path), str(page)]) == 2
    assert "there is no manifest" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
    assert page.read_text() == f"{BEGIN}\n{END}\n"
