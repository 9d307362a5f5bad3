"""Wrong options and inputs of all commands: exit code 2, a message, and no file."""

import gzip
import json
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.experiments.cli.conftest import LOPSIDED_GROUP
from tests.experiments.cli.test_forecast import EVENTS
from tests.experiments.cli.test_history import SERVER_LOG
from tests.experiments.cli.test_hosts import ORDERS
from tests.experiments.cli.test_import import offsets
from tests.experiments.cli.test_kind_states import SHARE
from tests.experiments.cli.test_objective_options import AMBIGUOUS
from tests.stored_cases import stored_cases

FILES = {
    "ambiguous.json": json.dumps(AMBIGUOUS),
    "bad.json": '{"group": 3}',
    "describe.txt": "GROUP TOPIC PARTITION\n",
    "dump.txt": "Dumping __consumer_offsets-1/0.log\n",
    "events.yaml": EVENTS,
    "few.txt": "Topic: orders\tPartitionCount: 1\tReplicationFactor: 1\n",
    "g.json": json.dumps(LOPSIDED_GROUP | {"assignor": "range", "protocol": "classic"}),
    "good.txt": offsets(),
    "huge.txt": offsets().replace("orders    1 ", "orders    2000000000 "),
    "offsets.txt": offsets(),
    "pods.json": json.dumps(ORDERS),
    "prose.txt": "Nothing of ours.\n",
    "s.json": '{"group": {"c1": ["orders"]}}',
    "script.yaml": "topics: {t: 1}\nmembers:\n  - {id: a, topics: [u]}\n",
    "server.log": SERVER_LOG.read_text(),
    "share.json": json.dumps(SHARE),
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Write the files to an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KASSAY_IMPLEMENTATIONS", str(tmp_path / "libraries"))
    monkeypatch.setattr("kassay.experiments.cli.commands.study.spark_session", None)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("latin.txt").write_bytes("one\ncaf\xe9\n".encode("latin-1"))
    Path("cut.log.gz").write_bytes(gzip.compress(SERVER_LOG.read_bytes())[:-200])
    Path("empty").mkdir()
    Path("examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.parametrize(("line", "message"), stored_cases("usage_errors"))
def test_a_wrong_option_or_input_gives_exit_code_2_and_no_file(kassay, site, line, message):
    before = sorted(site.rglob("*"))
    done = kassay(*shlex.split(line))
    assert done.code == 2
    assert message in done.message
    assert all("error" in record for record in done.records)
    assert sorted(site.rglob("*")) == before
