"""A quiet Spark session, on a Java runtime that works."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from experiments.spark.java import find_java, make_shim

LOOPBACK = "127.0.0.1"
TASK_ATTEMPTS = 4
_CONF_DIR = Path(__file__).parent / "conf"
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_SETTINGS = {
    # Adaptive execution would merge the tasks of a study into one.
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _SMALL_JVM,
}


@contextmanager
def spark_session(
    *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start Spark, and stop it again.

    Parameters
    ----------
    master
        Where it runs. ``local[N]`` retries a task that a dying worker took down.
    settings
        Spark settings beyond the usual ones, or instead of them.

    Yields
    ------
    SparkSession
        The session. While it lasts, the environment names the Java runtime, the Python
        of the workers and, for a local master, the loopback address.

    Raises
    ------
    NoJavaError
        If no Java runtime will do.
    """
    local = master.startswith("local")
    chosen = dict(_SETTINGS)
    if local:
        chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    chosen |= settings or {}
    with tempfile.TemporaryDirectory(prefix="kassay-") as scratch:
        java_home = make_shim(find_java(), Path(scratch) / "java")
        environment = {
            "JAVA_HOME": str(java_home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(_CONF_DIR),
        }
        if local:
            environment["SPARK_LOCAL_IP"] = LOOPBACK
            chosen["spark.sql.warehouse.dir"] = str(Path(scratch) / "warehouse")
            chosen["spark.local.dir"] = scratch
        with _environment(environment):
            builder = SparkSession.builder.appName("kassay").master(with_retries(master))
            for key, value in chosen.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
            try:
                yield session
            finally:
                session.stop()


def with_retries(master: str) -> str:
    """Let a local master try a task again; others do anyway.

    Examples
    --------
    >>> with_retries("local[2]"), with_retries("local"), with_retries("spark://host:7077")
    ('local[2,4]', 'local[1,4]', 'spark://host:7077')
    """
    if master == "local":
        return f"local[1,{TASK_ATTEMPTS}]"
    return re.sub(r"^local\[(\*|\d+)\]$", rf"local[\1,{TASK_ATTEMPTS}]", master)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
