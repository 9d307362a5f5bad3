"""Run the Python and console examples of README.md and docs/ and compare their output."""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from sybil import Example, Sybil
from sybil.evaluators.doctest import NUMBER
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

from kassay.experiments.cli import main

ROOT = Path(__file__).parent
_TIMEOUT_SECONDS = 300
_ONLY_KASSAY = re.compile(r"kassay ([^|;&<>`$*()]*?)(?: > (\S+))?(?: 2> (\S+))?")
_STARTS_SPARK = re.compile(r"spark_session|kassay (history|hunt|study) ")

_PROGRESS = re.compile(r"^kassay: .*, \d+ s\n", re.MULTILINE)
"""Notes on standard error that a command prints if it takes long, as on a busy machine."""

# Sphinx runs this file, and only `make site` installs Sphinx.
collect_ignore = ["docs/conf.py"]


def _run_console(example: Example) -> str | None:
    """Run each ``$ command`` of a console block and compare its output."""
    checker = doctest.OutputChecker()
    for command, expected in _commands(example.parsed):
        code, output = _output(command)
        output = _PROGRESS.sub("", output)
        if not checker.check_output(
            expected, output, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        ):
            return f"$ {command}\nexpected:\n{expected}\noutput (exit {code}):\n{output}"
    return None


def _output(command: str) -> tuple[int, str]:
    """Run a command in the root folder; return its exit code and output."""
    only_kassay = _ONLY_KASSAY.fullmatch(command.replace("\\\n", " "))
    if only_kassay is not None and not _STARTS_SPARK.search(command):
        return _run_in_process(shlex.split(only_kassay[1]), only_kassay[2], only_kassay[3])
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
    return done.returncode, done.stdout + done.stderr


def _run_in_process(
    arguments: list[str], out_file: str | None, error_file: str | None
) -> tuple[int, str]:
    """Run ``kassay``, without the start of a process and the import of its libraries."""
    out, errors = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    with (
        mock.patch.dict(os.environ, _environment()),
        mock.patch.object(sys, "argv", ["kassay", *arguments]),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main(arguments)
        except SystemExit as exit_:
            code = exit_.code
    for stream, file in ((out, out_file), (errors, error_file)):
        if file is not None:
            (ROOT / file).write_text(stream.getvalue(), encoding="utf-8")
            stream.truncate(0)
            stream.seek(0)
    return int(code or 0), out.getvalue() + errors.getvalue()


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples that start Spark in a process of their own."""
    for item in items:
        if isinstance(item, SybilItem) and _STARTS_SPARK.search(str(item.example.parsed)):
            item.add_marker(pytest.mark.long)


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS | NUMBER),
        CodeBlockParser(language="console", evaluator=_run_console),
    ],
    patterns=["README.md", "docs/*.md"],
).pytest()
