"""Options that commands share."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from kassay.experiments.cli.option_groups import ComposedCommand, option
from kassay.experiments.cli.output import numbered
from kassay.experiments.cli.search_options import SearchOptions

DEFAULTS = SearchOptions(time_limit=5.0, seed=7)


@dataclass(frozen=True, kw_only=True)
class Named:
    """Group with one option."""

    panel: ClassVar[str] = "Names"

    name: str = option("x", "Name.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], DEFAULTS),
        (["--seed", "3", "--workers", "2"], replace(DEFAULTS, seed=3, workers=2)),
    ],
)
def test_a_dataclass_of_options_becomes_one_option_per_field(arguments, expected):
    seen = []

    def command(*, search: SearchOptions = DEFAULTS, named: Named) -> None:
        seen.append((search, named.name))

    with pytest.raises(SystemExit) as exit_:
        ComposedCommand("command", command)([*arguments, "--name", "y"])
    assert not exit_.value.code
    assert seen == [(expected, "y")]


def test_the_options_of_a_group_have_its_heading_in_the_help():
    def command(*, search: SearchOptions, named: Named) -> None:
        """Use both groups."""

    headings = {one.name: one.rich_help_panel for one in ComposedCommand("command", command).params}
    assert headings["name"] == "Names"
    assert headings["seed"] is None


def test_following_on_spark_connect_is_rejected_before_spark_starts(kassay, tmp_path):
    cluster = ("--bootstrap-server", "broker:9092", "--master", "sc://host:15002")
    done = kassay("history", "--follow", *cluster, "-o", tmp_path)
    assert done.code == 2
    assert "--follow does not run on Spark Connect, got --master sc://host:15002" in done.err


def test_options_for_following_require_follow(kassay, tmp_path):
    done = kassay("history", "records.parquet", "-o", tmp_path, "--interval", "2")
    assert done.code == 2
    assert "--metrics, --interval and --quiet-period require --follow" in done.err


def test_plots_after_the_first_are_numbered():
    files = numbered(Path("a.svg"))
    assert [next(files).name for _ in range(3)] == ["a.svg", "a-2.svg", "a-3.svg"]
