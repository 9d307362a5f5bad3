import io
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kassay.reference.documents.json_codec
from kassay import Assignment, InputError, load_group
from kassay.reference.documents.json_codec import (
    assignment_document,
    group_document,
    load_assignment,
    parse_assignment,
    parse_group,
    read_groups,
)
from tests.stored_cases import stored_cases
from tests.strategies import groups

SCHEMA = json.loads(
    Path(kassay.reference.documents.json_codec.__file__).with_name("group.schema.json").read_text()
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

FULL = stored_cases("group_with_every_key")


def test_a_group_document_with_every_key_is_equal_after_parsing_and_writing():
    VALIDATOR.validate(FULL)
    assert group_document(parse_group(FULL)) == FULL


@given(groups(weighted=True, messy=True))
def test_group_documents_are_equal_after_a_round_trip_and_match_the_schema(group):
    document = json.loads(json.dumps(group_document(group)))
    VALIDATOR.validate(document)
    assert parse_group(document) == group


def test_owned_partitions_may_be_given_per_topic():
    member = {"id": "a", "topics": [], "owned": {"u": [1, 0], "t": [2]}}
    group = parse_group({"topics": {}, "members": [member]})
    assert group.members[0].owned == [("u", 1), ("u", 0), ("t", 2)]
    assert group_document(group)["members"][0]["owned"] == [["u", 1], ["u", 0], ["t", 2]]


def test_a_topic_id_in_kafkas_base64_is_accepted():
    topics = {"t": {"partitions": 1, "id": "EsUA7Qt4ORCftGrw8ka-hw"}}
    group = parse_group({"topics": topics, "members": []})
    assert str(group.topics[0].uuid) == "12c500ed-0b78-3910-9fb4-6af0f246be87"


BAD = stored_cases("invalid_groups")


@pytest.mark.parametrize(("document", "message"), BAD, ids=[message for _, message in BAD])
def test_an_invalid_group_document_gives_one_error_with_field_and_value(document, message):
    with pytest.raises(InputError) as caught:
        parse_group(document, where="x")
    assert message in str(caught.value)
    assert str(caught.value).startswith("x: ")
    assert "\n" not in str(caught.value)


# Not expressible in JSON Schema: unique ids, one entry per partition, the form of a UUID;
# and it takes 2.0 for an integer.
BEYOND_SCHEMA = (
    "listed twice",
    "one entry per partition",
    "not a topic id",
    "got 2.0",
    "'t']: expected a partition count",
)


@pytest.mark.parametrize(
    "document", [d for d, message in BAD if not any(said in message for said in BEYOND_SCHEMA)]
)
def test_documents_rejected_by_the_parser_are_rejected_by_the_schema(document):
    assert not VALIDATOR.is_valid(document)


def read(text):
    return list(read_groups(io.StringIO(text), name="f.jsonl"))


LINE = '{"id": "g%d", "topics": {"t": 1}, "members": []}\n'


def test_json_lines_have_one_group_per_line_and_blank_lines_are_skipped():
    assert [group.id for _, group in read(LINE % 1 + "\n" + LINE % 2)] == ["g1", "g2"]


def test_one_json_document_may_span_several_lines():
    document = json.dumps(FULL, indent=2)
    assert [group.id for _, group in read(document)] == ["orders-2026-11"]


@pytest.mark.parametrize(
    "bad",
    ['{"id": "g9", "topics": {"t": 1}, "memb\n', '{"id": "x", "id": "y"}\n', "oops\n", "[1]\n"],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_invalid_json_line_does_not_affect_the_other_lines(bad, place):
    lines = [LINE % 1, LINE % 2]
    lines.insert(place, bad)
    results = read("".join(lines))
    errors = [group for _, group in results if isinstance(group, InputError)]
    assert len(results) == 3
    assert len(errors) == 1
    assert str(errors[0]).startswith(f"f.jsonl:{place + 1}: ")


def test_the_error_of_an_invalid_document_contains_the_group_id():
    ((group_id, error),) = read('{"id": "g7", "topics": {"t": -1}, "members": []}')
    assert group_id == "g7"
    assert isinstance(error, InputError)


def test_truncated_json_raises_an_error_with_the_line_number():
    ((_, error),) = read(json.dumps(FULL, indent=2)[:60])
    assert "f.jsonl:5: not valid JSON" in str(error)


def test_a_truncated_json_line_raises_an_error_with_its_line_number():
    (_, error), (_, good) = read((LINE % 1)[:30] + "\n" + LINE % 2)
    assert str(error).startswith("f.jsonl:1: not valid JSON")
    assert str(error).endswith("column 31, at the end of the text")
    assert not isinstance(good, InputError)


@pytest.mark.parametrize("text", ['{"topics": NaN}', '{"topics": {"t": Infinity}}', "[" * 100_000])
def test_nan_infinity_and_deep_nesting_are_errors(text):
    ((_, error),) = read(text)
    assert isinstance(error, InputError)


def test_an_empty_file_has_no_groups():
    assert read(" \n\n") == []


def test_load_group_requires_exactly_one_document(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(LINE % 1 + LINE % 2)
    with pytest.raises(InputError, match="expected one group document, got 2"):
        load_group(path)
    path.write_text(LINE % 1)
    assert load_group(path).id == "g1"
    path.write_text("{}")
    with pytest.raises(InputError, match="missing key 'topics'"):
        load_group(path)


def test_bytes_that_are_not_utf8_are_an_error(tmp_path):
    path = tmp_path / "g.json"
    path.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(InputError, match="must be text in UTF-8, got byte 0xff"):
        load_group(path)


def test_assignments_are_read_from_assignment_and_result_documents(tmp_path):
    assignment = Assignment({"a": [("t", 1), ("t", 0)], "b": []})
    document = json.loads(json.dumps(assignment_document(assignment)))
    assert document == {"a": [["t", 1], ["t", 0]], "b": []}
    assert parse_assignment(document) == assignment
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"id": "g", "assignment": document, "terminated": True}))
    assert load_assignment(path) == assignment
    path.write_text('{"assignment": null}')
    with pytest.raises(InputError, match="assignment: expected an object, got null"):
        load_assignment(path)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda s: st.lists(s) | st.dictionaries(st.text(), s),
        max_leaves=8,
    )
)
def test_any_json_value_is_a_group_or_an_input_error(value):
    for document in (value, {"topics": value, "members": []}, {"topics": {}, "members": [value]}):
        try:
            group = parse_group(document)
        except InputError:
            continue
        assert VALIDATOR.is_valid(group_document(group))


