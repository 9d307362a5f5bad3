"""A quiet Spark session, on a Java runtime that works."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from kassay.experiments.spark.code_distribution import send_code
from kassay.experiments.spark.java_runtime import find_java, make_shim
from kassay.experiments.spark.maven_packages import PACKAGES, captured_stderr
from kassay.reference.model.errors import InputError

LOOPBACK = "127.0.0.1"
TASK_ATTEMPTS = 4
LOCAL = "local[*]"
_CONNECT = "sc://"
_GATEWAY = "PYSPARK_GATEWAY_PORT"  # spark-submit sets it for the program that it runs
_ON_LOOPBACK = re.compile(r"spark://(127\.|localhost)")
_CONF_DIR = Path(__file__).parent / "conf"
_LONGEST_SOCKET_DIRECTORY = 50  # bytes; Spark adds a name of some 45, and 103 is all it may be
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_SETTINGS = {
    # Adaptive execution would merge the tasks of a study into one.
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32",
    "spark.driver.maxResultSize": "0",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _SMALL_JVM,
}


@contextmanager
def spark_session(
    *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start Spark, and stop it again.

    Parameters
    ----------
    master
        Where it runs: ``local[N]``, which retries a task that a dying worker took down; a
        cluster such as ``spark://host:7077``; ``sc://host:15002``, a Spark Connect server.
        None takes what ``spark-submit`` says, else all cores of this machine. Workers
        that are not of this machine are sent the code.
    settings
        Spark settings beyond the usual ones, or instead of them.

    Yields
    ------
    SparkSession
        The session. While it lasts, the environment names the Java runtime, the Python
        of the workers and, for a master on this machine, the loopback address.

    Raises
    ------
    NoJavaError
        If no Java runtime will do.
    InvalidGroupError
        If the master is a Spark Connect server and its client is not installed, or if
        packages named by ``spark.jars.packages`` cannot be had.
    """
    submitted = _GATEWAY in os.environ
    master = master or (None if submitted else LOCAL)
    with tempfile.TemporaryDirectory(prefix="kassay-") as scratch:
        directory = Path(scratch)
        if master is not None and master.startswith(_CONNECT):
            session = _connected(master, settings or {})
        else:
            session = _started(master, settings or {}, directory, submitted=submitted)
        with session as spark:
            if master is None or not master.startswith("local"):
                send_code(spark, directory)
            yield spark


@contextmanager
def _started(
    master: str | None, settings: Mapping[str, str], scratch: Path, *, submitted: bool
) -> Iterator[SparkSession]:
    """Start a driver of our own, or take over the one of ``spark-submit``."""
    local = master is not None and master.startswith("local")
    here = local or (master is not None and _ON_LOOPBACK.match(master) is not None)
    environment: dict[str, str] = {}
    chosen = {} if submitted else dict(_SETTINGS)
    if not submitted:
        environment["JAVA_HOME"] = str(make_shim(find_java(), scratch / "java"))
        environment["SPARK_CONF_DIR"] = str(_CONF_DIR)
    if here:
        chosen |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        environment["SPARK_LOCAL_IP"] = LOOPBACK
    if local:
        chosen["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
        chosen["spark.local.dir"] = str(scratch)
        # By TCP each task waits 40 ms for an acknowledgement that is put off.
        if len(os.fsencode(scratch)) <= _LONGEST_SOCKET_DIRECTORY:
            chosen["spark.python.unix.domain.socket.enabled"] = "true"
            chosen["spark.python.unix.domain.socket.dir"] = str(scratch)
    # Elsewhere the path of this machine's Python means nothing.
    python = sys.executable if here else os.environ.get("PYSPARK_PYTHON", "python3")
    environment |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with _environment(environment):
        builder = SparkSession.builder.appName("kassay")
        if master is not None:
            builder = builder.master(with_retries(master))
        for key, value in {**chosen, **settings}.items():
            builder = builder.config(key, value)
        packages = settings.get(PACKAGES)
        with nullcontext() if packages is None else captured_stderr(packages):
            session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


@contextmanager
def _connected(master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Open a session at a Spark Connect server."""
    try:
        builder = SparkSession.builder.appName("kassay").remote(master)
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except ImportError as error:
        raise InputError(
            f"{master}: Spark Connect needs packages that are not installed: {error}"
        ) from None
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
