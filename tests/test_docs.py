"""Tests of the documentation: links, commands and examples."""

import csv
import json
import pkgutil
import re
import shlex
from pathlib import Path

import pytest
import typer

from kassay.experiments.cli import COMMAND_GROUPS, COMMANDS, app
from kassay.experiments.implementations import assignor_names, client_libraries
from kassay.experiments.implementations.assignor_names import JavaClass
from kassay.experiments.planning.event_forecast import load_planned_events
from kassay.experiments.simulation.script import parse_script
from kassay.reference.assignors import RebalanceProtocol
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from tools import findings_figures, insert_findings, write_command_reference
from tools.insert_published_numbers import HEADLINE, markdown_table, replace_numbers

ROOT = Path(__file__).parents[1]
EXECUTED = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Pages with console and Python blocks that ``conftest.py`` runs."""
PAGES = [
    *EXECUTED,
    *sorted((ROOT / "docs/results").glob("*.md")),
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
PLANNED_GROUP = parse_group(
    {"topics": {"orders": 2}, "members": [{"id": "checkout-0", "topics": ["orders"]}]}
)
_FENCED = re.compile(r"^```(\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^\s*(\$ |kassay |\.venv/bin/|python -m )", re.MULTILINE)


def name(page):
    return str(page.relative_to(ROOT))


def blocks(page):
    return _FENCED.findall(page.read_text(encoding="utf-8"))


def text_outside_blocks(page):
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", text_outside_blocks(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_files_and_headings_resolve(page):
    broken = []
    for link in _LINK.findall(text_outside_blocks(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_line_starts_with_a_percent_sign(page):
    # The site would read the line as a comment.
    assert not re.findall(r"^\s*%.*$", text_outside_blocks(page), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_and_files_named_in_the_text_exist(page):
    text = text_outside_blocks(page)
    paths = re.findall(
        r"`((?:reference|solver|experiments|tests|benchmarks|examples|docs|kassay)/[\w./-]+)`", text
    )
    dotted = re.findall(r"`(kassay(?:\.[a-z]\w+){2,})`", text)
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing + [module for module in dotted if not importable(module)]


def importable(dotted):
    """Return whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_architecture_page_names_all_packages():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    packages = [
        init.parent.relative_to(ROOT)
        for folder in ("reference", "solver", "experiments")
        for init in (ROOT / folder).rglob("__init__.py")
    ]
    assert not [str(package) for package in packages if f"`{package}`" not in text]


def test_the_api_reference_contains_the_documented_interface():
    interface = (ROOT / "kassay/__init__.pyi").read_text(encoding="utf-8")
    modules = re.findall(r"from (kassay\.\S+) import", interface)
    reference = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    assert modules
    assert not [module for module in modules if f"automodule:: {module}\n" not in reference]


def test_the_site_contains_all_pages():
    listed = re.findall(
        r"^(?:.* <)?([\w./-]+)>?$", (ROOT / "docs/index.md").read_text(), re.MULTILINE
    )
    names = ["index", *(Path(name).name for name in listed)]
    missing = [
        page.stem
        for page in PAGES[1:]
        if page.parts[-2] in ("docs", "results") and page.stem not in names
    ]
    assert not missing


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_commands_in_fenced_blocks_are_executed(page):
    other = [text for kind, text in blocks(page) if kind not in ("console", "python")]
    assert not [text for text in other if _COMMAND.search(text)]


# test_extending.py runs the commands of docs/extending.md.
@pytest.mark.parametrize("page", [page for page in EXECUTED if page.stem != "extending"], ids=name)
def test_indented_commands_have_valid_arguments(page, monkeypatch):
    # The arguments are parsed only: no library needs to be installed.
    monkeypatch.setattr(client_libraries, "is_installed", lambda library, version: True)
    java = JavaClass("Mine", ("true",), "kafka-broker", Kind.CONSUMER, RebalanceProtocol.EAGER)
    monkeypatch.setattr(assignor_names, "find_java_class", lambda *_, version: java)
    text = text_outside_blocks(page).replace("\\\n", "")
    for line in re.findall(r"^    kassay (.*)$", text, re.MULTILINE):
        words = shlex.split(line.replace("HOST:PORT", "127.0.0.1:9092"))
        name, command, arguments = typer.main.get_command(app).resolve_command(None, words)
        command.make_context(name, arguments).close()


