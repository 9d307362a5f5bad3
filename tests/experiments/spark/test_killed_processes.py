"""Studies on a cluster, and with killed drivers or workers, give the same tables."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kassay.experiments.study.output_reader import load_summary, read_manifest
from tests.experiments.conftest import stored_rows
from tests.experiments.spark.conftest import configuration_file
from tests.experiments.spark.services import cluster

pytestmark = [pytest.mark.spark, pytest.mark.survival]

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("KILLS", "2"))
# Four batches per kill: two may be finished before it, and two may be running.
CONFIG = f"""
families: {{named: all, mixed-join: 40, equal-leave: 35}}
assignors: [sticky, cooperative-sticky, uniform]
batch_cases: {80 // (4 * KILLS)}
"""
TIMEOUT_SECONDS = 3600


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return configuration_file(tmp_path_factory, CONFIG)


@pytest.fixture(scope="module")
def uninterrupted(config, tmp_path_factory):
    out = tmp_path_factory.mktemp("uninterrupted")
    finish(start(config, out), out)
    return rows_of(out)


def test_a_study_resumes_after_its_driver_is_killed(config, uninterrupted, tmp_path):
    rng = random.Random(7)
    for _ in range(KILLS):
        before = batches(tmp_path)
        driver = start(config, tmp_path)
        wait_for(driver, tmp_path, lambda before=before: batches(tmp_path) > before)
        time.sleep(rng.random())
        kill_java(driver)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    kept = set(tmp_path.glob("cases/*/batch=*/run=*/part-*.parquet"))
    finish(start(config, tmp_path), tmp_path)
    assert kept
    assert rows_of(tmp_path) == uninterrupted


def test_a_killed_java_process_is_one_message(config, uninterrupted, tmp_path):
    driver = start(config, tmp_path)
    wait_for(driver, tmp_path, lambda: batches(tmp_path) >= 1)
    kill_java(driver)
    assert driver.wait(timeout=TIMEOUT_SECONDS) == 2
    expected = "kassay: the Java process of Spark ended unexpectedly; start the command again"
    assert messages_of(tmp_path) == [expected]
    finish(start(config, tmp_path), tmp_path)
    assert rows_of(tmp_path) == uninterrupted


def test_an_interrupted_study_prints_one_message(config, uninterrupted, tmp_path):
    driver = start(config, tmp_path)
    wait_for(driver, tmp_path, lambda: batches(tmp_path) >= 1)
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
    assert driver.wait(timeout=TIMEOUT_SECONDS) == 130
    assert messages_of(tmp_path) == ["kassay: interrupted: the same command continues the study"]
    finish(start(config, tmp_path), tmp_path)
    assert rows_of(tmp_path) == uninterrupted


@pytest.mark.parametrize("seconds", [0, 0.5, 1, 2, 3])
def test_an_interrupt_while_java_starts_prints_one_message(config, tmp_path, seconds):
    driver = start(config, tmp_path)
    wait_for(driver, tmp_path, lambda: java_of(driver) is not None)
    time.sleep(seconds)
    os.killpg(driver.pid, signal.SIGINT)
    assert driver.wait(timeout=TIMEOUT_SECONDS) == 130
    assert messages_of(tmp_path) == ["kassay: interrupted: the same command continues the study"]


def test_a_study_on_a_full_disk_continues_when_space_is_free(config, uninterrupted, tmp_path):
    with small_disk(tmp_path / "disk", kilobytes=100) as disk:
        out = disk / "out"
        driver = start(config, out)
        assert driver.wait(timeout=TIMEOUT_SECONDS) == 2
        assert messages_of(out) == ["kassay: Spark failed: No space left on device"]
        kept = set(out.glob("cases/*/batch=*/run=*/part-*.parquet"))
        assert kept
        remount(disk, "size=64m")
        log_of(out).write_text("")
        finish(start(config, out), out)
        assert rows_of(out) == uninterrupted
        assert {disk / "out" / name for name in read_manifest(out)["files"]} >= kept


def test_a_cluster_that_loses_a_worker_gives_the_same_rows(config, uninterrupted, tmp_path):
    with cluster(tmp_path / "spark") as (url, workers):
        out = tmp_path / "out"
        driver = start(config, out, "--master", url, "--conf", "spark.executor.memory=512m")
        wait_for(driver, out, lambda: batches(out) >= 2)
        workers[0].kill()
        finish(driver, out)
    assert rows_of(out) == uninterrupted


def rows_of(out):
    load_summary(out)
    return stored_rows(out, read_manifest(out))


def java_of(driver):
    """Return the process id of the Java process that a driver has started, None without it."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process that ended
            name, _, rest = status.read_text().rpartition(")")
            if name.endswith("(java") and int(rest.split()[1]) == driver.pid:
                return int(status.parent.name)
    return None


def kill_java(driver):
    """Kill the Java process that a driver has started."""
    java = java_of(driver)
    assert java is not None, "the driver has no Java process"
    os.kill(java, signal.SIGKILL)


def start(config, out, *options):
    command = [sys.executable, "-m", "kassay", "study", config, "--output", out]
    options = options or ("--master", "local[2]")
    with log_of(out).open("a") as log:
        return subprocess.Popen(
            [*map(str, command), *options],
            cwd=ROOT,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


def log_of(out):
    # Outside of a disk that a test fills.
    return out.parents[1] / f"{out.parent.name}-{out.name}.log"


def messages_of(out):
    """Return the lines on standard error, without lines of progress."""
    lines = log_of(out).read_text().splitlines()
    return [line for line in lines if not line.startswith("studying: ")]


@contextmanager
def small_disk(directory, *, kilobytes):
    """Mount a file system in memory; skip the test if the system does not permit it."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", directory]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("the test mounts a file system, which needs root permissions")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def remount(directory, option):
    subprocess.run(["mount", "-o", f"remount,{option}", directory], check=True)


def finish(driver, out):
    assert driver.wait(timeout=TIMEOUT_SECONDS) == 0, log_of(out).read_text()


def wait_for(driver, out, condition):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert driver.poll() is None, log_of(out).read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def batches(out):
    return len({p.parts[-3] for p in out.glob("cases/*/batch=*/run=*/part-*.parquet")})
