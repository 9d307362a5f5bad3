"""Write docs/commands.md from the commands' help: ``python -m tools.write_command_reference``."""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import typer

from kassay.experiments.cli import COMMANDS, app
from kassay.reference.documents.files import write_text

PAGE = Path(__file__).parents[1] / "docs/commands.md"
_INTRODUCTION = """\
# Commands

`make commands` generates this page from the help of the commands. It describes each option.

Results go to standard output, messages to standard error. Exit codes: 0 success; 1 a requested
condition is not met; 2 bad input or usage, or a failed run; 130 interrupted.

Ctrl-C stops the search of the current group, within two seconds unless other processes use the
machine. The command then writes the best result found for this group, if any, with
`"interrupted": true`, and skips all further groups. A second Ctrl-C ends the command immediately.
The same command continues an interrupted study.
"""


_SHARED = """\
## Options of several commands

After "Also", each command names its options of this table, and its default in brackets if it
differs from the default here.
"""
_TABLE = "| name | default | meaning |\n|---|---|---|"
_MIN_COMMANDS = 3
"""Minimum number of commands with the same option, for a row in the table at the start."""


class _Row(NamedTuple):
    name: str
    text: str


def page() -> str:
    """Return the page as Markdown."""
    table: Any = typer.main.get_command(app)
    commands = {name: table.get_command(None, name).load() for name in COMMANDS}
    shared = _shared_rows(commands.values())
    rows = "\n".join(_line(row, default) for row, default in shared.items())
    sections = (_section(name, command, shared) for name, command in commands.items())
    return "\n".join([_INTRODUCTION, f"{_SHARED}\n{_TABLE}\n{rows}\n", *sections])


def _shared_rows(commands: Iterable[Any]) -> dict[_Row, str]:
    """Return the rows that several commands share, with their most frequent defaults.

    Arguments precede options, and options of one class, which have one purpose, are adjacent.
    """
    defaults: dict[_Row, list[str]] = {}
    purposes: dict[_Row, str] = {}
    for command in commands:
        owners = {
            name: _owner(group, name)
            for group, converters in command.groups.values()
            for name in converters
        }
        for param in command.params:
            row = _row(param)
            defaults.setdefault(row, []).append(_default(param))
            purposes.setdefault(row, owners.get(param.name, ""))
    order = [*filter(None, dict.fromkeys(purposes.values())), ""]
    shared = [row for row, found in defaults.items() if len(found) >= _MIN_COMMANDS]
    shared.sort(key=lambda row: (row.name.startswith("`-"), order.index(purposes[row])))
    return {row: Counter(defaults[row]).most_common(1)[0][0] for row in shared}


def _owner(group: Any, name: str) -> str:
    """Return the name of the class of options that declares a field."""
    owners = [one for one in group.__mro__ if name in getattr(one, "__dataclass_fields__", ())]
    return str(owners[-1].__name__)


def _section(name: str, command: Any, shared: Mapping[_Row, str]) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join(
        param.metavar if param.required else f"[{param.metavar}]" for param in arguments
    )
    usage = f"Usage: `kassay {name} [OPTIONS] {usage}".rstrip() + "`"
    own, also = [], []
    for param in command.params:
        row, default = _row(param), _default(param)
        if row not in shared:
            own.append(_line(row, default))
            continue
        short = row.name.split()[0]
        also.append(short if default == shared[row] else f"{short} ({default or 'no default'})")
    parts = [f"## kassay {name}", command.help, usage]
    if own:
        parts.append("\n".join([_TABLE, *own]))
    if also:
        parts.append(f"Also: {', '.join(also)}.")
    return "\n\n".join(parts) + "\n"


def _row(param: Any) -> _Row:
    if param.param_type_name == "argument":
        name = f"`{param.metavar}`"
    else:
        switches = " / ".join(f"`{switch}`" for switch in (*param.opts, *param.secondary_opts))
        name = f"{switches} {_code(param.metavar)}".rstrip()
    return _Row(name, (param.help or "").replace("|", "\\|"))


def _line(row: _Row, default: str) -> str:
    return f"| {row.name} | {default} | {row.text} |"


def _code(metavar: str | None) -> str:
    return f"`{metavar}`".replace("|", "\\|") if metavar else ""


def _default(param: Any) -> str:
    if param.required:
        return "required"
    if isinstance(param.show_default, str):
        return param.show_default
    default = param.default() if callable(param.default) else param.default
    if isinstance(default, Enum):
        return f"`{default.value}`"
    return f"`{default}`" if param.show_default and default not in (None, False, ()) else ""


if __name__ == "__main__":
    write_text(PAGE, page())
