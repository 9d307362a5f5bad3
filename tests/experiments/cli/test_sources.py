"""Every command that reads groups accepts documents and captures from any source."""

import gzip
import io
import json
import sys

import pytest

CAPTURE = """
GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
g     t     0         4              9              5   c1          /h   app
g     t     1         4              9              5   c1          /h   app
g     t     2         4              9              5   c2          /h   app
"""
DOCUMENT = {
    "id": "g",
    "topics": {"t": 3},
    "members": [
        {"id": "c1", "topics": ["t"], "owned": {"t": [0, 1]}, "generation": 1},
        {"id": "c2", "topics": ["t"], "owned": {"t": [2]}, "generation": 1},
    ],
}
CSV = (
    "group,topic,partition,current_offset,log_end_offset,lag,consumer_id,host,client_id\n"
    "g,t,0,4,9,5,c1,/h,app\ng,t,1,4,9,5,c1,/h,app\ng,t,2,4,9,5,c2,/h,app\n"
)
TEXTS = {"capture.txt": CAPTURE, "groups.jsonl": json.dumps(DOCUMENT) + "\n", "capture.csv": CSV}
COMMANDS = {
    "import": (),
    "assign": ("--assignor", "range"),
    "compare": ("--assignor", "range"),
    "solve": (),
    "explain": (),
    "frontier": (),
    "members": ("--makespan", "2"),
    "plan": ("-o", "out"),
    "what-if": (),
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def as_source(kind, name, text, site, monkeypatch):
    """Write the text as a file, in a folder or to standard input; return the argument."""
    match kind:
        case "file":
            (site / name).write_text(text)
            return name
        case "gzip":
            (site / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
            return f"{name}.gz"
        case "folder":
            (site / "folder").mkdir()
            (site / "folder" / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
            return "folder"
    data = gzip.compress(text.encode()) if kind == "compressed standard input" else text.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return "-"


KINDS = ("file", "gzip", "folder", "standard input", "compressed standard input")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_group_is_read_from_any_source(kassay, site, monkeypatch, kind, name):
    done = kassay("solve", as_source(kind, name, TEXTS[name], site, monkeypatch))
    assert done.code == 0
    assert (done.record["id"], done.record["movement"]["value"]) == ("g", 0)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_captures_and_documents(kassay, site, monkeypatch, command, name):
    source = as_source("folder", name, TEXTS[name], site, monkeypatch)
    done = kassay(command, source, *COMMANDS[command])
    assert done.code in (0, 1)
    assert done.record["id"] == "g"
    assert "error" not in done.record


def test_assumptions_about_a_capture_are_printed_once(kassay, site, monkeypatch):
    source = as_source("file", "capture.txt", CAPTURE, site, monkeypatch)
    done = kassay("solve", source)
    assert "group 'g': subscriptions are not shown, the assigned topics are assumed" in done.message
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "import"])
def test_options_complete_the_captures_of_every_command(kassay, site, monkeypatch, command):
    source = as_source("file", "capture.txt", CAPTURE, site, monkeypatch)
    options = ("--subscriptions", "equal", "--weights", "lag")
    options += ("--allow-lag",) if command == "members" else ()
    done = kassay(command, source, *COMMANDS[command], *options)
    assert done.code in (0, 1)
    assert "all topics are assumed for every member" in done.message


def test_notes_concern_the_selected_groups(kassay, site, monkeypatch):
    both = CAPTURE + CAPTURE.replace("g     t", "h     t")
    source = as_source("file", "capture.txt", both, site, monkeypatch)
    done = kassay("plan", source, "--group", "h", "-o", "out")
    assert "group 'h': subscriptions are not shown" in done.message
    assert "group 'g'" not in done.err


def test_a_cut_gzip_file_is_one_error_line(kassay, site):
    (site / "x.txt.gz").write_bytes(gzip.compress(CAPTURE.encode())[:-20])
    done = kassay("solve", "x.txt.gz")
    assert done.code == 2
    assert "x.txt.gz: the gzip file is cut or damaged" in done.record["error"]


def test_records_of_consumer_offsets_get_a_hint(kassay, site):
    (site / "dump.txt").write_text(
        "Dumping /d/__consumer_offsets-3/0.log\n| offset: 1 CreateTime\n"
    )
    done = kassay("plan", "dump.txt", "-o", "out")
    assert done.code == 2
    assert "use kassay history" in done.record["error"]


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


def test_a_burrow_response_without_owners_is_not_called_empty(kassay, site):
    partition = {"topic": "t", "partition": 0, "owner": "", "client_id": "", "current_lag": 3}
    status = {"group": "g", "partition_count": 1, "partitions": [partition]}
    (site / "lag.json").write_text(json.dumps({"error": False, "status": status}))
    done = kassay("plan", "lag.json", "-o", "out")
    assert done.code == 2
    assert "shows no members and no owners of partitions" in done.record["error"]


def test_details_of_a_group_of_burrow_show_its_members(kassay, site):
    partition = {"offsets": [], "owner": "/10.0.0.7", "client_id": "app", "current-lag": 3}
    detail = {
        "error": False,
        "message": "consumer detail returned",
        "topics": {"t": [partition, partition | {"owner": "/10.0.0.8", "current-lag": 4}]},
        "request": {"url": "/v3/kafka/main/consumer/g", "host": "burrow"},
    }
    (site / "detail.json").write_text(json.dumps(detail))
    document = kassay("import", "detail.json", "--weights", "lag").record
    assert document["topics"] == {"t": {"partitions": 2, "weights": [3, 4]}}
    assert [(m["owned"], m["host"]) for m in document["members"]] == [
        ([["t", 0]], "/10.0.0.7"),
        ([["t", 1]], "/10.0.0.8"),
    ]
