import json

import pytest

from kassay.experiments.sources.capture_files import import_groups, load_sizes
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.model.errors import InputError
from kassay.reference.model.group_annotations import WeightSource

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


def test_the_partition_size_is_the_size_of_the_largest_replica(file):
    text = log_dirs_output(
        [replica("my-t-0", 10), replica("my-t-1", 7)], [replica("my-t-0", 12), replica("my-t-1", 0)]
    )
    assert load_sizes(file(text)) == {("my-t", 0): 12, ("my-t", 1): 7}


def test_replicas_that_are_being_copied_do_not_count(file):
    text = log_dirs_output([replica("my-t-0", 10), replica("my-t-0", 99, future=True)])
    assert load_sizes(file(text)) == {("my-t", 0): 10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("GROUP TOPIC\n", "sizes.txt: the file is not the output of kafka-log-dirs.sh --describe"),
        (
            log_dirs_output([replica("t-0", 1)])[:-20],
            "sizes.txt:3: not a complete list of log directories",
        ),
        (
            log_dirs_output([replica("t", 1)]),
            "partitions[0].partition: must be TOPIC-NUMBER, got 't'",
        ),
        (log_dirs_output([replica("t-0", -1)]), "partitions[0].size: must be at least 0, got -1"),
        (
            log_dirs_output([replica("t-0", 1.5)]),
            "partitions[0].size: expected an integer, got 1.5",
        ),
        (
            PREAMBLE + '{"brokers": [{"logDirs": 3}]}',
            "sizes.txt:3.brokers[0].logDirs: expected a list",
        ),
        (
            PREAMBLE + '{"brokers": [{"logDirs": [{}]}]}',
            "sizes.txt:3.brokers[0].logDirs[0]: missing",
        ),
    ],
)
def test_damaged_documents_are_errors_with_a_place(file, text, message):
    with pytest.raises(InputError) as caught:
        load_sizes(file(text))
    assert message in str(caught.value)


def test_sizes_in_a_directory_of_captures_become_weights(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(log_dirs_output([replica("my-t-0", 10**12), replica("my-t-1", 7), replica("other-0", 3)]))
    [imported] = import_groups([tmp_path], ImportOptions(weights=WeightSource.SIZE))
    assert imported.group.topics[0].weights == (10**12, 7)
    assert imported.group.weight_source is WeightSource.SIZE


def test_sizes_are_ignored_without_the_option_weights_size(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(log_dirs_output([replica("my-t-0", 10)]))
    [imported] = import_groups([tmp_path], ImportOptions())
    assert imported.group.topics[0].weights is None


def test_a_partition_without_a_size_is_an_error(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(log_dirs_output([replica("my-t-0", 10)]))
    [imported] = import_groups([tmp_path], ImportOptions(weights=WeightSource.SIZE))
    assert imported.error.startswith("group 'g': no size is known for my-t-1; give --sizes FILE")


def test_sizes_without_a_group_are_an_error(file):
    [imported] = import_groups([file(log_dirs_output([replica("my-t-0", 10)]))], ImportOptions())
    assert "only partition counts or sizes, no group" in imported.error
