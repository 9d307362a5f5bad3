import json
import re
import shutil
from functools import partial

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from kassay.experiments.compare import LIMITS, CaseLimits
from kassay.experiments.report.output_reader import load_summary, read_manifest
from kassay.experiments.spark.code_distribution import code_identity
from kassay.experiments.spark.output_files import delete_abandoned_runs
from kassay.experiments.spark.study_pipeline import evaluate_cases, read_documents, write_study
from kassay.experiments.spark.study_schemas import CASES as CASE_SCHEMA
from kassay.experiments.spark.study_schemas import case_row
from kassay.experiments.spark.study_tables import complete_runs
from kassay.experiments.study.batches import Batch, batches_of, case_index
from kassay.experiments.study.case import (
    Case,
    ImportedCases,
    JoinedCases,
    ListedCases,
    cases_of,
    document_id,
    imported_cases,
)
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.manifest import configuration, manifest
from kassay.reference.model.errors import RunError
from tests.experiments.conftest import stored_rows
from tests.experiments.spark import crashing_evaluations as faults

pytestmark = pytest.mark.spark

ASSIGNORS = ("range", "roundrobin")
VALID = json.dumps({"id": "mine", "topics": {"t": 3}, "members": [{"id": "a", "topics": ["t"]}]})
CASES = JoinedCases(
    (
        imported_cases([VALID, "{}"], assignors=ASSIGNORS),
        cases_of(["named", "equal-join", "mixed-churn"], seeds=6, assignors=ASSIGNORS),
        cases_of(["trajectories"], seeds=1, assignors=ASSIGNORS, first_seed=2),
        ListedCases((Case(family="no-such-family", seed=0, assignors=ASSIGNORS),)),
    )
)
ALL = Batch(0, 0, len(CASES))


def without_timings(rows):
    kept = [{name: row[name] for name in row if name != "timings"} for row in rows]
    return sorted(kept, key=lambda row: row["position"])


@pytest.fixture(scope="module")
def expected():
    total = len(CASES)
    records = (evaluate_case(CASES[case_index(position, total)]) for position in range(total))
    rows = [case_row(record, position=p, study="") for p, record in enumerate(records)]
    return without_timings(pa.Table.from_pylist(rows, schema=CASE_SCHEMA).to_pylist())


@pytest.mark.parametrize("tasks", [1, 5])
def test_the_rows_do_not_depend_on_the_number_of_tasks(spark, expected, tasks):
    rows = evaluate_cases(spark, CASES, ALL, tasks=tasks).toArrow().to_pylist()
    assert without_timings(rows) == expected


def test_a_study_stores_each_case_once(spark, expected, tmp_path):
    write_study(spark, CASES, str(tmp_path), manifest=lambda rows: {"rows": rows}, largest_batch=12)
    written = read_manifest(tmp_path)
    rows = stored_rows(tmp_path, written)
    assert {row.pop("study") for row in rows} == {written["digest"]}
    assert rows == [{k: v for k, v in row.items() if k != "study"} for row in expected]
    assert written["rows"]["groups"] == len(CASES)
    assert written["rows"]["comparisons"] == sum(len(row["comparisons"]) for row in expected)
    summary = load_summary(tmp_path)
    assert summary.families["groups"].sum() == len(CASES)
    assert set(summary.trajectories["assignor"]) == {*ASSIGNORS, "optimum"}
    rebalances = [row for case in expected for row in case["rebalances"] if row["rebalance"]]
    for table in (summary.trajectories, summary.events):
        assert table["rebalances"].sum() == len(rebalances)
        assert table["moves"].sum() == sum(row["moves"] for row in rebalances)
        assert table["unnecessary_moves"].sum() == sum(
            row["moves"] - row["fewest_moves_within"]
            for row in rebalances
            if row["fewest_moves_within"] is not None
        )


def test_imported_groups_do_not_depend_on_files_and_tasks(spark, tmp_path):
    documents = [VALID.replace("mine", f"group {n}") for n in range(30)]
    one, many = tmp_path / "one", tmp_path / "many"
    for number, folder in ((1, one), (7, many)):
        folder.mkdir()
        for first in range(number):
            lines = "\n".join(documents[first::number])
            (folder / f"{first}.jsonl").write_text(f"{lines}\n\n{documents[first]}\n")
    generated = cases_of(["mixed-join"], seeds=10, assignors=ASSIGNORS)
    found = []
    for tasks, local, uris in ((1, documents, []), (5, [], [one.as_uri()]), (3, [], [str(many)])):
        frame, imported = read_documents(spark, local, uris, assignors=ASSIGNORS)
        assert imported == ImportedCases.of(documents, assignors=ASSIGNORS)
        cases = JoinedCases((imported, generated))
        whole = Batch(0, 0, len(cases))
        rows = evaluate_cases(spark, cases, whole, documents=frame, tasks=tasks)
        found.append(without_timings(rows.toArrow().to_pylist()))
    assert found[1:] == found[:1] * 2
    ids = {f"imported/{document_id(document)}" for document in documents}
    assert {row["groups"]["case"] for row in found[0]} == ids | {case.name for case in generated}


