"""Damaged texts end in rows that were there, or in a located error."""

import os
import random
import re

import pytest

from kassay.experiments.sources.capture_files import import_groups
from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.describe_output.typed_rows import MemberRow, OffsetRow
from kassay.experiments.sources.group_documents import ImportOptions
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError
from tests.experiments.sources import corpus

TEXTS = corpus.texts()
# A million on demand: KASSAY_FUZZ=1000000.
MUTATIONS = int(os.environ.get("KASSAY_FUZZ", "4000"))
CUTS = 60
LOCATED = re.compile(r"(x|.*/x\.txt):\d+: |group ['\"]|.*/x\.txt: ", re.DOTALL)


def places(text):
    """The lines that show a partition or a member."""
    tables = parse_text(text, name="x").tables
    return [r.line for t in tables for r in t.rows if isinstance(r, OffsetRow | MemberRow)]


def complaint(read, *arguments, **options):
    """What a reader says of bad input, None if it takes it."""
    try:
        read(*arguments, **options)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("index", range(len(TEXTS)))
def test_a_cut_text_gives_whole_rows_or_an_error(index):
    text = TEXTS[index]
    whole = corpus.rows_of(text)
    positions = random.Random(index).sample(range(len(text)), min(CUTS, len(text)))
    for position in positions:
        said = complaint(corpus.rows_of, text[:position])
        if said is not None:
            assert LOCATED.match(said)
            continue
        rows = corpus.rows_of(text[:position])
        assert rows == whole[: len(rows)], text[:position][-200:]


@pytest.mark.parametrize("index", range(len(TEXTS)))
def test_a_stray_log_line_between_rows_is_passed_over(index):
    text = TEXTS[index]
    lines = text.split("\n")
    at = random.Random(index).randrange(len(lines))
    assert corpus.rows_of("\n".join([*lines[:at], corpus.STRAY, *lines[at:]])) == corpus.rows_of(
        text
    )


@pytest.mark.parametrize("index", [i for i, text in enumerate(TEXTS) if places(text)])
def test_a_log_line_written_on_behind_a_row_is_an_error(index):
    lines = TEXTS[index].split("\n")
    for line in (places(TEXTS[index])[0], places(TEXTS[index])[-1]):
        glued = [*lines[: line - 1], lines[line - 1].rstrip() + corpus.STRAY, *lines[line:]]
        assert complaint(parse_text, "\n".join(glued), name="x").startswith(f"x:{line}: ")


@pytest.mark.parametrize("index", [i for i, text in enumerate(TEXTS) if places(text)])
def test_a_row_cut_in_mid_line_is_an_error_that_shows_it(index):
    text = TEXTS[index]
    rows = places(text)
    lines = text.split("\n")
    line = rows[len(rows) // 2]
    lines[line - 1] = lines[line - 1][: len(lines[line - 1].rstrip()) // 2]
    with pytest.raises(InputError, match=rf"^x:{line}: "):
        parse_text("\n".join(lines), name="x")


def test_damaged_texts_end_in_a_document_or_a_located_error(tmp_path):
    seeded, file = random.Random(20261121), tmp_path / "x.txt"
    documents = 0
    for _ in range(MUTATIONS):
        text = corpus.damage(seeded.choice(TEXTS), seeded)
        said = complaint(parse_text, text, name="x")
        if said is not None:
            assert LOCATED.match(said), said
            continue
        file.write_text(text, encoding="utf-8")
        for imported in import_groups([file], ImportOptions()):
            if imported.error is not None:
                assert LOCATED.match(imported.error), imported.error
            elif imported.group is not None:
                documents += group_document(imported.group)["id"] is not None
    assert documents > MUTATIONS // 20


def test_one_changed_character_costs_no_row_silently():
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
        left = [row for table in found.tables for row in table.rows]
        assert [r for r in left if r.line != line] == [r for r in rows if r.line != line]
        assert len(left) == len(rows), lines[line - 1]
