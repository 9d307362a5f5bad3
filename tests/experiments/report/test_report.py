import base64
import html
import io
import json
import re
import shutil
from dataclasses import asdict, replace
from html.parser import HTMLParser

import pandas as pd
import pytest

from kassay.experiments.cli import main
from kassay.experiments.plotting.assignment_figure import draw_assignment
from kassay.experiments.report import study_summary as summary
from kassay.experiments.report.study_figures import GAP_BINS, distributions
from kassay.experiments.report.study_report import render, template_values
from kassay.experiments.report.study_summary import Proportion
from kassay.experiments.report.table_reader import Tables, load_tables
from kassay.experiments.report.worst_groups import named_groups, worst_groups
from kassay.experiments.study.case import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.families.named_groups import NAMED_GROUPS
from kassay.reference import Assignment, InputError
from kassay.reference.assignors import assign
from kassay.reference.documents.json_codec import parse_group
from kassay.solver.improvement.explanation import explain

VOID = {"meta", "br", "path", "use", "rect", "circle", "i", "link"}


@pytest.fixture(scope="session")
def page(tables) -> str:
    return render(tables).html


@pytest.fixture(scope="session")
def facts(tables):
    return template_values(tables)


class Balance(HTMLParser):
    """Collects tags and complains of those not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_no_network(page):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    addresses = [
        value
        for name, value in parser.attributes
        if name in {"href", "src", "xlink:href", "action", "srcset"} and value
    ]
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "@import" not in page
    assert "url(http" not in page


def test_equal_tables_give_equal_pages(tables, page):
    assert render(tables).html == page


def test_every_figure_carries_its_data(page):
    links = re.findall(r'download="([^"]+)\.csv" href="data:text/csv;base64,([^"]+)"', page)
    assert len(links) == page.count("<figure>") + page.count('<table class="sortable')
    assert len({name for name, _ in links}) == len(links)
    for _, data in links:
        assert len(pd.read_csv(io.BytesIO(base64.b64decode(data)))) > 0


def test_every_figure_names_the_command_that_makes_it_again(page):
    named = re.findall(r'download="([^"]+)\.csv"', page)
    commands = re.findall(r"kassay report DIR --only ([^<]+)<", page)
    assert sorted(commands) == sorted(named)


def test_the_numbers_of_the_page_are_those_of_the_tables(tables, facts, page):
    rows = summary.without_named(summary.join_groups(tables))
    mine = rows[(rows["assignor"] == "range") & (rows["ending"] == "ok")]
    assert len(mine) < (tables.comparisons["assignor"] == "range").sum()
    reached = int(mine["least_imbalance"].sum())
    found = facts["overall"]["range"]
    assert (found.minimum_imbalance.count, found.minimum_imbalance.total) == (reached, len(mine))
    assert found.minimum_imbalance.percent in page
    assert found.moves == int(mine["movement_greedy"].sum())
    assert found.unnecessary_moves == int(mine["unnecessary_moves"].sum())


def test_the_markdown_tells_the_same_numbers(tables, facts):
    text = render(tables).markdown
    found = facts["overall"]["range"]
    assert f"| range | {found.groups} | {found.minimum_imbalance.percent} |" in text
    assert not re.search(r"\n\n\n|^ +\||\{\{|\{%", text)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.count("|") for line in block.splitlines()}) == 1


def test_groups_that_could_not_be_built_are_told_and_counted_in_no_figure(facts, page):
    assert facts["counts"]["errors"] == 1
    assert "Errors of the study itself: 1" in page


def test_an_assignor_that_does_not_end_counts_as_missing_the_least_imbalance():
    rows = pd.DataFrame(
        {
            "ending": ["ok", "nonterminating", "failed"],
            "proven": pd.array([True, True, True], dtype="boolean"),
            "least_imbalance": pd.array([True, None, None], dtype="boolean"),
            "owned": pd.array([1, 1, 1], dtype="Int64"),
            "unnecessary_moves": pd.array([0, None, None], dtype="Int64"),
            "movement_greedy": pd.array([0, None, None], dtype="Int64"),
            "makespan_gap": pd.array([0, None, None], dtype="Int64"),
        }
    )
    found = summary.summarise_rows(rows)
    assert (found.minimum_imbalance.count, found.minimum_imbalance.total) == (1, 3)
    assert (found.with_unnecessary_moves.count, found.with_unnecessary_moves.total) == (0, 1)
    assert (found.nonterminating, found.failed) == (1, 1)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (Proportion(0, 7), "0 %"),
        (Proportion(7, 7), "100 %"),
        (Proportion(1, 3), "33.3 %"),
        (Proportion(9_999, 10_000), "99.9 %"),
        (Proportion(1, 10_000), "0.1 %"),
        (Proportion(0, 0), "–"),
    ],
)
def test_a_share_is_all_or_nothing_only_if_it_is(share, text):
    assert share.percent == text.replace(" %", "\u00a0%")


def test_bins_hold_every_gap_once():
    rows = pd.DataFrame(
        {
            "family": "equal-join",
            "assignor": "range",
            "gap": pd.array(list(range(100)), dtype="Int64"),
        }
    )
    (plot,) = distributions(rows, "gap", GAP_BINS, name="gap")
    table = pd.read_csv(io.StringIO(plot.csv), index_col="family")
    assert table.loc["equal-join"].tolist() == [1, 2, 6, 24, 67]


def test_a_drawing_has_a_cell_a_partition_and_an_arrow_a_pair_of_members():
    group = NAMED_GROUPS["B"].group
    assignment = Assignment({"c0": [("t0", 0)], "c1": [("t1", 0)], "c2": [("t2", 0)]})
    svg = draw_assignment(group, assignment, title="B")
    assert svg.count("<rect") == 3
    assert svg.count('class="moved"') == 2
    assert svg.count('class="kept"') == 1
    assert svg.count('class="arrow"') == 2


def test_names_in_a_drawing_are_escaped():
    group = NAMED_GROUPS["B"].group
    svg = draw_assignment(group, assign(group, "range"), title='<script>"')
    assert "<script>" not in svg


def test_the_worst_groups_are_the_worst(tables, monkeypatch):
    monkeypatch.setattr("kassay.experiments.report.worst_groups.BALANCING", ("range",))
    rows = summary.join_groups(tables)
    exhibits = list(worst_groups(tables, rows))
    about = tables.groups[tables.groups["error"].isna()]
    drawable = set(about.loc[(about["partitions"] <= 60) & (about["members"] <= 12), "case"])
    mine = rows[(rows["assignor"] == "range") & rows["case"].isin(drawable)]
    top = {row["case"]: row for _, row in mine.iterrows()}
    assert top[exhibits[0].case]["makespan_gap"] == mine["makespan_gap"].max()
    assert top[exhibits[1].case]["unnecessary_moves"] == mine["unnecessary_moves"].max()
    assert [panel.title for panel in exhibits[0].panels] == ["range", "an optimum"]


@pytest.mark.parametrize("missing", ["manifest.json", "optima"])
def test_an_incomplete_study_is_refused_by_name(study_directory, tmp_path, missing):
    copy = tmp_path / "copy"
    shutil.copytree(study_directory, copy)
    path = copy / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InputError, match=missing):
        load_tables(copy)


def test_a_manifest_that_is_no_json_is_refused_by_name(study_directory, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study_directory, copy)
    (copy / "manifest.json").write_text(json.dumps({})[:-1])
    with pytest.raises(InputError, match=r"manifest\.json"):
        load_tables(copy)


@pytest.fixture
def bare(tables):
    """The same study, had it kept seeds alone."""
    return replace(
        tables,
        groups=tables.groups.assign(document=None),
        assignments=tables.assignments.assign(assignment=None),
        optima=tables.optima.assign(assignment=None),
    )


def test_worst_groups_are_built_again_where_the_tables_hold_seeds_alone(tables, bare, monkeypatch):
    monkeypatch.setattr("kassay.experiments.report.worst_groups.BALANCING", ("range",))
    whole, again = (list(worst_groups(held, summary.join_groups(held))) for held in (tables, bare))
    assert [item.case for item in again] == [item.case for item in whole]
    assert [item.document for item in again] == [item.document for item in whole]
    assert [item.steps for item in again] == [item.steps for item in whole]
    assert [item.panels[0] for item in again] == [item.panels[0] for item in whole]


def test_a_group_that_comes_out_another_one_is_not_shown(bare, monkeypatch):
    monkeypatch.setattr("kassay.experiments.report.worst_groups.BALANCING", ("range",))
    other = replace(bare, groups=bare.groups.assign(owned=bare.groups["owned"] + 1))
    assert list(worst_groups(other, summary.join_groups(other))) == []


def test_the_worst_groups_are_explained_as_the_command_explains_them(tables, monkeypatch):
    monkeypatch.setattr("kassay.experiments.report.worst_groups.BALANCING", ("range",))
    exhibit = next(worst_groups(tables, summary.join_groups(tables)))
    group = parse_group(json.loads(exhibit.document))
    told = tuple(str(step) for step in explain(group, assign(group, "range")))
    assert len(told) > 1
    assert exhibit.steps + told[len(exhibit.steps) :] == told
    assert exhibit.more_steps == len(told) - len(exhibit.steps)
    assert exhibit.steps[0] in html.unescape(render(tables).html)


def test_a_group_on_which_it_never_ends_is_drawn_with_the_state_that_repeats(tmp_path):
    record = evaluate_case(Case(family="named", seed=3, assignors=("sticky",)))
    found = {
        name: pd.DataFrame([asdict(row) for row in rows])
        for name, rows in {
            "groups": [record.group],
            "assignments": record.assignments,
            "optima": [record.optimum],
            "comparisons": record.comparisons,
        }.items()
    }
    tables = Tables(**found, manifest={})
    (exhibit,) = named_groups(tables, summary.join_groups(tables))
    assert exhibit.panels[0].title == "sticky, a state that repeats"
    assert exhibit.steps


def test_parameters_of_the_families_reach_the_page(tables, facts, page):
    told = facts["parameters"]
    events = {row[1] for row in told["levels"].rows if row[0] == "event"}
    assert events == {"fresh", "join", "several"}
    overlaps = [row for row in told["levels"].rows if row[0] == "overlap"]
    assert len(overlaps) > 1
    assert "mixed, steps 5, own history, members 3 to 20, topics 2 to 10" in page
    counts = dict(row[:2] for row in told["families"].rows)
    assert int(counts["equal-join"]) == (tables.groups["family"] == "equal-join").sum()


def test_a_study_without_subscriptions_has_no_overlap_but_the_rest(tables):
    old = replace(tables, groups=tables.groups.drop(columns=["consumed", "subscriptions"]))
    parameters = {row[0] for row in template_values(old)["parameters"]["levels"].rows}
    assert "overlap" not in parameters
    assert {"members", "topics", "mixed"} <= parameters


def test_each_family_has_a_figure_of_its_own(tables, facts):
    shown = [plot.title for plot in facts["family_plots"]]
    assert shown == list(summary.families_of(summary.join_groups(tables)))


def test_the_command_writes_every_csv_beside_the_page(study_directory, tmp_path, capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["report", str(study_directory), "-o", str(tmp_path / "mine.html")])
    assert leaving.value.code == 0
    page = (tmp_path / "mine.html").read_text()
    files = {path.stem: path.read_text() for path in (tmp_path / "mine-data").iterdir()}
    links = re.findall(r'download="([^"]+)\.csv" href="data:text/csv;base64,([^"]+)"', page)
    assert files == {name: base64.b64decode(data).decode() for name, data in links}


def test_one_figure_is_made_again_by_its_name(study_directory, tmp_path, capsys):
    options = ["-o", str(tmp_path / "mine.html"), "--only"]
    with pytest.raises(SystemExit) as leaving:
        main(["report", str(study_directory), *options, "missed-by-members"])
    assert leaving.value.code == 0
    written = sorted(path.name for path in (tmp_path / "mine-data").iterdir())
    assert written == ["missed-by-members.csv", "missed-by-members.svg"]
    assert not (tmp_path / "mine.html").exists()
    with pytest.raises(SystemExit) as leaving:
        main(["report", str(study_directory), *options, "no-such"])
    assert leaving.value.code == 2
    assert "no figure 'no-such'; choose from assignors, " in capsys.readouterr().err
