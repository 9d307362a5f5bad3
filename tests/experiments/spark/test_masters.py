"""Studies give the same tables on all masters, and all commands use the requested master."""

import subprocess
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kassay.experiments.study.output_reader import read_manifest
from tests.experiments.history.sample_records import sample_rows
from tests.experiments.spark.conftest import tables_of
from tests.experiments.spark.services import (
    ROOT,
    SPARK_HOME,
    cluster,
    connect_server,
    kassay_command,
    run_kassay,
)

pytestmark = [pytest.mark.spark, pytest.mark.services]

MEMORY = "spark.executor.memory=512m"


@pytest.fixture(scope="module")
def cluster_directory(tmp_path_factory):
    return tmp_path_factory.mktemp("cluster") / "spark"


@pytest.fixture(scope="module")
def master(cluster_directory):
    """Address of a standalone cluster of two workers with separate working directories."""
    with cluster(cluster_directory) as (url, _):
        yield url


def applications(directory):
    """Return the names of all applications that had executors on both workers."""
    one, two = ({path.name for path in (directory / name).glob("app-*")} for name in ("one", "two"))
    return one & two


def test_a_standalone_cluster_gives_the_same_tables(
    expected_tables, config_file, master, cluster_directory, tmp_path
):
    done = run_kassay("study", config_file, "-o", tmp_path, "--master", master)
    assert done.returncode == 0, done.stderr
    assert tables_of(tmp_path) == expected_tables
    assert applications(cluster_directory)


def test_a_cluster_without_the_memory_of_an_executor_is_reported(tmp_path):
    with cluster(tmp_path / "spark", memory="512m") as (url, _):
        command = [*kassay_command(), "study", "--family", "named", "--master", url]
        command += ["--assignor", "sticky", "--output", str(tmp_path / "out")]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            found = any("spark.executor.memory" in line for line in islice(process.stderr, 10))
            process.kill()
    assert found


def test_spark_connect_gives_the_same_tables(expected_tables, config_file, tmp_path):
    with connect_server(tmp_path) as url:
        out = tmp_path / "out"
        done = run_kassay("study", config_file, "-o", out, "--master", url)
        assert done.returncode == 0, done.stderr
        assert tables_of(out) == expected_tables


def test_history_and_hunt_run_on_the_master_of_spark_submit(master, cluster_directory, tmp_path):
    records = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_pylist(sample_rows("g", "sticky", seed=1, steps=3)), records)
    submit = (SPARK_HOME / "bin" / "spark-submit", "--master", master, "--conf", MEMORY)
    small = ("--assignor", "sticky", "--members", 2, "--partitions", 2)
    for command in (("history", records), ("hunt", *small)):
        before = applications(cluster_directory)
        out = tmp_path / command[0]
        done = run_kassay(*command, "-o", out, launcher=submit)
        assert done.returncode == 0, done.stderr
        assert len(applications(cluster_directory) - before) == 1
    assert read_manifest(tmp_path / "history")["run"]["master"] == master
