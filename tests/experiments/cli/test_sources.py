"""Every command that reads groups accepts documents and captures from any source."""

import gzip
import io
import json
import sys
from itertools import product

import pytest

from tests.stored_cases import stored_cases

CAPTURE = """
GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
g     t     0         4              9              5   c1          /h   app
g     t     1         4              9              5   c1          /h   app
g     t     2         4              9              5   c2          /h   app
"""
DOCUMENT = stored_cases("groups")["three partitions"]
CSV = (
    "group,topic,partition,current_offset,log_end_offset,lag,consumer_id,host,client_id\n"
    "g,t,0,4,9,5,c1,/h,app\ng,t,1,4,9,5,c1,/h,app\ng,t,2,4,9,5,c2,/h,app\n"
)
METRICBEAT = "\n".join(
    json.dumps(
        {
            "kafka": {
                "consumergroup": {
                    "id": "g",
                    "topic": {"name": "t"},
                    "partition": number,
                    "client": {"id": "app", "member_id": member},
                }
            }
        }
    )
    for number, member in enumerate(("c1", "c1", "c2"))
)
MEMBERS = """
GROUP CONSUMER-ID HOST CLIENT-ID #PARTITIONS ASSIGNMENT
g     c1          /h   app       2           t(0,1)
g     c2          /h   app       1           t(2)
"""
STATE = """
GROUP COORDINATOR (ID)       ASSIGNMENT-STRATEGY STATE  #MEMBERS
g     localhost:9092 (1)     range               Stable 2
"""
DOCUMENTS = json.dumps(DOCUMENT) + "\n"
INPUTS = {
    "document": {"groups.jsonl": DOCUMENTS},
    "document on several lines": {"group.json": json.dumps(DOCUMENT, indent=1)},
    "capture": {"offsets.txt": CAPTURE},
    "folder of captures": {"a/offsets.txt": CAPTURE, "a/members.txt": MEMBERS, "state.txt": STATE},
    "folder of documents": {"groups.jsonl.gz": DOCUMENTS, "b/README.md": "?"},
    "folder of compressed CSV": {"b/capture.csv.gz": CSV, "b/c.json": "{}"},
    "output of another tool": {"events.jsonl": METRICBEAT},
    "CSV": {"capture.csv": CSV},
    "compressed capture": {"offsets.txt.gz": CAPTURE},
    "compressed document": {"groups.jsonl.gz": DOCUMENTS},
    "document on standard input": {"-": DOCUMENTS},
    "CSV on standard input": {"-": CSV},
    "compressed capture on standard input": {"-.gz": CAPTURE},
}
"""Files of each kind of input. Names that end with .gz are compressed, - is standard input."""
ASSIGNMENT = {"id": "g", "assignment": {"c1": [["t", 0], ["t", 1]], "c2": [["t", 2]]}}
COMMANDS = stored_cases("commands_that_read_groups")


@pytest.fixture
def site(tmp_path, monkeypatch):
    (tmp_path / "assignment.json").write_text(json.dumps(ASSIGNMENT))
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path / "site")
    return tmp_path / "site"


def written(files, site, monkeypatch):
    """Write the files of an input; return the argument that names it."""
    for name, text in files.items():
        data = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        if name.startswith("-"):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            return "-"
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_bytes(data)
    return next(iter(files)) if len(files) == 1 else "."


@pytest.mark.parametrize(
    ("command", "kind"),
    [*(("import", kind) for kind in INPUTS), *product(COMMANDS, ("capture", "document"))],
)
def test_every_command_reads_every_kind_of_input(kassay, site, monkeypatch, command, kind):
    done = kassay(command, written(INPUTS[kind], site, monkeypatch), *COMMANDS[command])
    assert done.code == 0
    assert done.record["id"] == ("g")
    assert "error" not in done.record


