import pytest
from typer.testing import CliRunner

from kassay.experiments.cli import COMMANDS, app, print_error, print_note

RUN = CliRunner()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_how_to_call_it(command):
    shown = RUN.invoke(app, [command, "--help"], env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    words = " ".join(shown.output.replace("│", " ").split())
    assert "Example" in words
    assert f"kassay {command}" in words.split("Example", 1)[1].split("Options")[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_can_be_shown(shell):
    asked = {"_KASSAY_COMPLETE": f"source_{shell}"}
    shown = RUN.invoke(app, [], prog_name="kassay", env=asked)
    assert shown.exit_code == 0
    assert "_KASSAY_COMPLETE" in shown.output


@pytest.mark.parametrize("say", [print_error, print_note])
def test_no_color_keeps_escape_codes_off_a_terminal(say, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_error("g.json: no such file")
    assert "\x1b[" in capsys.readouterr().err
    monkeypatch.setenv("NO_COLOR", "1")
    say("g.json: no such file")
    assert capsys.readouterr().err == "kassay: g.json: no such file\n"
