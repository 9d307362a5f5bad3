"""Studies and followed rebalances are the same on all file systems."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kassay.experiments.history.rebalances import generation_rows, rebalance_rows
from kassay.experiments.spark.history_pipeline import RAW
from kassay.experiments.study.output_reader import read_manifest
from tests.experiments.history.sample_records import PARTITION_COUNTS, decode_rows, sample_rows
from tests.experiments.spark.conftest import tables_of
from tests.experiments.spark.services import (
    ROOT,
    TIMEOUT_SECONDS,
    kassay_command,
    run_kassay,
    s3_bucket,
)
from tests.experiments.spark.test_killed_processes import kill_java

pytestmark = [pytest.mark.spark, pytest.mark.services]


def test_a_file_uri_and_a_plain_path_give_the_same_tables(expected_tables, tables_in, tmp_path):
    assert tables_in(tmp_path.as_uri(), tmp_path) == expected_tables


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    with s3_bucket(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


@pytest.fixture(scope="module")
def killed_in_mid_write(bucket, config_file):
    """The objects of finished batches after a study on S3 was killed while it wrote a batch."""
    driver = subprocess.Popen(
        [*kassay_command(), *_study(bucket, config_file)], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    _await(driver, lambda: _is_writing(bucket), seconds=0.1)
    kill_java(driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    return set(_finished(bucket))


@pytest.fixture(scope="module")
def resumed(bucket, config_file, killed_in_mid_write, tmp_path_factory):
    """A copy of the study on S3 after a second start."""
    done = run_kassay(*_study(bucket, config_file))
    assert done.returncode == 0, done.stderr
    return bucket.download("study/", tmp_path_factory.mktemp("copy"))


def test_a_study_on_s3_resumes_after_its_driver_is_killed_in_mid_write(
    bucket, killed_in_mid_write, resumed, expected_tables
):
    assert tables_of(resumed) == expected_tables
    used = {f"study/{name}" for name in read_manifest(resumed)["files"]}
    assert killed_in_mid_write
    assert killed_in_mid_write <= used
    batches = [key.split("/run=")[0] for key in _finished(bucket)]
    assert len(batches) == len(set(batches))


def test_a_history_on_s3_equals_a_local_history(bucket, tmp_path):
    records = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_pylist(sample_rows("g", "sticky", seed=1, steps=3)), records)
    local = run_kassay("history", records, "-o", tmp_path / "local", "--master", "local[2]")
    assert local.returncode == 0, local.stderr
    done = run_kassay("history", records, "-o", "s3a://bucket/history", *_spark(bucket))
    assert (done.returncode, done.stdout) == (0, local.stdout), done.stderr
    page = tmp_path / "s3.html"
    done = run_kassay("report", "s3a://bucket/history", "-o", page, *_spark(bucket))
    assert done.returncode == 0, done.stderr
    assert run_kassay("report", tmp_path / "local").returncode == 0
    assert page.with_suffix(".md").read_text() == (tmp_path / "local" / "report.md").read_text()


def test_follow_continues_on_s3_after_it_is_killed(bucket, tmp_path):
    rows = sample_rows("g", "sticky", seed=1, steps=6)
    half = len(rows) // 2
    generations = generation_rows(
        (row for row in decode_rows(rows) if row["kind"] == 2), topic_names={}
    )
    expected = [
        row["generation"] for row in rebalance_rows(generations, partition_counts=PARTITION_COUNTS)
    ]
    records = tmp_path / "records"
    records.mkdir()
    pq.write_table(pa.Table.from_pylist(rows[:half], schema=RAW), records / "0.parquet")
    with _follower(bucket, records) as follower:
        _await(follower, lambda: _followed(bucket, tmp_path / "before"))
        kill_java(follower)
    assert bucket.keys("follow/checkpoint/commits/")
    pq.write_table(pa.Table.from_pylist(rows[half:], schema=RAW), records / "1.parquet")
    with _follower(bucket, records) as follower:
        _await(follower, lambda: len(_followed(bucket, tmp_path / "after")) >= len(expected))
        kill_java(follower)
    assert _followed(bucket, tmp_path / "end") == sorted(expected)


@contextmanager
def _follower(bucket, records):
    """Run a process that follows Parquet files, and kill the process at the end."""
    command = [sys.executable, "-m", "tests.experiments.spark.follow_files", str(records)]
    follower = subprocess.Popen(
        [*command, "s3a://bucket/follow", *bucket.options()], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        yield follower
    finally:
        follower.kill()
        follower.wait()


def _followed(bucket, directory):
    """Return the generations of all rebalances that are written to S3, sorted."""
    shutil.rmtree(directory, ignore_errors=True)
    files = bucket.download("follow/followed/", directory).rglob("batch=*/part-*.parquet")
    return sorted(n for file in files for n in pq.read_table(file)["generation"].to_pylist())


def _await(process, condition, *, seconds=1.0):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(seconds)


def _study(bucket, config_file):
    return ["study", str(config_file), "--output", "s3a://bucket/study", *_spark(bucket)]


def _spark(bucket):
    return ["--master", "local[2]", *bucket.options()]


def _is_writing(bucket):
    """Return whether a batch is finished and another one is being written."""
    writing = any("/_temporary/" in key for key in bucket.keys("study/cases/"))
    return writing and bool(_finished(bucket))


def _finished(bucket):
    keys = bucket.keys("study/cases/")
    return [key for key in keys if key.endswith(".parquet") and "/_temporary/" not in key]