SOURCES_WITHOUT_GROUPS = {
    "empty": ({"x.txt": "\n"}, "the input is empty; expected group documents or captures"),
    "not text": ({"x.txt": "\x00\x01"}, "the text contains no table and no notice of"),
    "failed import": ({"x.jsonl": '{"id": "g", "error": "timeout"}'}, "not imported: timeout"),
    "half a surrogate pair": ({"x.json": DOCUMENTS.replace("c1", "\\ud800")}, "\\ud800; Kafka's"),
    "long number": ({"x.json": DOCUMENTS.replace("3", "3" * 5000)}, "a number has thousands of"),
    "folder with an empty file": ({"x.txt": "", "y.md": ""}, "x.txt: the file is empty"),
    "group in a capture and a document": (
        {"b/offsets.txt": CAPTURE, "g.jsonl": DOCUMENTS},
        "group 'g' is in captures and in the group document g.jsonl; move one of them to",
    ),
}


@pytest.mark.parametrize(
    ("command", "kind"),
    [*(("plan", kind) for kind in SOURCES_WITHOUT_GROUPS), *product(COMMANDS, ("empty",))],
)
def test_every_command_reports_inputs_without_groups(kassay, site, monkeypatch, command, kind):
    files, problem = SOURCES_WITHOUT_GROUPS[kind]
    done = kassay(command, written(files, site, monkeypatch), *COMMANDS[command])
    assert done.code == 2
    assert problem in done.message


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_states_that_a_group_is_rebalancing(kassay, site, monkeypatch, command):
    document = json.dumps(DOCUMENT | {"state": "PreparingRebalance"})
    source = written({"x.jsonl": document}, site, monkeypatch)
    done = kassay(command, source, *COMMANDS[command])
    assert done.code == 0
    assert "PreparingRebalance" in (done.out if command == "import" else done.message)


@pytest.mark.parametrize("command", [*COMMANDS][1:-1])
def test_options_complete_the_captures_of_every_command(kassay, site, monkeypatch, command):
    source = written({"capture.txt": CAPTURE}, site, monkeypatch)
    options = ("--subscriptions", "equal", "--weights", "lag")
    options += ("--allow-lag",) if command == "scale" else ()
    done = kassay(command, source, *COMMANDS[command], *options)
    assert done.code in (0, 1)
    assert "all topics are assumed for every member" in done.message


def test_a_cut_gzip_file_is_one_error_line(kassay, site):
    (site / "x.txt.gz").write_bytes(gzip.compress(CAPTURE.encode())[:-20])
    done = kassay("solve", "x.txt.gz")
    assert done.code == 2
    assert "x.txt.gz: the gzip file is truncated or damaged" in done.record["error"]


def test_records_of_consumer_offsets_get_a_hint(kassay, site):
    (site / "dump.txt").write_text(
        "Dumping /d/__consumer_offsets-3/0.log\n| offset: 1 CreateTime\n"
    )
    done = kassay("plan", "dump.txt", "-o", "out")
    assert done.code == 2
    assert "read it with kassay history" in done.record["error"]


def test_a_group_whose_members_are_only_counted_is_not_called_empty(kassay, site):
    (site / "kminion.prom").write_text(
        'kminion_kafka_consumer_group_info{group_id="g",protocol="range",state="Stable"} 1\n'
        'kminion_kafka_consumer_group_members{group_id="g"} 2\n'
        "kminion_kafka_consumer_group_topic_partition_lag"
        '{group_id="g",topic_name="t",partition_id="0"} 7\n'
    )
    done = kassay("plan", "kminion.prom", "-o", "out")
    assert done.code == 2
    assert "shows 2 members and no owners of partitions; add the output of" in done.record["error"]
    document = kassay("import", "kminion.prom", "--skip-empty").record
    assert (document["state"], document["assignor"]) == ("Stable", "range")
    assert "members are not shown, only their number: 2" in document["notes"]


@pytest.mark.parametrize("command", [("solve", "--format", "table"), ("plan", "--format", "text")])
def test_control_characters_in_names_do_not_reach_the_terminal(kassay, site, monkeypatch, command):
    document = json.dumps(DOCUMENT | {"id": "g\x1b[31m\u202eg"})
    source = written({"x.jsonl": document}, site, monkeypatch)
    name, *options = command
    done = kassay(name, source, *options, *COMMANDS[name])
    assert done.code == 0
    assert "\ufffd[31m" in done.out
    assert not {"\x1b", "\u202e"} & set(done.out)
