"""Options that commands share."""

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kassay.experiments.cli import expand_options
from kassay.experiments.cli.output_options import numbered
from kassay.experiments.cli.search_options import SearchOptions

DEFAULTS = SearchOptions(time_limit=5.0, seed=7)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], DEFAULTS),
        (["--seed", "3", "--workers", "2"], replace(DEFAULTS, seed=3, workers=2)),
    ],
)
def test_a_dataclass_of_options_becomes_one_option_per_field(arguments, expected):
    seen = []

    def command(*, search: SearchOptions = DEFAULTS, name: str = "x") -> None:
        seen.append((search, name))

    app = typer.Typer()
    app.command()(expand_options(command))
    assert CliRunner().invoke(app, [*arguments, "--name", "y"]).exit_code == 0
    assert seen == [(expected, "y")]


def test_plots_after_the_first_are_numbered():
    files = numbered(Path("a.svg"))
    assert [next(files).name for _ in range(3)] == ["a.svg", "a-2.svg", "a-3.svg"]
