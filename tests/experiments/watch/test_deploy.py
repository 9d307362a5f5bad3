"""The alert rules and the dashboard in the folder deploy use metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from kassay.experiments.watch.event_database import Store
from kassay.experiments.watch.server import Pages
from kassay.experiments.watch.watcher import Watcher
from tests.experiments.watch.scripted_cluster import ScriptedCluster

DEPLOY = Path(__file__).parents[3] / "deploy"
PROMTOOL = shutil.which("promtool")


@pytest.fixture
def metrics(tmp_path: Path) -> str:
    store = Store(tmp_path / "watch.sqlite")
    watcher = Watcher(lambda: ScriptedCluster({"g": {"a": range(8)}}), store)  # type: ignore[arg-type,return-value]
    watcher.observe()
    _, text = Pages(watcher, store, source="test").find("/metrics") or ("", "")
    return text


@pytest.mark.parametrize(
    "file", ["alert-rules.yaml", "alert-rules-test.yaml", "grafana-dashboard.json"]
)
def test_all_names_are_metrics_of_the_watcher(file: str, metrics: str) -> None:
    names = set(re.findall(r"# TYPE (\w+) ", metrics))
    used = set(re.findall(r"kassay_(?:survey|watch)_\w+", (DEPLOY / file).read_text("utf-8")))
    assert used
    assert used <= names


def test_each_alert_has_a_test_that_fires() -> None:
    rules = yaml.safe_load((DEPLOY / "alert-rules.yaml").read_text("utf-8"))
    tests = yaml.safe_load((DEPLOY / "alert-rules-test.yaml").read_text("utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases = [case for one in tests["tests"] for case in one["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts


def test_the_dashboard_has_a_query_in_each_panel() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    assert all(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])


@pytest.mark.skipif(
    PROMTOOL is None, reason="promtool (Debian package prometheus) is not installed"
)
def test_promtool_accepts_the_rules_and_the_metrics(metrics: str) -> None:
    for command, text in (
        (["check", "rules", "alert-rules.yaml"], ""),
        (["test", "rules", "alert-rules-test.yaml"], ""),
        (["check", "metrics"], metrics),
    ):
        subprocess.run([str(PROMTOOL), *command], check=True, cwd=DEPLOY, input=text, text=True)
