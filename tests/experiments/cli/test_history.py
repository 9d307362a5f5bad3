"""``kassay history`` with logs, which needs no Spark."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVER_LOG = ROOT / "examples" / "history" / "server.log"


def test_the_text_has_storms_causes_changes_and_log_lines(kassay):
    done = kassay("history", SERVER_LOG)
    assert done.code == 0
    assert "│ billing │         10 │" in done.out
    for text in ("Storm: 10 rebalances", "Causes:", "Changes:", "server.log:2: [2026-05-04"):
        assert text in done.out
    for setting in ("session.timeout.ms", "group.instance.id", "CooperativeStickyAssignor"):
        assert setting in done.out


def test_long_log_lines_are_cut_before_the_reason(kassay, tmp_path):
    first = (ROOT / "tests" / "data" / "logs" / "summaries.jsonl").read_text().splitlines()[0]
    (tmp_path / "server.log").write_text("\n".join(json.loads(first)["lines"]))
    shown = kassay("history", tmp_path / "server.log").out.splitlines()
    cut = [line for line in shown if "..." in line]
    assert any("reason: consumer poll timeout has expired.)" in line for line in cut)
    assert any("supportedProtocols=List(range, cooperative-sticky)" in line for line in cut)


def test_json_lines_and_json_have_the_same_record(kassay):
    lines = kassay("history", SERVER_LOG, "--format", "jsonl").record
    assert lines == json.loads(kassay("history", SERVER_LOG, "--format", "json").out)
    assert (lines["id"], lines["rebalances"], lines["storms"]) == ("billing", 10, 1)
    assert [change["setting"] for change in lines["changes"]] == [
        "session.timeout.ms",
        "group.instance.id",
        "partition.assignment.strategy",
    ]


def test_all_rebalances_are_written_to_a_file(kassay, tmp_path):
    assert kassay("history", SERVER_LOG, "-o", tmp_path / "out").code == 0
    [file] = (tmp_path / "out").iterdir()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert file.name == "rebalances.jsonl"
    assert [row["generation"] for row in rows] == list(range(42, 52))
    assert {row["cause"] for row in rows} == {"session timeout", "restart"}
    assert all(row["lines"] for row in rows)


def test_standard_input_can_be_compressed():
    command = [sys.executable, "-m", "kassay", "history", "-", "--format", "jsonl"]
    data = gzip.compress(SERVER_LOG.read_bytes())
    done = subprocess.run(command, input=data, capture_output=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["causes"][0]["lines"][0]["file"] == "standard input"


def test_an_interrupted_run_leaves_the_old_file(kassay, tmp_path):
    kassay("history", SERVER_LOG, "-o", tmp_path)
    old = (tmp_path / "rebalances.jsonl").read_text()
    cut = tmp_path / "cut.log.gz"
    cut.write_bytes(gzip.compress(SERVER_LOG.read_bytes())[:-200])
    assert kassay("history", cut, "-o", tmp_path).code == 2
    assert (tmp_path / "rebalances.jsonl").read_text() == old
    assert sorted(os.listdir(tmp_path)) == ["cut.log.gz", "rebalances.jsonl"]  # noqa: PTH208


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_an_error_with_the_name_of_the_file(kassay, tmp_path):
    group = tmp_path / "g.json"
    group.write_text('{"id": "g", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]}')
    done = kassay("import", group, "-o", "/dev/full")
    assert done.code == 2
    assert "/dev/full: no space left on device" in done.message
