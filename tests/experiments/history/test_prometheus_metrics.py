"""Alert rules and the dashboard use only metrics that kassay writes."""

import json
import re
from pathlib import Path

import yaml

from kassay.experiments.history.prometheus_metrics import METRICS, metrics_text
from kassay.reference.documents.output_files import write_text

MONITORING = Path(__file__).parents[3] / "examples" / "monitoring"


def names_in(expressions):
    return {name for text in expressions for name in re.findall(r"\bkassay_\w+", text)}


def test_a_reader_never_sees_a_part_of_the_file(tmp_path):
    file = tmp_path / "new" / "kassay.prom"
    write_text(file, "old\n")
    with file.open() as reader:
        write_text(file, metrics_text([{"group": "g", "rebalances": 2, "makespan_gap": None}]))
        assert reader.read() == "old\n"
    samples = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert samples == ['kassay_rebalances_total{group="g"} 2']
    assert [path.name for path in file.parent.iterdir()] == ["kassay.prom"]


def test_alert_rules_and_dashboard_use_existing_metrics():
    known = {metric.name for metric in METRICS.values()}
    rules = yaml.safe_load((MONITORING / "alert-rules.yaml").read_text())
    alerts = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert names_in(alerts)
    assert names_in(alerts) < known
    assert names_in(panels) == known
