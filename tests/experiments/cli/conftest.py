"""Runs the command line in this process."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from kassay.experiments.cli import main
from tests.stored_cases import stored_cases

LOPSIDED_GROUP = stored_cases("groups")["all partitions on one of two members"]


@dataclass(frozen=True)
class Completed:
    """Exit code and output of one command."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """The JSON lines on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def record(self) -> Any:
        """The only JSON line on standard output."""
        (record,) = self.records
        return record

    @property
    def message(self) -> str:
        """Standard error in one line, without frames."""
        return " ".join(self.err.replace("│", " ").split())


@pytest.fixture
def kassay(capsys):
    """Run ``kassay`` with arguments; errors must not show a traceback."""

    def run(*arguments: object) -> Completed:
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Completed(exit_.value.code or 0, out, err)

    return run


def fixture_to_run(command, default_group):
    """Return a fixture: a function that runs one command on a group, with options."""

    @pytest.fixture
    def run(kassay, write_groups):
        return lambda *options, group=default_group: kassay(command, write_groups(group), *options)

    return run


@pytest.fixture
def write_groups(tmp_path):
    """Write group documents as JSON Lines."""

    def write(*groups):
        path = tmp_path / "groups.jsonl"
        path.write_text("".join(json.dumps(group) + "\n" for group in groups))
        return path

    return write
