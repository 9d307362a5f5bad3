"""Our ports keep nothing from one call to the next, and nothing hangs on Python's hash seed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.check import port_answer
from tests.conformance.digest import answers
from tests.conformance.upstream import NAMES

_ROOT = Path(__file__).parents[2]
_HASH_SEEDS = ("0", "1", "2")
_GROUPS = 400


@pytest.mark.parametrize("name", NAMES)
def test_the_same_groups_in_another_order_get_the_same_answers(name: str) -> None:
    cases = list(answers(name, _GROUPS))
    for group, answer in random.Random(name).sample(cases, len(cases)):
        assert port_answer(group, name) == answer


@pytest.mark.slow
def test_every_hash_seed_gives_the_same_answers() -> None:
    printed = {_digests(seed) for seed in _HASH_SEEDS}
    assert len(printed) == 1
    assert len(printed.pop().splitlines()) == len(NAMES)


def _digests(hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.digest", str(_GROUPS)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout
