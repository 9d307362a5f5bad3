"""Throughput of the drivers of client libraries, compared with direct calls of the libraries.

A direct call encodes and decodes the subscriptions and assigns the partitions, in a process of
the library's runtime. A driver also reads and writes JSON. The table shows the newest version of
each installed library.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from benchmarks.memory import cpu_seconds
from benchmarks.timed_groups import after_one_left, equal_group
from benchmarks.timing import Timing
from kassay.experiments.implementations.client_libraries import (
    DRIVERS,
    driver_command,
    installed_versions,
    parse_library_assignor,
)
from kassay.experiments.implementations.run_assignor import run
from kassay.reference.assignors import assign
from kassay.reference.documents.files import is_number
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.group import Group

_SOURCES = Path(__file__).with_name("direct_calls")
_CALLS = 100
_LEFT_OUT = ("rack-affinity",)


def driver_speed() -> Iterator[Timing]:
    """Measure CPU seconds per group of 20 members and 200 partitions, after a member left."""
    fresh = equal_group(members=21, topics=10, partitions=20)
    group = after_one_left(fresh, assign(fresh, "sticky"))
    for name in _newest_assignors():
        total, driver = _through_driver(group, name)
        yield _timing(group, name, "group through driver", total, f", driver {driver:.5f} s")
        yield _timing(group, name, "direct call", _direct(group, name))


def _timing(group: Group, name: str, benchmark: str, seconds: float, note: str = "") -> Timing:
    return Timing(
        benchmark=benchmark,
        case=str(group.id),
        implementation=name,
        seconds=seconds,
        note=f"{60 / seconds:,.0f} per minute{note}",
    )


def _newest_assignors() -> Iterator[str]:
    seen = set()
    for library, version in installed_versions():  # newest first
        if library.name not in seen:
            seen.add(library.name)
            for assignor in library.assignors_of(version):
                if assignor not in _LEFT_OUT:
                    yield f"{library.name}@{version}@60s:{assignor}"


def _through_driver(group: Group, name: str) -> tuple[float, float]:
    """Return CPU seconds per group: of kassay and the driver, and of the driver."""
    for _ in range(_CALLS):
        run(group, name)
    before = cpu_seconds()
    for _ in range(_CALLS):
        run(group, name)
    spent = {process: time - before.get(process, 0) for process, time in cpu_seconds().items()}
    total = sum(spent.values())
    return total / _CALLS, (total - spent[os.getpid()]) / _CALLS


def _direct(group: Group, name: str) -> float:
    """Return CPU seconds per direct call."""
    parsed = parse_library_assignor(name)
    measure = _DIRECT_CALLS[parsed.library.runtime]
    with tempfile.TemporaryDirectory() as folder:
        request = Path(folder) / "request.json"
        document = {"assignor": parsed.assignor.name, "group": group_document(group)}
        request.write_text(json.dumps(document) + "\n", encoding="utf-8")
        return measure(driver_command(parsed), Path(folder), request)


def _go(driver: Sequence[str], folder: Path, request: Path) -> float:
    build = folder / "source"
    shutil.copytree(Path(driver[0]).parent / "source", build)
    shutil.copy(_SOURCES / "direct_calls_test.go", build)
    variables = {"REQUEST": str(request), "CALLS": str(_CALLS)}
    modules = {"GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}
    return _printed(["go", "test", "-count=1", "-v", "."], build, variables | modules)


def _jvm(driver: Sequence[str], folder: Path, request: Path) -> float:
    classpath = driver[driver.index("-classpath") + 1]
    source = str(_SOURCES / "DirectCalls.java")
    _printed(["javac", "-classpath", classpath, "-d", str(folder), source], folder)
    options = list(driver[: driver.index("-classpath")])
    command = [*options, "-classpath", f"{folder}{os.pathsep}{classpath}", "DirectCalls"]
    return _printed([*command, driver[-1], str(request), str(_CALLS)], folder)


def _c(driver: Sequence[str], folder: Path, request: Path) -> float:
    sources = Path(driver[0]).parent / "library" / "src"
    program = folder / "direct_calls"
    compiler = ["cc", "-O2", "-w", "-I", str(sources), "-I", str(DRIVERS / "c"), "-o", str(program)]
    files = [str(_SOURCES / "direct_calls.c"), str(sources / "librdkafka.a")]
    _printed([*compiler, *files, "-lm", "-lpthread", "-ldl", "-lrt"], folder)
    return _printed([str(program), str(request), str(_CALLS)], folder)


def _python(driver: Sequence[str], folder: Path, request: Path) -> float:
    # The command of a driver is: env VARIABLES... PYTHON OPTIONS... driver.py PACKAGE
    script = driver[-2]
    command = [*driver[:-2], "-c", _PYTHON_CALLS, str(Path(script).parent), driver[-1]]
    return _printed([*command, str(request), str(_CALLS)], folder)


def _node(driver: Sequence[str], folder: Path, request: Path) -> float:
    # The command of a driver is: node driver.js DIRECTORY PACKAGE
    command = [driver[0], str(_SOURCES / "direct_calls.js"), *driver[1:], str(request)]
    return _printed([*command, str(_CALLS)], folder)


_PYTHON_CALLS = (_SOURCES / "direct_calls.py").read_text(encoding="utf-8")

_DIRECT_CALLS = {"go": _go, "jvm": _jvm, "c": _c, "python": _python, "node": _node}
"""Function per runtime: command of a driver, folder and request to CPU seconds per call."""


def _printed(
    command: Sequence[str], folder: Path, variables: Mapping[str, str] = MappingProxyType({})
) -> float:
    """Run a program and return the last number that it prints on a line of its own."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | dict(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr[-500:]}")
    numbers = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if is_number(line)]
    return float(numbers[-1]) if numbers else 0.0
