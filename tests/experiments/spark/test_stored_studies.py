"""Damaged, abandoned and finished runs of a stored study."""

import shutil
from functools import partial

import pytest

from kassay.experiments.spark.study_pipeline import complete_runs, write_study
from kassay.experiments.study.cases import ImportedCases, batches_of, cases_of
from kassay.experiments.study.configuration import StudyConfig, StudySettings, manifest
from kassay.experiments.study.output_reader import load_summary, read_manifest
from tests.experiments.conftest import stored_rows
from tests.tiers import short_and_long

pytestmark = pytest.mark.spark


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
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[footer - 40 : footer] = bytes(40)  # indexes of pages, which are before the footer
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
    [other] = _files_of(directory.with_name("other"), 0)
    shutil.copy(other, path)


def _manifest(described, rows):
    return manifest(described, rows=rows, run={})


DAMAGE = {
    _truncate: "has 500 bytes instead of",
    _delete: "is missing",
    _zero: "has changed content",
    _zero_metadata: "has changed content",
    _add_text: "does not belong to the output",
    _add_batch: "does not belong to the output",
    _double: "does not belong to the output",
    _replace_by_other_study: "has",
}


@pytest.fixture(scope="module")
def intact(study_directory, tmp_path_factory):
    """Return the folder with the intact study."""
    root = tmp_path_factory.mktemp("damage")
    # Other tools than Hadoop do not copy the files with checksums.
    shutil.copytree(study_directory, root / "study", ignore=shutil.ignore_patterns(".*.crc"))
    return root


@pytest.fixture(scope="module")
def other(spark, intact):
    """Write a study of another configuration, whose first batch has as many cases."""
    _write(spark, intact / "other", "sticky", 20, batch_cases=20)


@pytest.fixture(scope="module")
def many_batches(spark, tmp_path_factory):
    """Return the folder with two studies of three cases per batch."""
    root = tmp_path_factory.mktemp("batches")
    _write(spark, root / "study", "roundrobin", 27)
    _write(spark, root / "other", "sticky", 3)
    return root


def _write(spark, directory, assignor, seeds, batch_cases=3):
    assignors = ["range", assignor]
    cases = cases_of(["mixed-join"], seeds=seeds, assignors=assignors)
    described = StudyConfig(
        families={"mixed-join": seeds}, seeds=seeds, assignors=tuple(assignors)
    ).described(ImportedCases())
    write_study(
        spark,
        cases,
        str(directory),
        manifest=partial(_manifest, described),
        settings=StudySettings(batch_cases=batch_cases),
    )
    for path in directory.rglob(".*.crc"):
        path.unlink()


@pytest.mark.parametrize("damage", short_and_long(*DAMAGE), ids=lambda damage: damage.__name__)
def test_a_report_names_damaged_batches(kassay, request, intact, report, tmp_path, damage):
    if damage is _replace_by_other_study:
        request.getfixturevalue("other")
    copy = tmp_path / "copy"
    shutil.copytree(intact, copy)
    damage(copy / "study", 0)
    done = kassay("report", copy / "study")
    assert done.code == 2
    assert "damaged batches: 0; cases/" in done.err
    assert DAMAGE[damage] in done.err
    assert done.err.count("\n") == 1
    partial_report = kassay("report", copy / "study", "--partial")
    assert partial_report.code == 0
    assert (copy / "study" / "report.md").read_text() == report.markdown


@pytest.mark.long
def test_a_study_repairs_every_damage_and_keeps_other_batches(spark, many_batches, tmp_path):
    shutil.copytree(many_batches, tmp_path / "copy")
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
    write_study(spark, cases, str(directory), manifest=dict, settings=StudySettings(batch_cases=3))
    assert stored_rows(directory, read_manifest(directory)) == before
    runs = {number: len(list(directory.glob(f"cases/*/batch={number}/*"))) for number in range(9)}
    assert runs == {**dict.fromkeys(range(8), 2), 8: 1}
    load_summary(directory)


@pytest.mark.long
@pytest.mark.usefixtures("commands_share_spark")
def test_a_finished_study_starts_no_spark(kassay, tmp_path, monkeypatch):
    options = ["--family", "named", "--assignor", "range", "--output", tmp_path]
    first = kassay("study", *options)
    monkeypatch.setattr("kassay.experiments.cli.commands.study.spark_session", None)
    assert kassay("study", *options).out == first.out
