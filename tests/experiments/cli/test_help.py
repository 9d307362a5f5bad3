import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kassay.experiments.cli import COMMANDS, app
from kassay.experiments.cli.application import help_texts
from tests.stored_cases import stored_cases

RUN = CliRunner()
EXAMPLES = Path(__file__).parents[3] / "examples"
_HELPS = ("--help", "--help-all")
SLOW_PACKAGES = {"numpy", "ortools", "pandas", "pyspark", "matplotlib", "confluent_kafka"}


def modules_after(*arguments: object) -> set[str]:
    """Run ``kassay`` in a new process and return the names of the loaded modules."""
    script = (
        "import sys\nfrom kassay.experiments.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as exit_:\n    assert not exit_.code, exit_.code\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_help_loads_no_command_and_no_slow_package():
    modules = modules_after("--help")
    assert not [name for name in modules if name.startswith("kassay.experiments.cli.commands")]
    assert not modules & SLOW_PACKAGES


@pytest.mark.parametrize("source", ["shop-cluster", "lagging-group"])
def test_a_survey_loads_no_library_of_tables_or_figures(source):
    loaded = modules_after("survey", EXAMPLES / source, "--format", "table")
    assert loaded.isdisjoint({"pandas", "matplotlib", "scipy", "pyspark", "confluent_kafka"})


@pytest.mark.parametrize("weights", [None, [9, 7, 5, 4, 2, 1]], ids=["equal", "weighted"])
def test_a_small_plan_with_a_frontier_loads_no_library_of_tables_or_cp_sat(weights, tmp_path):
    group = tmp_path / "group.json"
    members = [
        {"id": "a", "topics": ["t"], "owned": {"t": [0, 1, 2, 3, 4]}},
        {"id": "b", "topics": ["t"], "owned": {"t": [5]}},
        {"id": "c", "topics": ["t"]},
    ]
    topic = {"partitions": 6, "weights": weights} if weights else 6
    group.write_text(json.dumps({"id": "g", "topics": {"t": topic}, "members": members}))
    loaded = modules_after("plan", group, "-o", tmp_path / "plan")
    assert "Imbalance by number of moves" in (tmp_path / "plan" / "report.html").read_text()
    assert loaded.isdisjoint({"pandas", "pyspark", "ortools.sat", "scipy.optimize"})


def test_help_lists_every_command():
    shown = RUN.invoke(app, ["--help"])
    assert shown.exit_code == 0
    for command, summary in COMMANDS.items():
        assert f"  {command} " in shown.output
        assert summary in " ".join(shown.output.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_its_summary_and_an_example(command):
    shown = RUN.invoke(app, [command, "--help"], env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert shown.exit_code == 0
    text = " ".join(shown.output.replace("│", " ").split())
    assert COMMANDS[command] in text
    assert f"kassay {command}" in text.split("Example", 1)[1].split("Options")[0]


_OPTION_ROW = re.compile(r"(?m)^  ((?:-\w, )?--\S+(?: \S+)*)")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_on_two_screens_and_help_all_is_complete(command):
    width = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    short, complete = (RUN.invoke(app, [command, one], env=width).output for one in _HELPS)
    assert len(short.splitlines()) <= 2 * 48
    assert max(map(len, short.splitlines())) <= 80
    names = [
        {name for row in _OPTION_ROW.findall(one) for name in re.findall("--[a-z-]+", row)}
        for one in (short, complete)
    ]
    assert len(_OPTION_ROW.findall(short)) - len(_HELPS) <= 24
    assert names[0] <= names[1]
    params = typer.main.get_command(app).get_command(None, command).load().params
    options = {one for param in params for one in param.opts if one.startswith("--")}
    assert options <= names[1]


def test_there_are_at_most_17_commands():
    assert len(COMMANDS) <= 17


def test_each_help_text_belongs_to_an_option():
    table = typer.main.get_command(app)
    groups = [
        each
        for name in COMMANDS
        for group, _ in table.get_command(None, name).load().groups.values()
        for each in group.__mro__
    ]
    known = {each.__name__: each.__dataclass_fields__ for each in groups if each is not object}
    known["Options of several classes"] = {name: 0 for each in known.values() for name in each}
    for name, texts in help_texts("options").items():
        assert texts
        assert texts.keys() <= known[name].keys()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_is_available(shell):
    variables = {"_KASSAY_COMPLETE": f"source_{shell}"}
    shown = RUN.invoke(app, [], prog_name="kassay", env=variables)
    assert shown.exit_code == 0
    assert "_KASSAY_COMPLETE" in shown.output


def test_the_version_includes_solver_and_spark(kassay):
    done = kassay("--version")
    assert done.code == 0
    assert all(name in done.out for name in ("kassay", "ortools", "pyspark", "Python"))


WITHOUT_EXTRAS = """
import sys
from kassay.experiments.cli.application import EXTRAS, main
for packages in EXTRAS.values():
    for name in packages:
        sys.modules[name] = None
main(sys.argv[1:])
"""


@pytest.mark.parametrize(("arguments", "missing"), stored_cases("commands_and_extras"))
def test_only_commands_that_need_an_extra_fail_without_it(tmp_path, arguments, missing):
    (tmp_path / "groups.json").write_text(
        '{"id": "g", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]}'
    )
    (tmp_path / "dump.txt").write_text("Dumping __consumer_offsets-1/0.log")
    command = [sys.executable, "-c", WITHOUT_EXTRAS, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if missing else 0), done.stderr
    if missing:
        assert f"run: pip install 'kassay[{missing}]'\n" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_page_without_matplotlib_names_the_extra_of_its_figure(tmp_path):
    group = {
        "id": "g",
        "topics": {"t": 6},
        "members": [
            {"id": "a", "topics": ["t"], "owned": {"t": [0, 1, 2, 3, 4, 5]}},
            {"id": "b", "topics": ["t"]},
        ],
    }
    (tmp_path / "group.json").write_text(json.dumps(group))
    command = [sys.executable, "-c", WITHOUT_EXTRAS, "plan", "group.json", "-o", "plan"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    page = (tmp_path / "plan" / "report.html").read_text()
    assert "pip install 'kassay[plots]'" in page
    assert 'download="frontier.csv"' in page
    assert "There is one point" not in page
