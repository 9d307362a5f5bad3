"""Studies and histories are the same on all file systems."""

import os
import signal
import subprocess
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kassay.experiments.study.output_reader import read_manifest
from tests.experiments.history.sample_records import sample_rows
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
