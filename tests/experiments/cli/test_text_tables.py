"""Tables on terminals of different widths."""

import re
import sys

import pytest

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
    assert max(len(line) for line in lines if line[:1] in "┏┃┡│└") <= 80
    assert "moves" in done.out
    assert "maximum" in done.out
    assert "consumers-of-checkout" in done.out
    (note,) = [line for line in done.err.splitlines() if "hidden columns" in line]
    assert note.endswith("a wider terminal or JSON shows them")
