"""Raw records of ``__consumer_offsets`` become table rows."""

from collections.abc import Mapping
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError

from kassay.experiments.history import group_records as records_of_groups
from tests.experiments.history.sample_records import decode_rows, group_records, sample_rows


def test_batches_give_the_same_rows_as_single_records_without_commits() -> None:
    raw = sample_rows("g", "range", seed=1, steps=6)
    *rows, counted = decode_rows(raw)
    expected = [record for record in group_records(raw) if record.kind == 2]
    assert [(row["kind"], row["offset"]) for row in rows] == [(2, one.offset) for one in expected]
    assert (counted["records"], counted["kind"]) == (len(raw) - len(expected), None)


def test_records_without_a_key_are_errors() -> None:
    [row] = decode_rows([{"key": None, "value": None, "partition": 0, "offset": 3, "timestamp": 1}])
    assert (row["offset"], row["error"]) == (3, "the key of a record must not be null")


def test_a_damaged_record_becomes_an_error_row_and_the_others_are_decoded() -> None:
    raw = sample_rows("g", "range", seed=1, steps=4)
    raw[4] = {**raw[4], "value": raw[4]["value"][:30]}
    rows = list(decode_rows(raw))
    [error] = [row for row in rows if row["error"]]
    assert error["offset"] == 4
    assert "group metadata" in error["error"]
    assert sum(row["records"] for row in rows) == len(raw)


def test_records_behind_an_open_transaction_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"key": b"k", "value": b"v", "partition": 0, "offset": 7, "timestamp": (1, 5)}
    record = Mock(**{f"{name}.return_value": value for name, value in values.items()})
    record.error.return_value = None
    end = Mock(**{"partition.return_value": 0})
    end.error.return_value = KafkaError(KafkaError._PARTITION_EOF)

    def consumer(settings: Mapping[str, str]) -> Mock:
        is_hidden = settings["isolation.level"] == "read_committed"
        return Mock(**{"consume.return_value": [*[record] * (not is_hidden), end]})

    monkeypatch.setattr(records_of_groups, "Consumer", consumer)
    reader = records_of_groups.OffsetsReader({"bootstrap.servers": "broker:9092"})
    assert [row["offset"] for row in reader.read({0: 7})] == [7]