def test_only_missing_batches_are_evaluated_again(spark, tmp_path):
    cases = cases_of(["equal-join"], seeds=6, assignors=ASSIGNORS)
    write_study(spark, cases, str(tmp_path), manifest=dict, largest_batch=2)
    before = stored_rows(tmp_path, read_manifest(tmp_path))
    files = set(tmp_path.rglob("cases/**/*.parquet"))
    lost = next(path for path in files if "batch=2" in str(path))
    shutil.rmtree(lost.parent)
    bad = {case.name: "abort" for case in cases if case.seed not in _seeds_of(Batch(2, 4, 6), 6)}
    judge = partial(faults.evaluate_with_crashes, bad=bad)
    write_study(spark, cases, str(tmp_path), manifest=dict, largest_batch=2, judge=judge)
    assert stored_rows(tmp_path, read_manifest(tmp_path)) == before
    new = set(tmp_path.rglob("cases/**/*.parquet")) - files
    assert ["batch=2" in str(path) for path in new] == [True]


def test_a_stopped_study_summarises_its_complete_batches(spark, tmp_path, monkeypatch):
    cases = cases_of(["equal-join"], seeds=9, assignors=ASSIGNORS)
    write = partial(write_study, spark, cases, str(tmp_path), manifest=dict, largest_batch=3)
    with pytest.raises(RunError, match="no batch is complete"):
        write(stop_after=0)
    write()
    files = tmp_path.rglob("cases/**/*.parquet")
    shutil.rmtree(next(path for path in files if "batch=1" in str(path)).parent)
    monkeypatch.setattr("kassay.experiments.spark.study_pipeline._CASES_PER_FILE", 9)
    write(stop_after=0)
    assert read_manifest(tmp_path)["cases"] == {"total": 9, "finished": 6}
    assert load_summary(tmp_path).families["groups"].sum() == 6
    write()
    assert read_manifest(tmp_path)["cases"] == {"total": 9, "finished": 9}
    assert load_summary(tmp_path).families["groups"].sum() == 9


def test_small_batches_are_merged_at_the_end(spark, tmp_path, monkeypatch):
    cases = cases_of(["equal-join"], seeds=10, assignors=ASSIGNORS)
    write = partial(write_study, spark, cases, str(tmp_path), manifest=dict, largest_batch=2)
    write()
    single = stored_rows(tmp_path, read_manifest(tmp_path))
    monkeypatch.setattr("kassay.experiments.spark.study_pipeline._CASES_PER_FILE", 4)
    write()
    merged = read_manifest(tmp_path)
    # Batches 5 and 6 contain batches 0 to 3.
    assert [re.search(r"batch=(\d)", name)[1] for name in merged["folders"][:3]] == list("456")
    assert stored_rows(tmp_path, merged) == single
    delete_abandoned_runs(str(tmp_path), merged)
    assert len(list(tmp_path.glob("cases/*/batch=*/run=*"))) == 3
    [lost] = tmp_path.glob("cases/*/batch=5")
    shutil.rmtree(lost)
    write()
    assert stored_rows(tmp_path, read_manifest(tmp_path)) == single


def _seeds_of(batch, total):
    return {case_index(position, total) for position in range(batch.first, batch.end)}


def _files_of(directory, batch):
    return sorted(directory.glob(f"cases/*/batch={batch}/run=*/*.parquet"))


def _truncate(directory, batch):
    [path] = _files_of(directory, batch)
    path.write_bytes(path.read_bytes()[:500])


def _delete(directory, batch):
    [path] = _files_of(directory, batch)
    path.unlink()


def _zero(directory, batch):
    [path] = _files_of(directory, batch)
    data = bytearray(path.read_bytes())
    data[len(data) // 6 : len(data) // 6 + 40] = bytes(40)  # in a page with values
    path.write_bytes(data)


def _zero_metadata(directory, batch):
    [path] = _files_of(directory, batch)
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 40] = bytes(40)  # between pages and footer
    path.write_bytes(data)


