"""Documents of share groups, Streams groups, Streams applications and Connect clusters."""

import json

import pytest

from kassay.reference.documents.json_codec import parse_group
from kassay.reference.documents.kind_documents import Kind, parse_kind_document, read_kind_documents
from kassay.reference.model.errors import InputError
from tests.stored_cases import stored_cases

VALID = stored_cases("kind_documents")


def changed(kind, path, value):
    document = json.loads(json.dumps(VALID[kind])) | {"kind": str(kind)}
    *parents, last = path
    place = document
    for key in parents:
        place = place[key]
    place[last] = value
    return document


@pytest.mark.parametrize("kind", list(VALID))
def test_a_valid_document_keeps_its_id_and_content(kind):
    document = VALID[kind] | {"kind": str(kind), "id": "x", "scenario": "join"}
    parsed = parse_kind_document(document, kind=kind)
    assert (parsed.kind, parsed.id, parsed.content) == (kind, "x", document)


@pytest.mark.parametrize(
    ("kind", "path", "value", "expected"), stored_cases("invalid_kind_documents")
)
def test_an_invalid_value_is_an_error_with_the_field(kind, path, value, expected):
    with pytest.raises(InputError) as error:
        parse_kind_document(changed(kind, path, value), kind=kind, where="file:3")
    assert str(error.value).startswith("file:3: ")
    assert expected in str(error.value)


def test_a_repeated_id_is_an_error():
    member = VALID[Kind.SHARE]["members"][0]
    with pytest.raises(InputError, match=r"members\[1\]\.id: 'm' is repeated"):
        parse_kind_document(changed(Kind.SHARE, ["members"], [member, member]), kind=Kind.SHARE)


def test_a_document_of_another_kind_is_an_error():
    document = VALID[Kind.SHARE] | {"kind": "share"}
    with pytest.raises(InputError, match="kind: the assignor requires 'connect'"):
        parse_kind_document(document, kind=Kind.CONNECT)
    with pytest.raises(InputError, match=r"got 'consumer' \(the key is missing"):
        parse_kind_document(VALID[Kind.SHARE], kind=Kind.SHARE)


def test_a_document_of_another_kind_is_no_consumer_group():
    with pytest.raises(InputError, match="kind 'share' is not a consumer group; only kassay impo"):
        parse_group(VALID[Kind.SHARE] | {"kind": "share"})


def test_each_document_of_a_file_is_read_and_errors_keep_the_id():
    lines = [
        json.dumps(VALID[Kind.SHARE] | {"kind": "share", "id": "a"}) + "\n",
        '{"kind": "share", "id": "b", "topics": {}}\n',
        "{\n",
    ]
    found = list(read_kind_documents(lines, name="f", kind=Kind.SHARE))
    assert [id for id, _ in found] == ["a", "b", None]
    first, second = (str(one) for _, one in found[1:])
    assert first == "f:2: missing key 'members'"
    assert second.startswith("f:3: not valid JSON: expecting property name enclosed")
