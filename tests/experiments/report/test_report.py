import base64
import io
import re
import shutil
from html.parser import HTMLParser

import pandas as pd
import pytest

from kassay import InputError
from kassay.experiments.cli import main
from kassay.experiments.counterexamples.render_gallery import worst_groups
from kassay.experiments.report.study_report import Report
from kassay.experiments.report.study_tables import Proportion, summarise_rows
from kassay.experiments.study.output_reader import load_summary

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def page(report) -> str:
    return report.html


@pytest.fixture(scope="session")
def facts(report):
    return report.template_values


class Balance(HTMLParser):
    """Checks that tags are closed in order."""

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


def test_every_figure_and_table_links_its_csv(page):
    links = re.findall(r'download="([^"]+)\.csv" href="data:text/csv;base64,([^"]+)"', page)
    assert len(links) == page.count("<figure>") + page.count('<table class="sortable')
    assert len({name for name, _ in links}) == len(links)
    for _, data in links:
        assert len(pd.read_csv(io.BytesIO(base64.b64decode(data)))) > 0


def test_the_page_shows_the_numbers_of_the_tables(results, comparisons, facts, page):
    own = [
        row
        for row in comparisons
        if row["assignor"] == "range" and row["family"] != "named" and row["proven"]
    ]
    reached = sum(row["least_imbalance"] for row in own)
    result = facts["overall"]["range"]
    assert (result.minimum_imbalance.count, result.minimum_imbalance.total) == (reached, len(own))
    assert result.missed_maximum.percent_with_interval in page
    owned = [row for row in own if row["owned"]]
    assert result.sums["moves"] == sum(row["movement_greedy"] for row in owned)
    assert result.sums["unnecessary_moves"] == sum(row["unnecessary_moves"] for row in owned)


def test_groups_that_cannot_be_built_are_reported_as_errors(facts, page):
    assert facts["counts"]["errors"] == 1
    assert "Errors of the study itself, in no number: 1" in page


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (Proportion(0, 7), "0%"),
        (Proportion(7, 7), "100%"),
        (Proportion(1, 3), "33.3%"),
        (Proportion(9_999, 10_000), "99.99%"),
        (Proportion(1, 10_000), "0.01%"),
        (Proportion(0, 0), "–"),
    ],
)
def test_percentages_are_0_or_100_only_if_they_are_exact(share, text):
    assert share.percent == text


def test_intervals_contain_the_shown_proportion():
    for count, total in ((1, 10_000), (4, 934_557), (999_999, 1_000_000), (1, 3), (0, 7), (7, 7)):
        text = Proportion(count, total).percent_with_interval.replace("%", "")
        value, low, high = map(float, re.findall(r"[\d.]+", text))
        assert low <= value <= high


def test_groups_without_a_result_are_a_category_of_their_own():
    rows = pd.DataFrame({"family": ["a"], "scope": ["weights"], **_counts()})
    found = summarise_rows(rows)
    expected = {"groups": 20, "answered": 12, "failed": 5, "nonterminating": 3}
    assert found.sums | expected == found.sums
    assert (found.missed.count, found.missed.total) == (6, 12)
    assert (found.minimum_imbalance.count, found.minimum_imbalance.total) == (6, 20)
    assert found.mean_excess == pytest.approx(2.5)
    assert found.ratio("unnecessary_moves", "known") == pytest.approx(0.4)
    assert found.ratio("unnecessary_moves", "owned_partitions") == pytest.approx(0.04)


def _counts(**changes):
    counts = {"groups": 20, "answered": 12, "failed": 5, "nonterminating": 3, "missed": 6}
    more = {"missed_maximum": 4, "known": 10, "wasteful": 2, "moves": 9, "unnecessary_moves": 4}
    sums = {"owned_partitions": 100, "excess_ppm": 300_000}
    largest = {"largest_excess": 2, "largest_excess_ppm": 200_000}
    return {"mixed": [True], "assignor": ["x"]} | {
        name: [value] for name, value in (counts | more | sums | largest | changes).items()
    }


def test_results_by_family_have_all_assignors_with_results(report, results):
    rows = report.items["results-by-family"].rows
    assert {row[1] for row in rows} == set(results.outcomes["assignor"])


def test_worst_groups_have_the_largest_gaps(results, comparisons):
    groups = list(worst_groups(results, ["range"]))
    own = {
        row["case"]: row
        for row in comparisons
        if row["assignor"] == "range" and row["document"] is not None
    }
    for place, column in enumerate(("makespan_gap", "unnecessary_moves")):
        values = [row[column] for row in own.values() if row["family"] != "named"]
        assert own[groups[place]["group"]["case"]][column] == max(value or 0 for value in values)
    assert [panel.title for panel in groups[0]["panels"]] == ["range", "an optimum"]


def test_a_damaged_manifest_is_an_input_error(study_directory, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study_directory, copy)
    [manifest] = copy.glob("manifest/run=*/part-*")
    manifest.write_text(manifest.read_text()[:-5])
    with pytest.raises(InputError, match="no manifest can be read"):
        load_summary(copy)
    shutil.rmtree(copy / "manifest")
    with pytest.raises(InputError, match="there is no manifest"):
        load_summary(copy)


def test_the_command_writes_the_same_page_and_one_csv_per_figure_and_table(
    study_directory, page, tmp_path, capsys
):
    with pytest.raises(SystemExit) as leaving:
        main(["report", str(study_directory), "-o", str(tmp_path / "mine.html")])
    assert leaving.value.code == 0
    assert (tmp_path / "mine.html").read_text() == page
    files = {path.stem: path.read_text() for path in (tmp_path / "mine-data").iterdir()}
    links = re.findall(r'download="([^"]+)\.csv" href="data:text/csv;base64,([^"]+)"', page)
    assert files == {name: base64.b64decode(data).decode() for name, data in links}


def test_the_option_only_writes_one_figure(study_directory, tmp_path, capsys):
    options = ["-o", str(tmp_path / "mine.html"), "--only"]
    with pytest.raises(SystemExit) as leaving:
        main(["report", str(study_directory), *options, "minimum-imbalance"])
    assert leaving.value.code == 0
    written = sorted(path.name for path in (tmp_path / "mine-data").iterdir())
    assert written == ["minimum-imbalance.csv", "minimum-imbalance.svg"]
    assert not (tmp_path / "mine.html").exists()
    with pytest.raises(SystemExit) as leaving:
        main(["report", str(study_directory), *options, "no-such"])
    assert leaving.value.code == 2
    assert "--only: unknown name 'no-such'; choose from " in capsys.readouterr().err


def test_commands_of_worst_groups_do_not_name_an_alias_as_an_assignor(facts):
    worst = {example["comparison"]["assignor"] for example in facts["worst_groups"]}
    assert worst
    page = Report({**facts, "own": tuple(worst)}).html
    assert page.count("--assignor NAME</code>, where NAME is") == len(facts["worst_groups"])
    assert all(f"GROUP.json --assignor {name}<" not in page for name in worst)
