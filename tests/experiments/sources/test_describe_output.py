"""Output of kafka-consumer-groups.sh: each layout, CSV tables, damaged texts, unnamed topics."""

import json
import os
import random
import uuid
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay.experiments.sources.table_rows import MemberRow, OffsetRow
from kassay.reference.model.errors import InputError
from tests.conftest import SHARED_FIXTURES
from tests.experiments.sources import capture_texts, layouts
from tests.experiments.sources.layouts import MemberLine, OffsetLine
from tests.experiments.sources.reading import parse_text
from tests.stored_cases import stored_cases

# A name with "-" in front of another name is refused, as it can be a line of a difference.
NAME = st.text("abcXYZ019._-", min_size=1, max_size=34).filter(
    lambda s: s not in (".", "..") and not s.startswith("-")
)
SPACED = st.builds(lambda a, b: f"{a} {b}", NAME, NAME)
OFFSET = st.none() | st.integers(0, 10**13)
HOST = st.integers(0, 255).map(lambda n: f"/10.0.{n}.1")
NUMBERS = st.lists(st.integers(0, 300), min_size=1, max_size=5, unique=True).map(sorted)


@st.composite
def lines(draw, *, names=NAME, idle=False, one_group=False):
    group = draw(names)
    rows = []
    for index in range(draw(st.integers(1, 6))):
        client, host = draw(names), draw(HOST)
        ours = group if one_group else draw(st.sampled_from([group, group + "2"]))
        member = f"{client}-{uuid.UUID(int=draw(st.integers(0, 2**128 - 1)))}-{index}"[:-2]
        owned = draw(st.booleans())
        consumer = (member, host, client) if owned else (None, None, None)
        rows.append(
            OffsetLine(ours, f"{draw(NAME)}{index}", index, draw(OFFSET), draw(OFFSET), *consumer)
        )
        if idle and draw(st.booleans()):
            rows.append(
                OffsetLine(
                    ours, None, None, None, None, f"{client}-{uuid.UUID(int=index)}", host, client
                )
            )
    return rows


@st.composite
def members(draw):
    group, rows = draw(SPACED | NAME), []
    for index in range(draw(st.integers(1, 5))):
        topics = draw(st.lists(NAME, max_size=3, unique=True))
        current = tuple((topic, tuple(draw(NUMBERS))) for topic in topics)
        target = tuple((topic, tuple(draw(NUMBERS))) for topic in topics)
        instance = draw(st.none() | NAME)
        consumer = f"{draw(NAME)}-{index}"
        client = draw(NAME | SPACED)
        rows.append(
            MemberLine(
                group,
                consumer,
                instance,
                draw(HOST),
                client,
                current,
                draw(st.integers(0, 99)),
                target,
            )
        )
    return rows


def read(text):
    return [row for table in parse_text(text, name="x").tables for row in table.rows]


def parsed_row(row, *, group=True):
    known = (row.topic, row.partition, row.current, row.end, row.lag)
    return (row.group if group else None, *known, row.consumer_id, row.host, row.client_id)


def expected_row(line, *, group=True):
    known = (line.topic, line.partition, line.current, line.end, line.lag)
    return (line.group if group else None, *known, line.consumer, line.host, line.client)


def parsed_owner(row):
    return (row.group, row.topic, row.partition, row.current, row.end, row.lag, row.owner)


def expected_owner(line):
    named = None if line.consumer is None else layouts.owner(line)
    return (line.group, line.topic, line.partition, line.current, line.end, line.lag, named)


@pytest.mark.parametrize("render", [layouts.offsets_0_9, layouts.offsets_0_10_0])
@given(rows=lines())
def test_tables_with_owners_are_parsed(render, rows):
    assert [parsed_owner(row) for row in read(render(rows))] == [
        expected_owner(line) for line in rows
    ]


@given(rows=lines(idle=True, one_group=True))
def test_ids_joined_to_hosts_are_parsed(rows):
    found = [parsed_row(row) for row in read(layouts.offsets_0_10_2(rows))]
    assert found == [expected_row(line, group=False) for line in rows]


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("group", [False, True])
@given(rows=lines(names=NAME | SPACED))
def test_tables_with_variable_widths_are_parsed(rows, group, verbose):
    text = layouts.offsets_adaptive(rows, group=group, verbose=verbose)
    assert [parsed_row(row) for row in read(text)] == [
        expected_row(line, group=group) for line in rows
    ]


@given(rows=lines(names=NAME | SPACED, one_group=True), more=lines(one_group=True))
def test_tables_of_different_widths_in_one_text_are_parsed(rows, more):
    text = layouts.offsets_adaptive(rows) + layouts.offsets_adaptive(more)
    assert [parsed_row(row) for row in read(text)] == [
        expected_row(line) for line in [*rows, *more]
    ]


@given(rows=members())
def test_members_are_parsed(rows):
    found = [
        (r.group, r.consumer_id, r.instance_id, r.host, r.client_id, str(r.partitions))
        for r in read(layouts.members_plain(rows))
    ]
    assert found == [
        (w.group, w.consumer, w.instance, w.host, w.client, layouts.partition_count(w))
        for w in rows
    ]


