"""CSV files with names that are formulas."""

import csv
import io

import pytest

from kassay.reference.documents.files import formulas_as_text, write_csv


def cells(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize(
    "name",
    ['=HYPERLINK("http://x","y")', "+1+1", "-2+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1"],
)
def test_a_name_that_is_a_formula_becomes_text(name):
    assert cells(write_csv(["m"], [[name]])) == [["m"], [f"'{name}"]]


@pytest.mark.parametrize("value", [-5, "-5", "-0.25", "+1e3", "c-0", "a=b", ""])
def test_numbers_and_ordinary_names_are_not_changed(value):
    assert list(csv.reader(io.StringIO(write_csv(["m", "n"], [[value, 1]]))))[1] == [
        str(value),
        "1",
    ]


def test_a_csv_without_formulas_is_not_changed():
    text = 'series,gap\n"a, b",-0.5\n'
    assert formulas_as_text(text) == text
    assert formulas_as_text("") == ""


def test_a_column_name_that_is_a_formula_becomes_text():
    assert formulas_as_text("x,=y\n1,@z\n") == "x,'=y\n1,'@z\n"