@pytest.mark.parametrize("owned", [[["t", 0], ["t"]], [["t", 0], ["t", True]], [["t", 0], 1]])
def test_the_error_of_an_invalid_owned_partition_names_its_location(owned):
    document = {"topics": {"t": 2}, "members": [{"id": "a", "topics": ["t"], "owned": owned}]}
    [(_, error)] = read_groups(io.StringIO(json.dumps(document)), name="g.json")
    assert str(error).startswith("g.json:1: members[0].owned[1]: expected")


def test_keys_of_the_document_format_are_valid_topic_and_member_names():
    member = {"id": "owned", "topics": ["topics", "owned"], "owned": {"owned": [0], "topics": [1]}}
    document = {"topics": {"owned": 1, "topics": 2}, "members": [member]}
    [(_, group)] = read_groups(io.StringIO(json.dumps(document, indent=1)), name="g.json")
    assert group == parse_group(document)


@given(groups(messy=True))
def test_a_group_read_from_a_file_equals_its_parsed_document(group):
    document = group_document(group)
    [(_, read)] = read_groups(io.StringIO(json.dumps(document)), name="g.json")
    assert read == group


def test_an_empty_rack_of_a_member_or_replica_is_no_rack():
    racks = [["", "a"], [""]]
    document = {
        "topics": {"t": {"partitions": 2, "racks": racks}},
        "members": [{"id": "a", "topics": ["t"], "rack": ""}],
    }
    group = parse_group(document)
    assert group.members[0].rack is None
    assert group.topics[0].racks == ((None, "a"), (None,))


def test_an_unknown_protocol_is_an_error():
    with pytest.raises(
        InputError, match="protocol must be one of classic, consumer, simple, got 'share'"
    ):
        parse_group({"topics": {}, "members": [], "protocol": "share"})


def test_the_error_line_of_an_import_stays_the_error_of_its_group():
    lines = io.StringIO('{"id": "g", "error": "captures.txt:4: cut"}\n')
    [(id, error)] = read_groups(lines, name="x.jsonl")
    assert id == "g"
    assert str(error) == "x.jsonl:1: not imported: captures.txt:4: cut"
