"""Studies on a cluster, and with killed drivers or workers, give the same tables."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kassay.experiments.report.output_reader import load_summary, read_manifest
from tests.experiments.conftest import stored_rows
from tests.experiments.spark.services import cluster

pytestmark = [pytest.mark.spark, pytest.mark.survival, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
KILLS = int(os.environ.get("KILLS", "2"))
# Four batches per kill: two may be finished before it, and two may be running.
CONFIG = f"""
families: {{named: all, mixed-join: 150, equal-leave: 150, overlap-chains: 100}}
assignors: [sticky, cooperative-sticky, uniform]
wave: {400 // (4 * KILLS)}
"""
TIMEOUT_SECONDS = 600


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "study.yaml"
    path.write_text(CONFIG)
    return path


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
    lines = [x for x in log_of(tmp_path).read_text().splitlines() if "studying" not in x]
    assert lines == [
        "kassay: the Java process of Spark ended unexpectedly; start the command again"
    ]
    finish(start(config, tmp_path), tmp_path)
    assert rows_of(tmp_path) == uninterrupted


def test_two_drivers_share_the_batches(config, uninterrupted, tmp_path):
    drivers = [start(config, tmp_path, "--master", "local[1]") for _ in range(2)]
    for driver in drivers:
        finish(driver, tmp_path)
    assert rows_of(tmp_path) == uninterrupted
    runs = {path.parent.name for path in tmp_path.glob("cases/*/batch=*/run=*/part-*.parquet")}
    assert len(runs) == 2
    numbers = {path.name for path in tmp_path.glob("cases/*/batch=*")}
    both = [n for n in numbers if len(list(tmp_path.glob(f"cases/*/{n}/run=*"))) == 2]
    assert len(both) < len(numbers)


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


def kill_java(driver):
    """Kill the Java process that a driver has started."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        name, _, rest = status.read_text().rpartition(")")
        if name.endswith("(java") and int(rest.split()[1]) == driver.pid:
            os.kill(int(status.parent.name), signal.SIGKILL)
            return
    pytest.fail("the driver has no Java process")


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
        )


def log_of(out):
    return out.with_name(out.name + ".log")


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
