"""Documents of share groups, Streams groups, Streams applications and Connect clusters."""

import json

import pytest

from kassay.reference.documents.json_codec import parse_group
from kassay.reference.documents.kind_documents import Kind, parse_kind_document, read_kind_documents
from kassay.reference.model.errors import InputError

PROCESS = "00000000-0000-0000-0000-000000000001"
VALID = {
    Kind.SHARE: {
        "topics": {"t": 2, "u": {"partitions": 3, "assignable": [0, 2]}},
        "members": [{"id": "m", "topics": ["t"], "owned": [["gone", 7]], "rack": None}],
    },
    Kind.STREAMS_GROUP: {
        "subtopologies": {"a": {"partitions": 2, "stateful": True}},
        "num_standby_replicas": 1,
        "rack_aware_tags": ["zone"],
        "members": [
            {
                "id": "m",
                "process": "p",
                "tags": {"zone": "z"},
                "active": {"a": [0]},
                "offsets": {"a": {"1": 100}},
            }
        ],
    },
    Kind.STREAMS: {
        "subtopologies": {
            "0": {"partitions": 1, "stateful": True, "racks": [["r"]], "end_offsets": [9]}
        },
        "config": {"num_standby_replicas": 1, "rack_aware_assignment_strategy": "min_traffic"},
        "processes": [{"id": PROCESS, "threads": 2, "active": ["0_0"], "lags": {"0_0": 5}}],
    },
    Kind.CONNECT: {
        "protocol": "sessioned",
        "scheduled_rebalance_max_delay_ms": 40000,
        "steps": [
            {
                "workers": ["w"],
                "connectors": {"c-1": 2},
                "running": {"w": {"connectors": ["c-1"], "tasks": ["c-1-0"]}},
            },
            {"workers": ["w"], "connectors": {}, "wait_ms": 5, "until_stable": False},
        ],
    },
}


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
    ("kind", "path", "value", "expected"),
    [
        (Kind.SHARE, ["topics", "t"], -1, "topics['t'].partitions must be from 0"),
        (Kind.SHARE, ["topics", "u", "assignable"], [3], "assignable[0]: expected a partition num"),
        (Kind.SHARE, ["members", 0, "topics"], ["x"], "members[0].topics[0]: expected a topic of"),
        (Kind.SHARE, ["members", 0, "owned"], [["t"]], "owned[0]: expected [topic, partition num"),
        (Kind.SHARE, ["members", 0, "rank"], "r", "members[0]: unknown key 'rank'"),
        (Kind.STREAMS_GROUP, ["members", 0, "process"], 3, "members[0].process: expected a string"),
        (
            Kind.STREAMS_GROUP,
            ["members", 0, "active"],
            {"a": [2]},
            "active['a'][0]: expected a par",
        ),
        (
            Kind.STREAMS_GROUP,
            ["members", 0, "standby"],
            {"b": []},
            "standby: expected a subtopolog",
        ),
        (
            Kind.STREAMS_GROUP,
            ["members", 0, "offsets"],
            {"a": {"x": 1}},
            "partition numbers below 2",
        ),
        (
            Kind.STREAMS_GROUP,
            ["num_standby_replicas"],
            True,
            "num_standby_replicas: expected an in",
        ),
        (Kind.STREAMS, ["subtopologies", "0", "stateful"], 1, "stateful: expected true or false"),
        (
            Kind.STREAMS,
            ["subtopologies", "0", "end_offsets"],
            [],
            "expected one entry per partitio",
        ),
        (Kind.STREAMS, ["subtopologies"], {"a": {}}, "expected a number as the name of the subtop"),
        (
            Kind.STREAMS,
            ["processes", 0, "id"],
            "p",
            "processes[0].id: expected a UUID in lower cas",
        ),
        (Kind.STREAMS, ["processes", 0, "threads"], 0, "processes[0].threads must be at least 1"),
        (
            Kind.STREAMS,
            ["processes", 0, "active"],
            ["0_1"],
            "active[0]: expected a task SUBTOPOLOG",
        ),
        (
            Kind.STREAMS,
            ["config", "rack_aware_assignment_strategy"],
            "x",
            "expected one of none, mi",
        ),
        (Kind.CONNECT, ["steps", 0, "workers"], ["w", "w"], "steps[0].workers: a worker is repeat"),
        (
            Kind.CONNECT,
            ["steps", 0, "connectors"],
            {"c": "2"},
            "connectors['c']: expected an integ",
        ),
        (Kind.CONNECT, ["steps", 1, "wait_ms"], -5, "steps[1].wait_ms must be from 0 to"),
        (Kind.CONNECT, ["steps", 0, "running", "w", "tasks"], ["c"], "expected a task such as"),
        (Kind.CONNECT, ["protocol"], "lazy", "protocol: expected sessioned, compatible or eager"),
    ],
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
    with pytest.raises(InputError, match="kind: expected 'connect', which the assignor reads"):
        parse_kind_document(document, kind=Kind.CONNECT)
    with pytest.raises(InputError, match=r"got 'consumer' \(the key is missing"):
        parse_kind_document(VALID[Kind.SHARE], kind=Kind.SHARE)


def test_a_document_of_another_kind_is_no_consumer_group():
    document = VALID[Kind.SHARE] | {"kind": "share"}
    with pytest.raises(
        InputError, match="kind 'share' is not a consumer group; only kassay import, plan"
    ):
        parse_group(document)


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
