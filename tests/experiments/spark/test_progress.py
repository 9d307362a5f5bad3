import time
from unittest.mock import MagicMock

from kassay.experiments.spark.jobs import CaseCounts, with_progress


def test_a_log_shows_finished_groups_speed_and_remaining_time(monkeypatch, capsys):
    monkeypatch.setattr("kassay.experiments.spark.jobs._POLL_SECONDS", 0.01)
    monkeypatch.setattr("kassay.experiments.spark.jobs._LOG_SECONDS", 0.0)
    spark = MagicMock()
    spark.sparkContext.statusTracker().getActiveStageIds.return_value = []
    text = ""
    counts = CaseCounts(10_000, finished=100)
    with with_progress(spark, counts):
        deadline = time.monotonic() + 30
        while "left" not in text and time.monotonic() < deadline:
            counts.finished += 1
            time.sleep(0.01)
            text += capsys.readouterr().err
    assert text.startswith("studying: ")
    assert " of 10,000 groups" in text
    assert " per second, 0:" in text
