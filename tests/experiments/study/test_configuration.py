from pathlib import Path

import pytest

from kassay import InputError
from kassay.experiments.report.event_stream_section import PRIMARY_ENDPOINT
from kassay.experiments.study.configuration import read_config
from kassay.experiments.study.families.all_families import FAMILIES
from kassay.experiments.study.families.event_streams import EVENT_STREAMS
from tests.stored_cases import stored_cases

STUDIES = Path(__file__).parents[3] / "experiments" / "study" / "configurations"


def read(name):
    return read_config((STUDIES / name).read_text(encoding="utf-8"), name)


@pytest.mark.parametrize("names", [["quick.yaml"], ["published.yaml", "racks.yaml"]])
def test_the_included_studies_cover_every_family_except_the_largest(names):
    streams = {"trajectories", "trajectories-random-past"}
    uncovered = set(FAMILIES).difference(*(read(name).families for name in names))
    grid = {"kafka-grid", "kafka-grid-medium", "kafka-grid-small"}
    hunts = {"equal-small", "equal-many-topics"}
    assert uncovered <= {"jmh", "worlds-3x3", "worlds-3x4", *hunts, *grid, *streams}


def test_the_primary_analysis_has_2000_trajectories_and_names_its_endpoint():
    config = read("trajectories.yaml")
    [seeds] = config.families.values()
    assert seeds >= 2000
    assert seeds * EVENT_STREAMS.rebalances * len(config.assignors) >= 1_000_000
    about = (STUDIES / "trajectories.yaml").read_text(encoding="utf-8")
    assert f"Primary endpoint: {PRIMARY_ENDPOINT} per rebalance" in about


def test_every_key_of_the_file_is_read():
    config = read_config(
        "families: {named: all, mixed-join: 2}\nassignors: [range]\nfirst_seed: 5\n"
        "groups: [a.jsonl]\ndrawn: 3\nbatch_cases: 4\nlimits: {time: 1, memory: 99, group: 2.5}\n",
        "mine.yaml",
        directory=Path("there"),
    )
    assert [case.name for case in config.cases()][-2:] == ["mixed-join/5", "mixed-join/6"]
    assert config.groups == (Path("there/a.jsonl"),)
    assert (config.drawn, config.batch_cases) == (3, 4)
    assert (config.limits.time, config.limits.memory, config.limits.group) == (1.0, 99, 2.5)


@pytest.mark.parametrize(("text", "message"), stored_cases("invalid_study_configurations"))
def test_errors_name_the_line_and_the_field(text, message):
    with pytest.raises(InputError) as raised:
        read_config(text, "mine.yaml")
    assert message in str(raised.value)
