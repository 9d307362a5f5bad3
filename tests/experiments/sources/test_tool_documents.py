"""Documents of monitoring tools and of Kafka's tools give groups, partition counts or sizes."""

import json

import pytest

from kassay.experiments.sources.import_captures import load_metadata
from kassay.reference.model.errors import InputError
from tests.conftest import SHARED_FIXTURES
from tests.experiments.sources.reading import content_of as read_output
from tests.stored_cases import stored_cases

SAMPLES = SHARED_FIXTURES / "json"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs ../shared/fixtures/json")


@pytest.mark.parametrize(("text", "message"), stored_cases("invalid_tool_documents"))
def test_invalid_documents_are_errors_with_a_place(text, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_output(text, name="x.json")
    assert str(caught.value).startswith("x.json:1")


@pytest.mark.parametrize(("sample", "message"), stored_cases("damaged_metrics"))
def test_damaged_samples_are_errors_with_a_line(sample, message):
    with pytest.raises(InputError, match=f"^x.prom:2: .*{message}"):
        read_output(f"# metrics\n{sample}\n", name="x.prom")


@needs_samples
@pytest.mark.parametrize(("sample", "kind", "expected"), stored_cases("published_samples"))
def test_published_samples_are_parsed(sample, kind, expected):
    found = getattr(read_output((SAMPLES / sample).read_text(), name="x"), kind)
    shown = [{name: getattr(row, name) for name in expected[0]} for row in found]
    assert shown == expected


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
