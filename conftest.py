"""Run the Python and console examples of README.md and docs/ and compare their output."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

from sybil import Example, Sybil
from sybil.evaluators.doctest import NUMBER
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parent
_TIMEOUT_SECONDS = 300

# Sphinx runs this file, and only `make site` installs Sphinx.
collect_ignore = ["docs/conf.py"]


def _run_console(example: Example) -> str | None:
    """Run each ``$ command`` of a console block and compare its output."""
    checker = doctest.OutputChecker()
    for command, expected in _commands(example.parsed):
        done = subprocess.run(  # noqa: S602
            command,
            shell=True,
            executable="/bin/bash",
            cwd=ROOT,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        output = done.stdout + done.stderr
        if not checker.check_output(
            expected, output, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        ):
            return f"$ {command}\nexpected:\n{expected}\noutput (exit {done.returncode}):\n{output}"
    return None


def _commands(block: str) -> list[tuple[str, str]]:
    commands: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands and not commands[-1][1] and (line + " ").startswith("> "):
            commands[-1] = (commands[-1][0] + "\n" + line[2:], [])
        elif commands:
            commands[-1][1].append(line + "\n")
    return [(command, "".join(lines)) for command, lines in commands]


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS | NUMBER),
        CodeBlockParser(language="console", evaluator=_run_console),
    ],
    patterns=["README.md", "docs/*.md"],
).pytest()
