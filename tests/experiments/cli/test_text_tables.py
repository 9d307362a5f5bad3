"""Tables on terminals of different widths."""

import re
import sys

import pytest
from rich.cells import cell_len

NAMES = [f"checkout-of-the-region-{name}" for name in ("north", "south")]
GROUPS = [
    {
        "id": f"consumers-of-{name}",
        "topics": {"t": 4},
        "members": [
            {"id": "a", "topics": ["t"], "owned": {"t": [0, 1, 2, 3]}},
            {"id": "b", "topics": ["t"]},
        ],
    }
    for name in NAMES
]
LEGEND = (
    "load: maximum load now → plan; helps: members needed for a lower maximum load; lag in messages"
)


@pytest.fixture
def terminal(capsys, monkeypatch):
    """Let the output be a terminal of a width."""

    def use(width):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    return use


@pytest.mark.parametrize("command", [("solve", "--format", "table"), ("survey",)])
def test_a_narrow_terminal_shows_the_important_columns(kassay, write_groups, terminal, command):
    terminal(80)
    done = kassay(command[0], write_groups(*GROUPS), *command[1:])
    lines = re.sub(r"\x1b.*?m", "", done.out).splitlines()
    # The terminal wraps the sentences below the table.
    table = [line for line in lines if line[:1] in "┏┃┡│└"] or lines[: lines.index(LEGEND)]
    assert 4 < max(map(len, table)) <= 80
    assert "moves" in done.out
    assert "maximum" in done.out
    assert "consumers-of-checkout" in done.out
    (note,) = [line for line in done.err.splitlines() if "hidden columns" in line]
    assert note.endswith("a wider terminal or JSON shows them")


@pytest.mark.parametrize("id", ["x\x1b[2J\nfake: nothing to do", "日本語" * 50, "n" * 1_000_000])
def test_a_hostile_name_stays_within_its_cell_and_its_line(kassay, write_groups, terminal, id):
    terminal(80)
    done = kassay("survey", write_groups({**GROUPS[0], "id": id}))
    lines = re.sub(r"\x1b\[\d*m", "", done.out).splitlines()
    assert "\x1b" not in "".join(lines)
    assert not any(line.startswith("fake") for line in lines)
    assert max(map(cell_len, lines[: lines.index(LEGEND)])) <= 80
    assert len(done.out) < 10_000
    piped = kassay("survey", write_groups({**GROUPS[0], "id": id}), "--format", "jsonl")
    assert [one["id"] for one in piped.records] == [id]


def test_a_wide_table_has_all_columns_and_a_line_per_group(kassay, write_groups, terminal):
    terminal(60)
    done = kassay("survey", write_groups(*GROUPS), "--wide")
    lines = re.sub(r"\x1b.*?m", "", done.out).splitlines()
    assert lines[0].split()[:7] == ["group", "cause", "to", "do", "load", "state", "lag"]
    assert lines[0].split()[-1] == "partitions"
    assert sorted(line.split()[0] for line in lines[1:3]) == sorted(one["id"] for one in GROUPS)
    assert lines.index(LEGEND) == 3