@pytest.mark.parametrize("page", EXECUTED, ids=name)
def test_console_and_python_blocks_contain_a_command_or_an_example(page):
    starts = {"console": "$ ", "python": ">>> "}
    for kind, text in blocks(page):
        assert any(line.startswith(starts.get(kind, "")) for line in text.splitlines()), text


def test_the_command_reference_is_the_help_of_the_commands():
    page = write_command_reference.page()
    assert write_command_reference.PAGE.read_text(encoding="utf-8") == page, "run: make commands"
    shared, *sections = page.split("\n## ")[1:]
    for name, section in zip(COMMANDS, sections, strict=True):
        for param in typer.main.get_command(app).get_command(None, name).load().params:
            shown = param.metavar if param.param_type_name == "argument" else param.opts[0]
            assert f"`{shown}`" in section, name
            assert f"| `{shown}`" in section + shared
            assert param.help in section + shared


def test_group_documents_and_scripts_are_valid(tmp_path):
    parsed = 0
    for page in EXECUTED:
        for kind, text in blocks(page):
            if kind == "json":
                document = json.loads(text)
                if "kind" in document:
                    parse_kind_document(document, kind=Kind(document["kind"]))
                else:
                    parse_group(document)
                parsed += 1
            elif kind == "yaml" and page.stem == "deployments":
                events = tmp_path / "events.yaml"
                events.write_text(text, encoding="utf-8")
                load_planned_events(events, PLANNED_GROUP)
            elif kind == "yaml":
                parse_script(text, name(page))
                parsed += 1
    assert parsed


def test_the_results_of_the_demo_are_the_recorded_table():
    text = (ROOT / "docs/results/demo.md").read_text(encoding="utf-8")
    with (ROOT / "docs" / "headline.csv").open(encoding="utf-8") as file:
        columns, *rows = csv.reader(file)
    table = markdown_table(columns, rows)
    assert replace_numbers(text, table, where="demo.md", place=HEADLINE) == text


@pytest.mark.parametrize("page", insert_findings.PAGES)
def test_the_numbers_of_the_findings_are_those_of_the_results(page):
    message = "run: make findings"
    assert (ROOT / page).read_text(encoding="utf-8") == insert_findings.page(page), message


def test_the_figures_of_the_findings_are_those_of_the_results():
    for name, svg in findings_figures.figures().items():
        assert (ROOT / f"docs/images/{name}.svg").read_text(encoding="utf-8") == svg, name


def test_the_readme_lists_the_commands_by_purpose_as_the_help_does():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {group: set() for group in COMMAND_GROUPS}
    rows = re.findall(r"^\| (\w+) \| [^|`]+ \| (`.+`) \|$", text, re.MULTILINE)
    for group, commands in rows:
        listed[group] |= set(re.findall(r"`([\w-]+)`", commands))
    assert listed == {group: set(commands) for group, commands in COMMAND_GROUPS.items()}
    assert len(rows) <= 12
    assert len(text.splitlines()) <= 100


def test_the_readme_has_three_findings_in_short_sentences():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.partition("<!-- findings: begin -->")[2].partition("<!-- findings: end -->")[0]
    findings = re.split(r"^\d\. ", block, flags=re.MULTILINE)[1:]
    assert len(findings) == 3
    for finding in findings:
        plain = re.sub(r" \(\[[^]]*\]\([^)]*\)\)|\*", "", " ".join(finding.split()))
        for sentence in re.split(r"(?<=\.) (?=[A-Z`])", plain):
            assert len(sentence.split()) <= 20, sentence
            assert len(re.findall(r"\d+(?:\.\d+)?", sentence)) <= 1, sentence
