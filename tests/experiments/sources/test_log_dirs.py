import json

import pytest

from kassay.experiments.sources.capture_files import import_groups, load_sizes
from kassay.experiments.sources.group_documents import ImportOptions
from kassay.experiments.sources.partition_weights import WeightOptions
from kassay.reference.model.errors import InputError

PROSE = (
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


def printed(*brokers):
    return PROSE + json.dumps({
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


def test_the_largest_replica_counts(file):
    text = printed(
        [replica("my-t-0", 10), replica("my-t-1", 7)], [replica("my-t-0", 12), replica("my-t-1", 0)]
    )
    assert load_sizes(file(text)) == {("my-t", 0): 12, ("my-t", 1): 7}


def test_a_replica_that_is_being_copied_does_not_count(file):
    text = printed([replica("my-t-0", 10), replica("my-t-0", 99, future=True)])
    assert load_sizes(file(text)) == {("my-t", 0): 10}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("GROUP TOPIC\n", "sizes.txt: not what kafka-log-dirs.sh --describe prints"),
        (printed([replica("t-0", 1)])[:-20], "sizes.txt:3: not a whole list of log directories"),
        (printed([replica("t", 1)]), "partitions[0].partition: not a partition: 't'"),
        (printed([replica("t-0", -1)]), "partitions[0].size: not a size in bytes: -1"),
        (printed([replica("t-0", 1.5)]), "partitions[0].size: expected an integer, got 1.5"),
        (
            PROSE + '{"brokers": [{"logDirs": 3}]}',
            "sizes.txt:3.brokers[0].logDirs: expected a list",
        ),
        (PROSE + '{"brokers": [{"logDirs": [{}]}]}', "sizes.txt:3.brokers[0].logDirs[0]: missing"),
    ],
)
def test_what_cannot_be_read_is_one_located_error(file, text, said):
    with pytest.raises(InputError) as caught:
        load_sizes(file(text))
    assert said in str(caught.value)


def test_sizes_among_captures_of_a_moment_weigh_its_partitions(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(printed([replica("my-t-0", 10**12), replica("my-t-1", 7), replica("other-0", 3)]))
    [imported] = import_groups([tmp_path], ImportOptions(weights=WeightOptions.SIZE))
    assert imported.group.topics[0].weights == (10**12, 7)
    assert "weights are bytes on disk, of the largest replica" in imported.group.notes


def test_sizes_weigh_nothing_unless_they_are_asked_for(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(printed([replica("my-t-0", 10)]))
    [imported] = import_groups([tmp_path], ImportOptions())
    assert imported.group.topics[0].weights is None


def test_a_partition_without_a_size_is_an_error(file, tmp_path):
    file(TABLE, "offsets.txt")
    file(printed([replica("my-t-0", 10)]))
    [imported] = import_groups([tmp_path], ImportOptions(weights=WeightOptions.SIZE))
    assert imported.error.startswith("group 'g': no size is shown for my-t-1; give --sizes FILE")


def test_sizes_alone_are_no_group(file):
    [imported] = import_groups([file(printed([replica("my-t-0", 10)]))], ImportOptions())
    assert "sizes only, no group" in imported.error
