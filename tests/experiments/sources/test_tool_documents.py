"""Documents of monitoring tools and of Kafka's tools give groups, partition counts or sizes."""

import json

import pytest

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.capture_files import import_groups, load_metadata
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import WeightSource
from tests.conftest import SHARED_FIXTURES
from tests.experiments.sources.reading import content_of as read_output
from tests.stored_cases import stored_cases

SAMPLES = SHARED_FIXTURES / "json"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs ../shared/fixtures/json")


def partition(number, owner="10.0.0.1", lag=5, **more):
    end = {"offset": 100, "timestamp": 1, "lag": lag}
    return {
        "topic": "t",
        "partition": number,
        "owner": owner,
        "end": end,
        "current_lag": lag,
        **more,
    }


def burrow(*partitions, count=None, error=False):
    status = {"cluster": "c", "group": "g", "status": "OK", "partitions": list(partitions)}
    status["partition_count"] = len(partitions) if count is None else count
    return json.dumps({"error": error, "message": "no cluster", "status": status, "request": {}})


def rest(kind, *data, next_page=None):
    return json.dumps({"kind": kind, "metadata": {"next": next_page}, "data": list(data)})


def consumer(name, **more):
    return {"consumer_group_id": "g", "consumer_id": name, "client_id": name[:2], **more}


def lag(number, name, value=7):
    return {**consumer(name), "topic_name": "t", "partition_id": number, "lag": value}


@pytest.fixture
def write(tmp_path):
    def write(**texts):
        for stem, text in texts.items():
            (tmp_path / f"{stem}.json").write_text(text)
        return tmp_path

    return write


def one(path, options=None):
    (found,) = import_groups([path], options or ImportOptions())
    assert found.error is None
    return found.group


def test_burrow_owners_are_identified_by_client_and_host(write):
    group = one(write(lag=burrow(partition(0, client_id="a"), partition(1, "10.0.0.2"))))
    assert {m.id: list(m.owned) for m in group.members} == {
        "a_10.0.0.1": [("t", 0)],
        "10.0.0.2": [("t", 1)],
    }
    assert any("client and host" in note for note in group.notes)


