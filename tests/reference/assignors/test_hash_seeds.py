"""Nothing hangs on Python's own hashes, nor on what ran before."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from kassay.reference.assignors import ASSIGNORS
from tests.goldens.cases import OWN, ported, read

ROOT = Path(__file__).parents[3]


def digest() -> str:
    """Hash what every port makes of a sample of the recorded groups."""
    seen = hashlib.sha256()
    for case in list(read(OWN))[::4]:
        for assignor in ASSIGNORS:
            seen.update(json.dumps(ported(case, assignor)).encode())
    return seen.hexdigest()


def test_three_hash_seeds_give_the_same_answers() -> None:
    command = f"from {__name__} import digest; print(digest())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert printed == {digest() + "\n"}