def _add_text(directory, batch):
    [path] = _files_of(directory, batch)
    (path.parent / "notes.txt").write_text("hello")


def _add_batch(directory, batch):
    [path] = _files_of(directory, batch)
    [other] = _files_of(directory, batch + 1)
    shutil.copy(other, path.with_name("part-00001.zstd.parquet"))


def _double(directory, batch):
    [path] = _files_of(directory, batch)
    shutil.copy(path, path.with_name("part-00001.zstd.parquet"))


def _replace_by_other_study(directory, batch):
    [path] = _files_of(directory, batch)
    [other] = _files_of(directory.with_name("other"), 0)  # as many cases
    shutil.copy(other, path)


def _manifest(described, rows):
    return manifest(described, rows=rows, run={})


DAMAGE = {
    _replace_by_other_study: "has",
    _truncate: "has 500 bytes instead of",
    _delete: "is missing",
    _zero: "has changed content",
    _zero_metadata: "has changed content",
    _add_text: "does not belong to the output",
    _add_batch: "does not belong to the output",
    _double: "does not belong to the output",
}


@pytest.fixture(scope="module")
def intact(spark, tmp_path_factory):
    """Two studies of the same size with different configurations."""
    root = tmp_path_factory.mktemp("damage")
    for name, assignor, seeds in (("study", "roundrobin", 27), ("other", "sticky", 3)):
        assignors = ["range", assignor]
        cases = cases_of(["mixed-join"], seeds=seeds, assignors=assignors)
        described = configuration(
            ImportedCases(),
            families=["mixed-join"],
            seeds=seeds,
            first_seed=0,
            assignors=assignors,
            limits=LIMITS,
        )
        write_study(
            spark,
            cases,
            str(root / name),
            manifest=partial(_manifest, described),
            largest_batch=3,
        )
        for path in (root / name).rglob(".*.crc"):
            path.unlink()  # other tools than Hadoop do not copy these files
    return root


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_report_names_damaged_batches(kassay, intact, tmp_path, damage):
    copy = tmp_path / "copy"
    shutil.copytree(intact, copy)
    damage(copy / "study", 3)
    done = kassay("report", copy / "study")
    assert done.code == 2
    assert "damaged batches: 3; cases/" in done.err
    assert DAMAGE[damage] in done.err
    assert done.err.count("\n") == 1
    partial_report = kassay("report", copy / "study", "--partial")
    assert partial_report.code == 0
    assert kassay("report", intact / "study", "-o", tmp_path / "intact.html").code == 0
    damaged_page = (copy / "study" / "report.md").read_text()
    assert damaged_page == (tmp_path / "intact.md").read_text()


def test_a_study_repairs_every_damage_and_keeps_other_batches(spark, intact, tmp_path):
    shutil.copytree(intact, tmp_path / "copy")
    directory = tmp_path / "copy" / "study"
    before = stored_rows(directory, read_manifest(directory))
    digest = read_manifest(directory)["digest"]
    cases = cases_of(["mixed-join"], seeds=27, assignors=["range", "roundrobin"])
    batches = list(batches_of(27, largest=3))
    assert len(batches) == len(DAMAGE) + 1
    for number, damage in enumerate(DAMAGE):
        damage(directory, number)
    # Without the manifest, damage to bytes that no reader uses is not detected.
    found = complete_runs(spark, f"{directory.as_uri()}/cases/{digest}", batches, digest)
    assert set(found) == {number for number, d in enumerate(DAMAGE) if d is _zero_metadata} | {8}
    write_study(spark, cases, str(directory), manifest=dict, largest_batch=3)
    assert stored_rows(directory, read_manifest(directory)) == before
    runs = {number: len(list(directory.glob(f"cases/*/batch={number}/*"))) for number in range(9)}
    assert runs == {**dict.fromkeys(range(8), 2), 8: 1}
    load_summary(directory)


def test_spark_deletes_abandoned_runs_of_another_file_system(spark, intact, tmp_path, monkeypatch):
    directory = tmp_path / "copy"
    shutil.copytree(intact / "study", directory)
    kept = set(directory.rglob("*.parquet"))
    _add_abandoned_runs(directory)
    monkeypatch.setattr("kassay.experiments.spark.output_files.location", lambda _: None)
    uri = directory.as_uri()
    assert delete_abandoned_runs(uri, read_manifest(directory), spark=spark) == 2
    assert set(directory.rglob("*.parquet")) == kept


