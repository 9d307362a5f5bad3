"""What the documentation promises: links that lead somewhere, examples that are run."""

import json
import re
import shlex
from pathlib import Path

import pytest
import typer

from kassay.experiments.cli import COMMANDS, app
from kassay.experiments.simulation.script_parser import parse_script
from kassay.reference.documents.json_codec import parse_group

ROOT = Path(__file__).parents[1]
RUN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Pages whose console and Python blocks ``conftest.py`` runs."""
PAGES = [*RUN, ROOT / "CHANGELOG.md", *sorted((ROOT / "examples").rglob("*.md"))]
_FENCED = re.compile(r"^```(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^\s*(\$ |kassay |\.venv/bin/|python -m )", re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    return [(kind, text) for kind, text in _FENCED.findall(page.read_text(encoding="utf-8"))]


def anchors(page):
    """Headings as forges and the site make anchors of them."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_within_leads_somewhere(page):
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    lost = []
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def test_the_site_has_every_page():
    listed = re.findall(
        r"^(?:.* <)?([\w./-]+)>?$", (ROOT / "docs/index.md").read_text(), re.MULTILINE
    )
    missing = [page.stem for page in RUN[1:] if page.stem not in [*listed, "index"]]
    assert not missing


@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_command_shown_is_one_that_is_run(page):
    shown = [text for kind, text in blocks(page) if kind not in ("console", "python")]
    assert not [text for text in shown if _COMMAND.search(text)]


@pytest.mark.parametrize("page", RUN, ids=name)
def test_a_command_that_takes_too_long_to_be_run_is_one_that_can_be_given(page):
    rest = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for line in re.findall(r"^    kassay (.*)$", rest, re.MULTILINE):
        command, *arguments = shlex.split(line)
        table = typer.main.get_command(app)
        table.get_command(None, command).make_context(command, arguments).close()


@pytest.mark.parametrize("page", RUN, ids=name)
def test_every_console_block_has_a_command_and_every_python_block_an_example(page):
    starts = {"console": "$ ", "python": ">>> "}
    for kind, text in blocks(page):
        assert any(line.startswith(starts.get(kind, "")) for line in text.splitlines()), text


def test_documents_and_scripts_that_are_shown_can_be_read():
    read = 0
    for page in RUN:
        for kind, text in blocks(page):
            if kind == "json":
                parse_group(json.loads(text))
                read += 1
            elif kind == "yaml":
                parse_script(text, name(page))
                read += 1
    assert read


def test_the_readme_names_every_command():
    told = re.findall(r"^\| `kassay ([\w-]+)`", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(told) == sorted(COMMANDS)
