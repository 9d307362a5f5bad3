"""Spark clusters, Spark Connect and an S3 server on the loopback address, for tests."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pyspark
import pytest

from kassay.experiments.spark.session import make_java_home
from tests.conformance.jars import JarsUnavailableError, classpath

ROOT = Path(__file__).parents[3]
SPARK_HOME = Path(pyspark.__file__).parent
TIMEOUT_SECONDS = 600
# The S3 server requires a signature for private objects, and does not check it.
_SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, "
    "SignedHeaders=host, Signature=0"
}
# The server sends "100 Continue" twice: Python's HTTP server sends the first one. Asynchronous
# uploads, which Spark uses for the state of streams, reject the second one.
_S3_SERVER = """
import sys
from moto.server import main
from werkzeug.serving import WSGIRequestHandler
WSGIRequestHandler.handle_expect_100 = lambda handler: True
main(sys.argv[1:])
"""
_S3_NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


@cache
def _java_home() -> Path:
    return make_java_home(Path(tempfile.mkdtemp()))


def spark_environment() -> dict[str, str]:
    """Return the environment of Spark processes that kassay does not start."""
    return {
        **os.environ,
        "JAVA_HOME": str(_java_home()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(ROOT / "experiments" / "spark" / "conf"),
        "PYSPARK_PYTHON": sys.executable,
    }


def run_kassay(
    *arguments: object, launcher: tuple[object, ...] = ()
) -> subprocess.CompletedProcess:
    """Run kassay in a process of its own, with Python or another launcher."""
    command = [*launcher, ROOT / "kassay" / "__main__.py"] if launcher else kassay_command()
    return subprocess.run(
        [*map(str, command), *map(str, arguments)],
        check=False,
        cwd=ROOT,
        env={**spark_environment(), "NO_COLOR": "1"} if launcher else None,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


def kassay_command() -> list[str]:
    """Return the start of a command line that runs kassay."""
    return [sys.executable, "-m", "kassay"]


@contextmanager
def cluster(directory: Path, *, memory: str = "1g"):
    """Start a master and two workers of the installed PySpark in separate directories.

    Yields the address of the master, and the processes of the workers.
    """
    directory.mkdir()
    port, processes = free_port(), []

    def launch(kind: str, *options: str) -> None:
        processes.append(
            subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *options],
                cwd=directory,
                env={**spark_environment(), "SPARK_DAEMON_MEMORY": "256m"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    loopback = ("--host", "127.0.0.1", "--webui-port", "0")
    url = f"spark://127.0.0.1:{port}"
    resources = ("--cores", "1", "--memory", memory)
    try:
        launch("master.Master", *loopback, "--port", str(port))
        for name in ("one", "two"):
            work = ("--work-dir", str(directory / name))
            launch("worker.Worker", *loopback, *resources, *work, url)
        yield url, processes[1:]
    finally:
        _end(*processes)


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Start a Spark Connect server with two cores, and yield its address."""
    if find_spec("grpc") is None:
        pytest.skip("Spark Connect needs the packages of the extra connect; run `make services`")
    port = free_port()
    properties = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.sql.shuffle.partitions": 2,
        "spark.ui.enabled": "false",
    }
    command = [SPARK_HOME / "bin" / "spark-submit", "--master", "local[2]"]
    command += [f"--conf={key}={value}" for key, value in properties.items()]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = directory / "connect.log"
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=directory,
            env=spark_environment(),
            stdout=output,
            stderr=output,
        )
    try:
        _await_port(server, port, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        _end(server)


@dataclass(frozen=True)
class S3Bucket:
    """Bucket of an S3 server, and the Spark properties that give access to the bucket."""

    endpoint: str
    jars: str
    name: str = "bucket"

    def options(self) -> list[str]:
        """Return command line options with the Spark properties."""
        properties: Mapping[str, str] = {
            "spark.jars": self.jars,
            "spark.hadoop.fs.s3a.endpoint": self.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "test",
            "spark.hadoop.fs.s3a.secret.key": "test",
        }
        return [f"--conf={key}={value}" for key, value in properties.items()]

    def keys(self, prefix: str = "") -> list[str]:
        """Return the names of all objects that start with a prefix."""
        keys: list[str] = []
        while True:
            after = f"&start-after={quote(keys[-1], safe='')}" if keys else ""
            listing = ET.fromstring(self._get(f"?list-type=2&prefix={quote(prefix)}{after}"))
            keys += [str(key.text) for key in listing.iter(f"{_S3_NAMESPACE}Key")]
            if listing.findtext(f"{_S3_NAMESPACE}IsTruncated") != "true":
                return keys

    def download(self, prefix: str, directory: Path) -> Path:
        """Copy all objects that start with a prefix to a directory, and return the directory."""
        for key in self.keys(prefix):
            target = directory / key.removeprefix(prefix)
            if not key.endswith("/"):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self._get(f"/{quote(key)}"))
        return directory

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(f"{self.endpoint}/{self.name}{path}", headers=_SIGNED)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()


@contextmanager
def s3_bucket(directory: Path) -> Iterator[S3Bucket]:
    """Start an S3 server with one bucket."""
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("the S3 server moto is not installed; run `make services`")
    try:
        jars = [jar for jar in classpath("s3") if "slf4j" not in jar]  # Spark has a newer one
    except JarsUnavailableError as error:
        pytest.skip(f"Hadoop's S3 client is not available: {error}")
    port, log = free_port(), directory / "s3.log"
    with log.open("w") as output:
        command = [sys.executable, "-c", _S3_SERVER, "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        _await_port(server, port, log)
        bucket = S3Bucket(f"http://127.0.0.1:{port}", ",".join(jars))
        request = urllib.request.Request(f"{bucket.endpoint}/{bucket.name}", method="PUT")
        urllib.request.urlopen(request, timeout=60).close()
        yield bucket
    finally:
        _end(server)


def free_port() -> int:
    """Return a port that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_port(server: subprocess.Popen, port: int, log: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        else:
            return


def _end(*processes: subprocess.Popen) -> None:
    for process in processes:
        process.kill()
        process.wait()