@given(rows=members())
def test_assignments_of_release_2_are_parsed(rows):
    found = [
        (r.consumer_id, r.instance_id, r.assignment) for r in read(layouts.members_verbose_2(rows))
    ]
    assert found == [(member.consumer, member.instance, member.assignment) for member in rows]


@pytest.mark.parametrize("upgraded", [False, True])
@given(rows=members())
def test_epochs_and_both_assignments_of_release_4_are_parsed(rows, upgraded):
    found = [
        (r.consumer_id, r.instance_id, r.epoch, r.assignment, r.target)
        for r in read(layouts.members_verbose_4(rows, upgraded=upgraded))
    ]
    assert found == [(w.consumer, w.instance, w.epoch, w.assignment, w.target) for w in rows]


STATES = ("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Reconciling")
STATE_LINES = st.builds(
    layouts.StateLine,
    group=NAME | SPACED,
    coordinator=st.integers(1, 65_535).map(lambda port: f"10.0.0.1:{port}"),
    node=st.integers(0, 10**6),
    strategy=st.sampled_from(["", "range", "cooperative-sticky", "uniform"]),
    state=st.sampled_from(STATES),
    members=st.integers(0, 10**4),
    epoch=st.none() | st.integers(0, 10**6),
)


@pytest.mark.parametrize("verbose", [False, True])
@given(state_lines=st.lists(STATE_LINES, min_size=1, max_size=3, unique_by=lambda line: line.group))
def test_states_are_parsed(state_lines, verbose):
    text = "".join(layouts.state(state_line, verbose=verbose) for state_line in state_lines)
    assert [(r.group, r.strategy or "", r.state, r.members, r.epoch) for r in read(text)] == [
        (w.group, w.strategy, w.state, w.members, w.epoch if verbose else None) for w in state_lines
    ]


@pytest.mark.parametrize(("text", "message"), stored_cases("damaged_csv_tables"))
def test_damaged_tables_are_errors_with_a_place(text, message):
    with pytest.raises(InputError) as failed:
        parse_text(text, name="x.csv")
    assert str(failed.value).startswith(message)


TEXTS = capture_texts.texts()
MUTATIONS = int(os.environ.get("KASSAY_FUZZ", "800")) // 4


def row_lines(text):
    """Return the lines that show a partition or a member."""
    tables = parse_text(text, name="x").tables
    return [r.line for t in tables for r in t.rows if isinstance(r, OffsetRow | MemberRow)]


@pytest.mark.parametrize("index", [i for i, text in enumerate(TEXTS) if row_lines(text)])
def test_a_cut_row_is_an_error_with_its_line(index):
    text = TEXTS[index]
    rows = row_lines(text)
    lines = text.split("\n")
    line = rows[len(rows) // 2]
    lines[line - 1] = lines[line - 1][: len(lines[line - 1].rstrip()) // 2]
    with pytest.raises(InputError, match=rf"^x:{line}: "):
        parse_text("\n".join(lines), name="x")


def test_one_changed_character_never_removes_a_row_silently():
    seeded = random.Random(7)
    for _ in range(MUTATIONS):
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


SAMPLES = sorted((SHARED_FIXTURES / "describe").glob("*.txt"))

_CONSUMER_FIELDS = ("consumer_id", "host", "client_id")


def expected_form(table):
    kind = str(table.kind)
    expected_table = {"kind": kind}
    if kind in ("offsets", "members"):
        expected_table["columns"] = list(table.columns)
    rows = []
    for row in table.rows:
        fields = asdict(row)
        fields.pop("line")
        if kind == "offset-checker":
            fields = {key: fields[key] for key in fields if key not in _CONSUMER_FIELDS}
        elif isinstance(row, OffsetRow) and "OWNER" not in table.columns:
            fields.pop("owner")
        if isinstance(row, MemberRow):
            fields.pop("epoch")
            fields.pop("target")
            fields.pop("unnamed")
            fields.pop("subscription")
            assignment = fields.pop("assignment")
            if assignment is not None:
                fields["assignment"] = {topic: list(numbers) for topic, numbers in assignment}
        if kind == "state":
            fields.pop("epoch")
        if kind == "reset":
            fields = dict(zip(("topic", "partition", "new-offset"), row.cells, strict=True))
        rows.append(fields)
    return expected_table | {"rows": rows}


@pytest.mark.skipif(not SAMPLES, reason="needs ../shared/fixtures/describe")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_published_samples_are_parsed(sample):
    expected = json.loads((sample.parent / "expected.json").read_text())[sample.name]
    for table in expected:
        for row in table.get("rows", ()):  # the parser does not keep the coordinator
            row.pop("coordinator", None)
            row.pop("coordinator_id", None)
    parsed = parse_text(sample.read_text(), name=sample.name)
    notices = [{"kind": "notice", notice.kind: notice.group} for notice in parsed.notices]
    assert [*notices, *map(expected_form, parsed.tables)] == expected
