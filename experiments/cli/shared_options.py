"""Command-line options that several commands share: cluster, Spark, assignors."""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from kassay.experiments.cli.application import REQUIRED, check_name, option, print_note
from kassay.experiments.implementations import assignor_names
from kassay.experiments.implementations.client_libraries import is_library_assignor, split_alias
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import EmptyGroups, ImportedGroup, join_imported
from kassay.experiments.sources.live_cluster import client_properties
from kassay.reference.assignors import ASSIGNORS, DEFAULT_ASSIGNORS, KIND_PORTS
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import WeightSource

CONFIG = "KASSAY_CONFIG"
"""Environment variable with the file of client properties for clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Command-line options for reading from a running Kafka cluster."""

    bootstrap_server: str | None = option(None, metavar="HOST:PORT")
    command_config: Path | None = option(None, "--command-config", "--config", envvar=CONFIG)
    timeout: float = option(30.0, min=0.1)

    def settings(self) -> dict[str, str]:
        """Return the client properties for librdkafka."""
        config = self.command_config
        return {} if config is None else client_properties.load_librdkafka_settings(config)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledClusterOptions(ClusterOptions):
    """Command-line options for reading groups and message rates from a cluster."""

    sample: float = option(10.0, min=0.1)


def read_cluster(
    options: SampledClusterOptions,
    groups: Sequence[str],
    import_options: ImportOptions,
    *,
    empty: EmptyGroups,
) -> Iterator[ImportedGroup]:
    """Read the named groups of a running cluster, or all groups if none is named."""
    from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
    from kassay.experiments.sources.live_cluster.live_groups import import_live

    settings, server = options.settings(), options.bootstrap_server or ""
    try:
        cluster = LiveCluster(server, settings, timeout=options.timeout)
    except InputError as error:
        where = "" if options.command_config is None else f"{options.command_config}: "
        raise InputError(f"{where}{error}") from None
    if import_options.weights is WeightSource.RATE or import_options.measures_speeds:
        print_note(f"taking two samples of the rate, {options.sample:g} s apart")
    imported = import_live(
        cluster, groups, import_options, sample_seconds=options.sample, empty=empty
    )
    return join_imported(imported) if import_options.together else imported


_SPARK_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s|sc)://.+|yarn")


def _spark_master(master: str | None) -> str | None:
    if master is not None and not _SPARK_MASTER.fullmatch(master):
        raise typer.BadParameter(
            f"must be a Spark master such as local[4] or spark://host:7077, got {master!r}"
        )
    return master


def _pairs(pairs: list[str] | None) -> list[str]:
    for pair in pairs or ():
        if not re.match("[^=]+=", pair):
            raise typer.BadParameter(f"must be KEY=VALUE, got {pair!r}")
    return pairs or []


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Command-line options for the master and the configuration of the Spark session."""

    master: str | None = option(
        None,
        callback=_spark_master,
        metavar="MASTER",
        show_default="local[*], or the value of spark-submit",
    )
    conf: list[str] | None = option(None, callback=_pairs, metavar="KEY=VALUE")

    def settings(self) -> dict[str, str]:
        """Return the Spark configuration properties as a dictionary."""
        return {key: value for key, _, value in (pair.partition("=") for pair in self.conf or ())}

    def run_record(self, session: Any, begin: float) -> dict[str, object]:
        """Return the Spark master and the duration (s) of a run, for the manifest."""
        return {
            "master": self.master or session.conf.get("spark.master"),
            "seconds": round(time.perf_counter() - begin, 1),
        }


def known_assignor(name: str, *, of_each_kind: bool = False) -> str:
    """Check the name of an assignor and return its complete name.

    The complete name contains the version of a library. Unless ``of_each_kind`` is true, assignors
    for other kinds than consumer groups are errors.
    """
    rest = split_alias(name)[1]
    if not (assignor_names.is_custom_assignor(rest) or is_library_assignor(rest)):
        check_name("assignor", [*ASSIGNORS, *KIND_PORTS, *assignor_names.FORMS], rest)
    try:
        complete = assignor_names.complete_name(name)
        if not of_each_kind:
            assignor_names.check_consumer_kind(complete)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return complete


def assignors_of_one_kind(names: Sequence[str] | None) -> list[str]:
    """Complete the names of assignors, or raise a usage error if their kinds differ."""
    known = [known_assignor(name, of_each_kind=True) for name in names or DEFAULT_ASSIGNORS]
    assignor_names.check_shown_names(known)
    if len({assignor_names.kind_of_assignor(name) for name in known}) > 1:
        text = f"all assignors must be for one kind of groups, got {', '.join(known)}; remove one"
        raise typer.BadParameter(text)
    return list(dict.fromkeys(known))


_REPEATABLE = "Assignor, repeatable in compare and study"
_PORTS_OF_KINDS = f"Ports for Connect, share groups and Streams: {', '.join(KIND_PORTS)}."
_FURTHER = (
    "A library's assignor has a name such as kafka-clients@2.4.0:sticky (see `kassay libraries`). "
    "A custom assignor has one of three forms: python:MODULE:FUNCTION, where MODULE can be a .py "
    "file; cmd:COMMAND; class:CLASS@PATH[:PATH], with jars or folders. The time limit per group is "
    "10 seconds, or as in python@30s:MODULE:FUNCTION. ALIAS=NAME sets the name in results."
)


def assignor_option(
    *, text: str = "Assignor", of_each_kind: bool = False, default: Any = None
) -> Any:
    """Declare the option for the name of one assignor."""

    def check(name: str | None) -> str | None:
        return None if name is None else known_assignor(name, of_each_kind=of_each_kind)

    return option(default, callback=check, metavar="NAME", help=_help(text, of_each_kind))


def _help(text: str, of_each_kind: bool) -> str:
    kinds = f"{_PORTS_OF_KINDS} " if of_each_kind else ""
    ports = f"{text}: a port ({', '.join(ASSIGNORS)}), a library's assignor or a custom assignor."
    return f"{ports} {kinds}{_FURTHER}"


def required_assignor() -> Any:
    """Declare the required option for the name of one assignor of any kind."""
    return assignor_option(text=_REPEATABLE, of_each_kind=True, default=REQUIRED)


def assignors_option() -> Any:
    """Declare the repeatable option for the names of the compared assignors."""
    return option(
        None,
        metavar="NAME",
        show_default="all but legacy-range and legacy-roundrobin",
        help=_help(_REPEATABLE, True),
    )
