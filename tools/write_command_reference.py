"""Write docs/commands.md from the commands' help: ``python -m tools.write_command_reference``."""

from enum import Enum
from pathlib import Path
from typing import Any

import typer

from kassay.experiments.cli import COMMANDS, app
from kassay.reference.documents.output_files import write_text

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


def page() -> str:
    """Return the page as Markdown."""
    table: Any = typer.main.get_command(app)
    sections = (_section(name, table.get_command(None, name).load()) for name in COMMANDS)
    return "\n".join([_INTRODUCTION, *sections])


def _section(name: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join(
        param.metavar if param.required else f"[{param.metavar}]" for param in arguments
    )
    rows = "\n".join(map(_row, command.params))
    return (
        f"## kassay {name}\n\n{command.help}\n\nUsage: `kassay {name} [OPTIONS] {usage}".rstrip()
        + f"`\n\n| argument or option | default | meaning |\n|---|---|---|\n{rows}\n"
    )


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        name = f"`{param.metavar}`"
    else:
        switches = " / ".join(f"`{switch}`" for switch in (*param.opts, *param.secondary_opts))
        name = f"{switches} {_code(param.metavar)}".rstrip()
    text = (param.help or "").replace("|", "\\|")
    return f"| {name} | {_default(param)} | {text} |"


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
