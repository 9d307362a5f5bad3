"""A small study, and its tables on the local file system."""

import pytest

from kassay.experiments.spark.study_pipeline import write_study
from kassay.experiments.study.cases import ImportedCases, JoinedCases
from kassay.experiments.study.configuration import StudySettings, read_config
from kassay.experiments.study.output_reader import load_summary, read_manifest
from tests.experiments.cli.conftest import kassay
from tests.experiments.conftest import stored_rows

__all__ = ["kassay"]

CONFIG = """
families: {mixed-join: 40, equal-leave: 40}
assignors: [range, uniform]
batch_cases: 10
"""


@pytest.fixture(scope="session")
def config_file(tmp_path_factory):
    return configuration_file(tmp_path_factory, CONFIG)


def configuration_file(tmp_path_factory, text):
    """Write the configuration of a study to a new directory, and return the file."""
    path = tmp_path_factory.mktemp("config") / "study.yaml"
    path.write_text(text)
    return path


@pytest.fixture(scope="session")
def tables_in(spark):
    """Return the tables of the study that a session on two local cores writes to an output."""
    config = read_config(CONFIG, "study.yaml")
    cases = JoinedCases((ImportedCases(assignors=config.assignors), config.cases()))

    def write(output, directory):
        write_study(
            spark,
            cases,
            output,
            manifest=dict,
            settings=StudySettings(batch_cases=config.batch_cases),
        )
        return tables_of(directory)

    return write


@pytest.fixture(scope="session")
def expected_tables(tables_in, tmp_path_factory):
    """The tables of the study in a directory that a plain path names."""
    directory = tmp_path_factory.mktemp("plain-path")
    return tables_in(str(directory), directory)


def tables_of(directory):
    """Return the cases of a study, and the sorted rows of each table of its summary."""
    summary = load_summary(directory)
    counts = ("families", "outcomes", "pairs")
    tables = {name: sorted(map(str, getattr(summary, name).to_dict("records"))) for name in counts}
    worst = sorted(map(str, summary.worst))
    return stored_rows(directory, read_manifest(directory)), {**tables, "worst": worst}
