"""Each line of a capture is used, noise or an error, and damage does not change groups silently."""

import os
import random
from functools import cache

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import import_groups
from kassay.experiments.sources.read_capture import read_capture
from tests.conftest import ROOT, SHARED_FIXTURES
from tests.experiments.sources import capture_texts
from tests.experiments.sources.capture_damage import (
    ANYWHERE,
    DAMAGE,
    IN_JSON,
    JSON_DAMAGE,
    TABLES,
    WORDS,
    is_row,
)

FIXTURES = sorted(
    file for kind in ("describe", "json") for file in (SHARED_FIXTURES / kind).glob("*")
)
PER_TEXT = max(6, int(os.environ.get("KASSAY_FUZZ", "0")) // 1000)
PER_KIND = max(10, int(os.environ.get("KASSAY_FUZZ", "0")) // 1000)
FOLDER = ROOT / "tests" / "data" / "captures"
CAPTURES = {file.name: file.read_text() for file in sorted(FOLDER.iterdir())}
WORD_TABLE, SHARE, STREAMS = (CAPTURES.pop(f"{name}.txt") for name in ("words", "share", "streams"))


def form(group):
    """Return what a capture shows of a group: the owner of each partition, and the members."""
    members = {(one.id, one.instance_id, tuple(sorted(one.owned))) for one in group.members}
    return members, {topic.name: topic.partitions for topic in group.topics}


def read_groups(text, folder):
    """Return the forms of the groups, and the ids of groups with an error."""
    file = folder / "describe.txt"
    file.write_text(text, encoding="utf-8")
    found = list(import_groups([file], ImportOptions()))
    groups = {one.id: form(one.group) for one in found if one.group is not None}
    groups |= {one.id: one.document.content for one in found if one.document is not None}
    return groups, {one.id for one in found if one.error is not None and one.document is None}


def assert_accounted(text):
    """Check that each line of a text has exactly one use or error."""
    read = read_capture(text, name="x")
    lines = sorted(read.account.lines())
    number = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    assert lines == list(range(1, number + 1)), str(read.account)


@cache
def tables():
    texts = [*capture_texts.texts(), WORD_TABLE]
    return [text for text in texts if any(map(is_row, text.split("\n")))]


def harmless():
    """Yield the names, texts and changes: all for one table, a sample for the others."""
    for name, change in (ANYWHERE | TABLES | WORDS | IN_JSON).items():
        yield f"words, {name}", WORD_TABLE, change
    for name, change in ANYWHERE.items():
        for kind, text in CAPTURES.items():
            yield f"{kind}, {name}", text, change
        yield f"share, {name}", SHARE, change
    for name, change in TABLES.items():
        yield f"share, {name}", SHARE, change
        yield f"Streams, {name}", STREAMS, change
    changes = list((ANYWHERE | TABLES | IN_JSON).items())
    for index, text in enumerate(tables()):
        for name, change in random.Random(index).sample(changes, min(PER_TEXT, len(changes))):
            yield f"{index}, {name}", text, change


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.name)
def test_each_line_of_the_fixtures_is_accounted_for(file):
    assert_accounted(file.read_text(errors="replace"))


@pytest.mark.long
def test_harmless_wrappings_are_read(tmp_path):
    refused, total = [], 0
    for seed, (name, text, change) in enumerate(harmless()):
        expected, errors = read_groups(text, tmp_path)
        if errors:
            continue  # a text that shows too little of its groups
        changed = "\n".join(change(text.split("\n"), random.Random(seed)))
        assert_accounted(changed)
        groups, errors = read_groups(changed, tmp_path)
        total += 1
        assert errors or groups == expected, f"{name}\n{changed}"
        if errors:
            refused.append(name)
    assert total > 500
    assert len(refused) <= total // 100, refused


@pytest.mark.parametrize("kind", [*DAMAGE, *(f"json {name}" for name in JSON_DAMAGE)])
def test_damage_is_an_error_or_changes_no_group(kind, tmp_path):
    silent = []
    is_json = kind.startswith("json ")
    change = JSON_DAMAGE[kind.removeprefix("json ")] if is_json else DAMAGE[kind]
    samples = random.Random(kind).sample(tables(), min(PER_KIND, len(tables())))
    tables_of_words = [WORD_TABLE, SHARE, STREAMS, WORD_TABLE]
    documents = [text for name, text in CAPTURES.items() if "json" in name]
    texts = [*documents * (PER_KIND // 3)]
    if not is_json:
        texts = [*samples, *tables_of_words * (PER_KIND // 3)]
    for seed, text in enumerate(texts):
        expected, _ = read_groups(text, tmp_path)
        changed = "\n".join(change(text.split("\n"), random.Random(seed)))
        assert_accounted(changed)
        groups, errors = read_groups(changed, tmp_path)
        different = {id for id in expected.keys() | groups if groups.get(id) != expected.get(id)}
        if not (different <= errors or (errors and different <= expected.keys())):
            silent.append((seed, sorted(map(str, different)), sorted(map(str, errors)), changed))
    assert not silent, f"{len(silent)} of {len(texts)}: {silent[0][:3]}\n{silent[0][3]}"
