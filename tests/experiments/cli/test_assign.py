import os
import subprocess
import sys


def test_an_invalid_assignment_of_kafka_is_shown_with_the_reason(kassay, write_groups):
    members = [{"id": id, "topics": topics} for id, topics in (("a", []), ("b", []), ("c", ["t"]))]
    groups = write_groups({"topics": {"t": 3}, "members": members})
    done = kassay("assign", groups, "--assignor", "sticky")
    assert done.code == 1
    assert done.record["assignment"] == {"a": [["t", 0]], "b": [["t", 1]], "c": [["t", 2]]}
    assert done.record["failed"] == "member 'a' is assigned topic 't', but does not subscribe to it"
    table = kassay("assign", groups, "--assignor", "sticky", "--format", "table")
    assert "does not subscribe to it" in table.out


def test_a_terminal_shows_an_error_once(tmp_path):
    file = tmp_path / "bad.json"
    file.write_text('{"id": "g", "topics": {"t": -1}, "members": []}')
    reader, terminal = os.openpty()
    command = [sys.executable, "-m", "kassay", "solve", str(file)]
    done = subprocess.run(command, stdout=terminal, stderr=terminal, check=False)
    os.close(terminal)
    shown = os.read(reader, 65536).decode()
    os.close(reader)
    assert done.returncode == 2
    assert shown.count("must be from 0") == 1
