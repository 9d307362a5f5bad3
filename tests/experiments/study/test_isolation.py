import os
import resource
import signal
import time

import pytest

from kassay.experiments.compare import CaseLimits
from kassay.experiments.study.case import Case
from kassay.experiments.study.evaluate_case import evaluate_case
from kassay.experiments.study.isolation import memory_limit, run_isolated, watchdog

CASE = Case(family="named", seed=2, assignors=("range", "sticky"))


def test_a_child_finds_what_the_process_itself_finds():
    alone, here = run_isolated(evaluate_case, CASE, limits=CaseLimits()), evaluate_case(CASE)
    assert (alone.group, alone.optimum) == (here.group, here.optimum)
    assert (alone.assignments, alone.comparisons) == (here.assignments, here.comparisons)


def test_what_a_child_dies_of_is_told():
    record = run_isolated(lambda _: os._exit(3), CASE, limits=CaseLimits())
    assert record.group.error == "the process that studied this group ended with exit code 3"
    assert record.group.case == "named/2"
    assert record.assignments == ()


def test_a_child_that_takes_too_long_is_ended():
    begin = time.monotonic()
    record = run_isolated(lambda _: time.sleep(600), CASE, limits=CaseLimits(group=0.2))
    assert record.group.error == "took more than 0.2 s"
    assert time.monotonic() - begin < 300


def test_a_watchdog_ends_a_process_that_does_not_wind_it_again():
    def tarry(_):
        with watchdog() as wind:
            wind(600)
            wind(0.1)
            time.sleep(600)

    record = run_isolated(tarry, CASE, limits=CaseLimits())
    assert record.group.error == "the process that studied this group died of SIGALRM"


def test_a_watchdog_sleeps_once_its_block_is_over():
    with watchdog() as wind:
        wind(600)
        left, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 500 < left <= 600
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_memory_beyond_the_limit_is_refused_and_the_limit_ends_with_its_block():
    before = resource.getrlimit(resource.RLIMIT_AS)
    with memory_limit(4096), pytest.raises(MemoryError):
        bytearray(5000 << 20)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
