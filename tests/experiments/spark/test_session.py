"""Groups get their share of an executor's memory."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkValueError

from kassay.experiments.spark.session import (
    _one_message_per_failure,
    code_identity,
    error_message,
    memory_per_task,
    send_code,
    with_retries,
)
from kassay.reference.model.errors import RunError


def test_the_stack_traces_of_a_failure_become_one_message() -> None:
    assert error_message("Failed\nCaused by: java.io.IOException: full") == "Spark failed: full"
    trace = "Traceback (most recent call last):\n"
    assert error_message(f"Task failed:\n{trace}ValueError: no") == "Spark failed: ValueError: no"
    assert error_message(f"{trace}kassay.reference.RunError: no records\n...") == "no records"


def test_an_error_of_pyspark_that_hides_a_lost_java_process_names_it() -> None:
    hidden = PySparkValueError("Unable to parse datatype")
    hidden.__cause__ = Py4JError("An error occurred while calling o155.schema")
    with pytest.raises(RunError, match="ended unexpectedly"), _one_message_per_failure():
        raise hidden


@pytest.mark.parametrize(
    ("memory", "cores", "expected"),
    [("8g", "2", 4096), ("6144m", None, 6144), (None, None, 1024), ("2g", "4", 1024)],
)
def test_a_group_may_use_the_memory_of_one_executor_core(
    memory: str | None, cores: str | None, expected: int
) -> None:
    properties = {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": memory,
        "spark.executor.cores": cores,
    }
    spark = MagicMock()
    spark.conf.get.side_effect = lambda key, _: properties[key]
    assert memory_per_task(spark) == expected


def test_workers_can_import_and_identify_the_code_in_the_archive(tmp_path: Path) -> None:
    spark = MagicMock()
    send_code(spark, tmp_path)
    assert (
        "kassay/experiments/history/log_messages.txt"
        in zipfile.ZipFile(tmp_path / "kassay.zip").namelist()
    )
    modules = "history_pipeline, session, study_pipeline"
    task = f"from kassay.experiments.spark import {modules}; "
    task += f"session.check_identity({code_identity()})"
    subprocess.run(
        [sys.executable, "-c", task],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "kassay.zip")},
        cwd=tmp_path,
        check=True,
    )


def test_a_local_master_repeats_failed_tasks() -> None:
    masters = ["local[2]", "local", "spark://host:7077"]
    assert list(map(with_retries, masters)) == ["local[2,4]", "local[1,4]", "spark://host:7077"]