@pytest.mark.parametrize(("text", "message"), stored_cases("invalid_tool_documents"))
def test_invalid_documents_are_errors_with_a_place(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_output(text, name="x.json")
    assert str(caught.value).startswith("x.json:1")


def test_unknown_json_is_an_error_for_files_and_named_in_directories(write):
    with pytest.raises(InputError, match="its first keys: 'a'"):
        read_output('{"a": 1}', name="x.json")
    directory = write(other='{"a": 1}', lag=burrow(partition(0)))
    unused, found = import_groups([directory], ImportOptions())
    assert found.id == "g"
    reason = f"not used: {directory / 'other.json'}:1: not the JSON output of a supported tool"
    assert unused.unused.startswith(reason)
    (named,) = import_groups([directory / "other.json"], ImportOptions())
    assert "not the JSON output of a supported tool" in named.error


def test_rest_lists_of_consumers_lags_and_topics_are_merged(write):
    group = one(
        write(
            group=json.dumps(
                {"kind": "KafkaConsumerGroup", "consumer_group_id": "g", "state": "STABLE"}
            ),
            consumers=rest("KafkaConsumerList", consumer("c1"), consumer("idle", instance_id="i")),
            lags=rest("KafkaConsumerLagList", lag(0, "c1"), lag(1, "c1", 0)),
            topics=rest("KafkaTopicList", {"topic_name": "t", "partitions_count": 4}),
        ),
        ImportOptions(weights=WeightSource.LAG, missing_lag=0),
    )
    assert {m.id: (m.instance_id, list(m.owned)) for m in group.members} == {
        "c1": (None, [("t", 0), ("t", 1)]),
        "idle": ("i", []),
    }
    assert (group.topics[0].partitions, group.topics[0].weights) == (4, (7, 0, 0, 0))


def event(number, member, group="g", **more):
    client = {"host": "10.0.0.1", "id": "app", "member_id": member}
    inner = {"id": group, "topic": "t", "partition": number, "client": client, "offset": 3, **more}
    return json.dumps({"kafka": {"consumergroup": inner}})


def test_metricbeat_events_are_merged_per_group(tmp_path):
    file = tmp_path / "events.jsonl"
    lines = [event(0, "m1", consumer_lag=2), event(1, "m2"), event(0, "m3", group="h")]
    file.write_text("\n".join(lines))
    first, second = import_groups([file], ImportOptions())
    assert {m.id: list(m.owned) for m in first.group.members} == {
        "m1": [("t", 0)],
        "m2": [("t", 1)],
    }
    assert [m.id for m in second.group.members] == ["m3"]


METRICS = """\
# HELP kafka_consumergroup_lag Current approximate lag
kafka_consumergroup_lag{consumergroup="g",partition="0",topic="t"} 1.5e+01
kafka_consumergroup_lag{consumergroup="g",partition="1",topic="t"} -1
kafka_consumergroup_members{consumergroup="g"} 3
kafka_topic_partitions{topic="t"} 4
go_goroutines 12
"""


def test_metrics_give_lags_and_counts_without_members(tmp_path):
    file = tmp_path / "scrape.prom"
    file.write_text(METRICS)
    group = one(file, ImportOptions(weights=WeightSource.LAG, missing_lag=9))
    assert (group.topics[0].partitions, group.topics[0].weights) == (4, (15, 0, 9, 9))
    assert any("members are not shown, only their number: 3" in note for note in group.notes)


@pytest.mark.parametrize(("sample", "message"), stored_cases("damaged_metrics"))
def test_damaged_samples_are_errors_with_a_line(sample, message):
    with pytest.raises(InputError, match=f"^x.prom:2: .*{message}"):
        read_output(f"# metrics\n{sample}\n", name="x.prom")


@needs_samples
def test_the_published_burrow_sample_is_parsed():
    found = read_output((SAMPLES / "burrow-v3-lag.json").read_text(), name="x")
    assert [(r.group, r.topic, r.partition, r.current, r.lag, r.owner) for r in found.offsets] == [
        ("group1", "topicA", 0, 431323195, 0, "kafka"),
        ("group1", "topicA", 1, 431322962, 0, "kafka"),
        ("group1", "topicA", 2, 428636563, 0, "kafka"),
    ]


@needs_samples
def test_the_published_kminion_sample_is_parsed():
    found = read_output((SAMPLES / "kminion-metrics.md").read_text(), name="x")
    (row,) = found.offsets
    assert (row.group, row.topic, row.partition, row.lag) == (
        "bigquery-sink",
        "shop-activity",
        10,
        147481,
    )
    (state,) = found.states
    assert (state.state, state.members) == ("Stable", 2)
    assert found.partition_counts == {"_confluent-ksql-default__command_topic": 1}


@needs_samples
def test_the_published_metricbeat_sample_is_parsed():
    (row,) = read_output((SAMPLES / "metricbeat-consumergroup.json").read_text(), name="x").offsets
    assert (row.group, row.topic, row.partition, row.current) == ("group", "test", 0, 0)
    assert row.consumer_id == "client0-d20b677a-5740-433e-a7f8-fbdab1f0f150"


@needs_samples
@pytest.mark.parametrize(("sample", "counts", "minimum"), stored_cases("published_topic_lists"))
def test_published_topic_lists_give_counts_or_minimum_counts(sample, counts, minimum):
    found = load_metadata(SAMPLES / sample)
    assert (found.partition_counts, found.minimum_counts) == (counts, minimum)


PREAMBLE = (
    "Querying brokers for log directories information\n"
    "Received log directory information from brokers 1,2\n"
)
TABLE = """
GROUP TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG   CONSUMER-ID HOST      CLIENT-ID
g     my-t   0          4               9               5     c1          /10.0.0.1 app
g     my-t   1          7               7               0     c1          /10.0.0.1 app
"""


def replica(partition, size, *, future=False):
    return {"partition": partition, "size": size, "offsetLag": 0, "isFuture": future}


def log_dirs_output(*brokers):
    return PREAMBLE + json.dumps({
        "version": 1,
        "brokers": [
            {"broker": n, "logDirs": [{"logDir": "/d", "error": None, "partitions": list(rows)}]}
            for n, rows in enumerate(brokers, 1)
        ],
    }) + "\n"  # fmt: skip


@pytest.fixture
def file(tmp_path):
    def write(text, name="sizes.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_the_partition_size_is_the_size_of_the_largest_replica():
    text = log_dirs_output(
        [replica("my-t-0", 10), replica("my-t-1", 7)], [replica("my-t-0", 12), replica("my-t-1", 0)]
    )
    assert read_output(text, name="sizes.txt").sizes == {("my-t", 0): 12, ("my-t", 1): 7}


@pytest.mark.parametrize(("text", "message"), stored_cases("damaged_log_directories"))
def test_damaged_documents_are_errors_with_a_place(text, message):
    with pytest.raises(InputError) as caught:
        read_output(text, name="sizes.txt")
    assert message in str(caught.value)


def test_sizes_in_a_directory_of_captures_become_weights(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(log_dirs_output([replica("my-t-0", 10**12), replica("my-t-1", 7), replica("other-0", 3)]))
    [imported] = import_groups([tmp_path], ImportOptions(weights=WeightSource.SIZE))
    assert imported.group.topics[0].weights == (10**12, 7)
    assert imported.group.weight_source is WeightSource.SIZE


def test_a_group_document_with_windows_but_without_topics_is_called_so(file):
    members = [{"id": "c", "topics": ["t"]}]
    path = file(json.dumps({"windows": {"names": ["day", "night"]}, "members": members}), "w.json")
    [found] = import_groups([path], ImportOptions())
    assert "missing key 'topics'" in str(found.error)
