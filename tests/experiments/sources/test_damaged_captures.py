"""Damaged texts give rows of the original text, or an error with its place."""

import os
import random
import re

import pytest

from kassay.experiments.sources.capture_files import import_groups
from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.describe_rows import MemberRow, OffsetRow
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError
from tests.experiments.sources import capture_texts

TEXTS = capture_texts.texts()
MUTATIONS = int(os.environ.get("KASSAY_FUZZ", "800"))
CUTS = 60
LOCATED = re.compile(r"(x|.*/x\.txt):\d+: |group ['\"]|.*/x\.txt: ", re.DOTALL)


def row_lines(text):
    """Return the lines that show a partition or a member."""
    tables = parse_text(text, name="x").tables
    return [r.line for t in tables for r in t.rows if isinstance(r, OffsetRow | MemberRow)]


def error_of(read, *arguments, **options):
    """Return the message of an input error, or None."""
    try:
        read(*arguments, **options)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("index", range(len(TEXTS)))
def test_cut_texts_give_complete_rows_or_an_error(index):
    text = TEXTS[index]
    whole = capture_texts.rows_of(text)
    positions = random.Random(index).sample(range(len(text)), min(CUTS, len(text)))
    for position in positions:
        message = error_of(capture_texts.rows_of, text[:position])
        if message is not None:
            assert LOCATED.match(message)
            continue
        rows = capture_texts.rows_of(text[:position])
        assert rows == whole[: len(rows)], text[:position][-200:]


@pytest.mark.parametrize("index", range(len(TEXTS)))
def test_log_lines_between_rows_are_ignored(index):
    text = TEXTS[index]
    lines = text.split("\n")
    at = random.Random(index).randrange(len(lines))
    assert capture_texts.rows_of(
        "\n".join([*lines[:at], capture_texts.LOG_LINE, *lines[at:]])
    ) == capture_texts.rows_of(text)


@pytest.mark.parametrize("index", [i for i, text in enumerate(TEXTS) if row_lines(text)])
def test_a_log_line_at_the_end_of_a_row_is_an_error(index):
    lines = TEXTS[index].split("\n")
    for line in (row_lines(TEXTS[index])[0], row_lines(TEXTS[index])[-1]):
        joined = [
            *lines[: line - 1],
            lines[line - 1].rstrip() + capture_texts.LOG_LINE,
            *lines[line:],
        ]
        assert error_of(parse_text, "\n".join(joined), name="x").startswith(f"x:{line}: ")


@pytest.mark.parametrize("index", [i for i, text in enumerate(TEXTS) if row_lines(text)])
def test_a_cut_row_is_an_error_with_its_line(index):
    text = TEXTS[index]
    rows = row_lines(text)
    lines = text.split("\n")
    line = rows[len(rows) // 2]
    lines[line - 1] = lines[line - 1][: len(lines[line - 1].rstrip()) // 2]
    with pytest.raises(InputError, match=rf"^x:{line}: "):
        parse_text("\n".join(lines), name="x")


def test_damaged_texts_give_groups_or_errors_with_a_place(tmp_path):
    seeded, file = random.Random(20261121), tmp_path / "x.txt"
    documents = 0
    for _ in range(MUTATIONS):
        text = capture_texts.damage(seeded.choice(TEXTS), seeded)
        message = error_of(parse_text, text, name="x")
        if message is not None:
            assert LOCATED.match(message), message
            continue
        file.write_text(text, encoding="utf-8")
        for imported in import_groups([file], ImportOptions()):
            if imported.error is not None:
                assert LOCATED.match(imported.error), imported.error
            elif imported.group is not None:
                documents += group_document(imported.group)["id"] is not None
    assert documents > MUTATIONS // 20


def test_one_changed_character_never_removes_a_row_silently():
    seeded = random.Random(7)
    for _ in range(MUTATIONS // 4):
        text = seeded.choice(TEXTS)
        parsed = parse_text(text, name="x")
        rows = [row for table in parsed.tables for row in table.rows]
        if not rows:
            continue
        line = seeded.choice(rows).line
        lines = text.split("\n")
        spot = seeded.randrange(len(lines[line - 1]))
        lines[line - 1] = (
            lines[line - 1][:spot] + seeded.choice(" -0x/,") + lines[line - 1][spot + 1 :]
        )
        try:
            found = parse_text("\n".join(lines), name="x")
        except InputError:
            continue
        remaining = [row for table in found.tables for row in table.rows]
        assert [r for r in remaining if r.line != line] == [r for r in rows if r.line != line]
        assert len(remaining) == len(rows), lines[line - 1]
