"""Each line of a capture is used, noise or an error, and damage does not change groups silently."""

import json
import os
import random
from functools import cache

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.capture_files import import_groups
from kassay.experiments.sources.read_capture import read_capture
from tests.conftest import SHARED_FIXTURES
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
WORD_TABLE = """
GROUP  TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST       CLIENT-ID
pay    bills   0          10              60              50   pay-1        /10.0.0.1  app
pay    bills   1          12              12              0    pay-2        /10.0.0.2  app
pay    bills   2          7               9               2    pay-1        /10.0.0.1  app
shop   orders  0          1               1               0    -            -          -
shop   orders  1          2               4               2    shop-1       /10.0.0.3  web
"""
REST = "\n".join(
    json.dumps({
        "kind": "KafkaConsumerLag",
        "consumer_group_id": "g",
        "topic_name": "t",
        "partition_id": number,
        "consumer_id": f"c-{number % 2}",
        "client_id": "c",
        "lag": 3 * number,
    })
    for number in range(4)
) + "\n"  # fmt: skip
METRICS = "".join(
    f'kafka_consumergroup_lag{{consumergroup="g",partition="{number}",topic="t"}} {number}\n'
    for number in range(4)
)


SHARE = """
GROUP  CONSUMER-ID             HOST        CLIENT-ID  #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT
jobs   uhGHZ9m1TeaJznBlWdMKlw  /10.0.0.1   worker-1   2            5             orders:0,1
jobs   WVdibogQTNuMXO8dG37Kyg  /10.0.0.2   worker-2   3            5             orders:2;slow:0,1
mail   lnqLEqaXRrKBCvFmCR2xKQ  /10.0.0.2   worker-2   1            3             mails:0
"""
STREAMS = """
GROUP  MEMBER                  PROCESS  CLIENT-ID  ASSIGNMENTS
words  uhGHZ9m1TeaJznBlWdMKlw  p-1      app-1      ACTIVE: 0:[0,2]; 1:[0]; STANDBY: 1:[1];
words  WVdibogQTNuMXO8dG37Kyg  p-2      app-2      ACTIVE: 0:[1,3]; 1:[1]; STANDBY: 1:[0];
"""
BURROW = json.dumps({
    "error": False,
    "status": {
        "cluster": "local",
        "group": "g",
        "partition_count": 2,
        "partitions": [
            {"topic": "t", "partition": n, "owner": "10.0.0.1", "client_id": f"c{n}"}
            for n in range(2)
        ],
    },
}, indent=2) + "\n"  # fmt: skip
EVENTS = "".join(
    json.dumps({
        "kafka": {
            "topic": {"name": "t"},
            "consumergroup": {"id": "g", "partition": n, "client": {"member_id": f"m{n}"}},
        }
    })
    + "\n"
    for n in range(3)
)  # fmt: skip
CONNECT = json.dumps({
    "sink": {
        "status": {
            "name": "sink",
            "connector": {"state": "RUNNING", "worker_id": "a:8083"},
            "tasks": [{"id": n, "state": "RUNNING", "worker_id": f"{n}:8083"} for n in (0, 1)],
        }
    }
}) + "\n"  # fmt: skip
OTHERS = {
    "REST": REST,
    "metrics": METRICS,
    "Burrow": BURROW,
    "Metricbeat": EVENTS,
    "Connect": CONNECT,
}


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
        for kind, text in OTHERS.items():
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
    documents = [REST, EVENTS, BURROW, CONNECT]
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
