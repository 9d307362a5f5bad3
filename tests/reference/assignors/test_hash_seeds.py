"""Independence of Python's hash seed."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from kassay.reference.assignors import ASSIGNORS
from tests.goldens.cases import PINNED, ported, read

ROOT = Path(__file__).parents[3]


def results_digest() -> str:
    """Return a digest of the ports' results on a sample of the recorded groups."""
    digest = hashlib.sha256()
    for case in list(read(PINNED))[::12]:
        for assignor in ASSIGNORS:
            digest.update(json.dumps(ported(case, assignor)).encode())
    return digest.hexdigest()


def test_results_do_not_depend_on_the_hash_seed() -> None:
    command = f"from {__name__} import results_digest; print(results_digest())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", command],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert printed == {results_digest() + "\n"}
