"""Bytes of the records of a KIP-848 group."""

import json
import uuid

import pytest

from benchmarks.record_encoder import (
    current_assignment,
    encode_record,
    group_epoch,
    member_metadata,
    target_assignment,
    target_epoch,
)
from kassay.reference.protocol.message_decoder import decode

TOPIC = uuid.UUID("809d4580-aaed-3156-9abc-38d58f77f840")
EPOCH = group_epoch("g", 3, -2)
TARGET_EPOCH = target_epoch("g", 3, 1_000)
METADATA = member_metadata(
    "g",
    "m",
    instance_id=None,
    rack="r",
    client_id="c",
    subscription=("t", "u"),
    rebalance_timeout=300_000,
)
TARGET = target_assignment("g", "m", ((TOPIC, (2, 0)),))
CURRENT = current_assignment(
    "g", "m", epoch=3, previous_epoch=2, state=1, assigned=((TOPIC, (0,)),), revoking=()
)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (EPOCH, "0003000167", "000000000003010008fffffffffffffffe"),
        (TARGET_EPOCH, "0006000167", "00000000000301000800000000000003e8"),
        (METADATA, "000500016700016d", "00000002720263032f63030274027501000493e00000"),
        (
            TARGET,
            "000700016700016d",
            "000002809d4580aaed31569abc38d58f77f8400300000002000000000000",
        ),
        (
            CURRENT,
            "000800016700016d",
            "000000000003000000020102809d4580aaed31569abc38d58f77f8400200000000000100",
        ),
    ],
    ids=["group epoch", "target epoch", "member metadata", "target", "current assignment"],
)
def test_records_have_the_bytes_of_kafkas_schemas(record, key: str, value: str) -> None:
    assert [part.hex() for part in encode_record(record)] == [key, value]
    decoded = decode(bytes.fromhex(key), bytes.fromhex(value)).value
    expected = {**record.fields, "version": 0}
    # JSON has lists where the fields have tuples.
    assert json.dumps(decoded, default=str, sort_keys=True) == json.dumps(
        expected, default=str, sort_keys=True
    )