def _add_abandoned_runs(directory):
    """Add a run of a batch that was not finished, and a run of another study."""
    [path] = _files_of(directory, 0)
    [summary] = directory.glob("summary/run=*/outcomes/*.parquet")
    for folder in (path.parents[1], directory / "cases" / "0123" / "batch=0"):
        other = folder / "run=abandoned"
        (other / "_temporary" / "0").mkdir(parents=True)
        shutil.copy(summary, other / "_temporary" / "0" / "part-00000.parquet")
        shutil.copy(path, other)


def test_a_damaged_summary_is_an_error_even_with_partial(kassay, intact, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(intact / "study", copy)
    [path] = copy.glob("summary/run=*/outcomes/*.parquet")
    path.write_bytes(path.read_bytes()[:-40])
    done = kassay("report", copy, "--partial")
    assert done.code == 2
    assert "outcomes" in done.err


def test_a_finished_study_starts_no_spark(kassay, tmp_path, monkeypatch, spark):
    options = ["--family", "named", "--assignor", "range", "--output", tmp_path]
    monkeypatch.setattr("kassay.experiments.cli.commands.study.spark_session", _shared(spark))
    first = kassay("study", *options)
    monkeypatch.setattr("kassay.experiments.cli.commands.study.spark_session", None)
    assert kassay("study", *options).out == first.out
    kept = set(tmp_path.rglob("*.parquet"))
    _add_abandoned_runs(tmp_path)
    assert kassay("study", *options, "--clean").out == first.out
    assert set(tmp_path.rglob("*.parquet")) == kept
    assert not list(tmp_path.rglob("run=abandoned"))


def _shared(spark):
    class Session:
        def __init__(self, **_):
            pass

        def __enter__(self):
            return spark

        def __exit__(self, *_):
            return None

    return Session


def test_crashes_of_the_evaluating_process_become_rows(spark, expected):
    by_name = {row["groups"]["case"]: row for row in expected}
    names = list(by_name)[2:10]
    bad = {names[1]: "abort", names[3]: "segfault", names[6]: "exhaust_memory"}
    cases = ListedCases(tuple(case for case in CASES if case.name in names))
    judge = partial(faults.evaluate_with_crashes, bad=bad)
    frame = evaluate_cases(
        spark, cases, Batch(0, 0, 8), tasks=2, limits=CaseLimits(memory=8192), judge=judge
    )
    found = {row["groups"]["case"]: row for row in frame.toArrow().to_pylist()}
    assert len(found) == len(names)
    errors = {fault: found.pop(name)["groups"]["error"] for name, fault in bad.items()}
    died = "the process that evaluated this group was killed by"
    assert errors["abort"] == f"{died} SIGABRT"
    assert errors["segfault"] == f"{died} SIGSEGV"
    assert errors["exhaust_memory"].startswith("MemoryError: Unable to allocate")
    for name, row in found.items():
        assert row["comparisons"] == by_name[name]["comparisons"]


@pytest.mark.slow
def test_the_time_limit_applies_to_native_code(spark):
    cases = ListedCases(tuple(CASES)[2:5])
    names = [case.name for case in cases]
    judge = partial(faults.evaluate_with_crashes, bad={names[1]: "hang"})
    limits = CaseLimits(group=8.0)
    frame = evaluate_cases(spark, cases, Batch(0, 0, 3), tasks=1, limits=limits, judge=judge)
    errors = {row["groups"]["case"]: row["groups"]["error"] for row in frame.collect()}
    assert errors == dict.fromkeys(names) | {names[1]: "the evaluation took more than 8 s"}


def test_workers_with_another_version_are_rejected(spark, tmp_path, monkeypatch):
    other = (("kassay", "0123"), *code_identity()[1:])
    monkeypatch.setattr("kassay.experiments.spark.study_pipeline.code_identity", lambda: other)
    with pytest.raises(
        PySparkException, match=r"has kassay .*, the driver has 0123|the driver 0123"
    ):
        write_study(spark, CASES, str(tmp_path), manifest=dict)


def test_invalid_groups_become_rows_with_an_error(expected):
    groups = {row["groups"]["case"]: row["groups"] for row in expected}
    assert "missing key 'topics'" in groups[f"imported/{document_id('{}')}"]["error"]
    assert "unknown family 'no-such-family'" in groups["no-such-family/0"]["error"]
    assert groups[f"imported/{document_id(VALID)}"]["error"] is None


def test_names_of_runs_sort_by_time(intact):
    runs = {path.name for path in (intact / "study").glob("cases/*/batch=*/run=*")}
    assert all(re.fullmatch(r"run=\d{8}T\d{6}-[0-9a-f]{8}", name) for name in runs)
