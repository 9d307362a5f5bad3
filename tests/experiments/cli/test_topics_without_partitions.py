"""A topic without partitions, which a cluster cannot have but a document can, changes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

MEMBERS = [
    {"id": "a", "topics": ["t", "u"], "owned": {"t": [0, 1, 2]}},
    {"id": "b", "topics": ["t"]},
]
COMMANDS = {
    "plan": ("--format", "jsonl"),
    "survey": (),
    "forecast": ("--members", "+1"),
    "solve": (),
    "scale": ("--maximum-load", "2"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_result_is_that_of_the_other_topics(kassay: Any, tmp_path: Path, command: str) -> None:
    records = []
    for name, topics in (("with", {"t": 3, "u": 0}), ("without", {"t": 3})):
        file = tmp_path / f"{name}.jsonl"
        file.write_text(json.dumps({"id": "g", "topics": topics, "members": MEMBERS}))
        done = kassay(command, file, *COMMANDS[command])
        assert (done.code, "error" in done.record, "conflict" in done.record) == (0, False, False)
        records.append(re.sub(r'"(seconds|fingerprint)": [^,}]+', "", done.out))
    assert records[0] == records[1]
