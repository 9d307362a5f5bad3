import pytest
from typer.testing import CliRunner

from experiments.cli import _COMMANDS, app

RUN = CliRunner()


@pytest.mark.parametrize("command", _COMMANDS)
def test_the_help_of_a_command_shows_how_to_call_it(command):
    shown = RUN.invoke(app, [command, "--help"], env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    words = " ".join(shown.output.replace("│", " ").split())
    assert "Example" in words
    assert f"kassay {command}" in words.split("Example", 1)[1].split("Options")[0]
