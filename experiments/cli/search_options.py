"""Command-line options for the objective, constraints and limits of a search."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import typer

from kassay.experiments.cli.application import STOP, check_name, option, parse_share
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member
from kassay.reference.model.load_metrics import Measure
from kassay.solver import constraints as solver_constraints
from kassay.solver import objective
from kassay.solver.limits import SearchLimits

if TYPE_CHECKING:
    from kassay.experiments.comparison.compare import CaseLimits


_LEVEL_NAMES = (
    "imbalance",
    "hosts",
    objective.Movement.name,
    *objective.FURTHER_LEVELS,
    objective.Colocation.name,
)


def _known_levels(texts: list[str] | None) -> list[str]:
    for text in texts or ():
        name, separator, tolerance = text.partition("=")
        check_name("level", _LEVEL_NAMES, name)
        if separator:
            _parse_tolerance(tolerance)
    return texts or []


def _parse_tolerance(text: str) -> objective.Tolerance:
    """Parse a tolerance such as 0.05, 5% or +3, or raise a usage error."""
    if text.startswith("+") and text[1:].isdecimal():
        return objective.Tolerance(absolute=int(text))
    try:
        return objective.Tolerance(relative=parse_share(text))
    except typer.BadParameter:
        raise typer.BadParameter(
            "the tolerance of a level must be a share such as 0.05 or 5%, or an absolute value "
            f"such as +3, got {text!r}"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImbalanceOptions:
    """Command-line options for the measure of imbalance and its tolerance."""

    imbalance: Measure | None = option(
        None,
        text_names=Measure,
        metavar="NAME",
        show_default="sum_of_squares, or makespan if weights or speeds differ",
    )
    tolerance: Fraction | None = option(
        None,
        parser=parse_share,
        metavar="SHARE",
        show_default="2% if weights differ, except with leximax; otherwise 0",
    )

    def levels(self, group: Group) -> tuple[objective.Level, ...]:
        """Return the levels of the objective, in the order in which they are minimised.

        Levels of loads without their own tolerance get that of --tolerance, or `default_tolerance`.
        """
        tolerance = objective.default_tolerance(group, self.imbalance)
        if self.tolerance is not None:
            tolerance = objective.Tolerance(relative=self.tolerance)
        measure = self.imbalance or objective.default_measure(group)
        further = self._further(measure, tolerance)
        return objective.ordered_levels(
            group, measure=measure, tolerance=tolerance, further=further
        )

    def _further(self, _measure: Measure, _tolerance: objective.Tolerance) -> list[objective.Level]:
        """Return the levels after imbalance and movement. Subclasses override this method."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveOptions(ImbalanceOptions):
    """Command-line options for further levels of the objective, and for constraints."""

    level: list[str] | None = option(
        None, text_names=_LEVEL_NAMES, callback=_known_levels, metavar="NAME[=TOLERANCE]"
    )
    max_moves: int | None = option(None, min=0, show_default="no limit")
    max_partitions: int | None = option(None, min=0, show_default="no limit")
    colocate: list[str] | None = option(None, metavar="TOPIC,...")
    pin: list[str] | None = option(None, metavar="TOPIC-N=MEMBER")
    forbid: list[str] | None = option(None, metavar="TOPIC[-N]=MEMBER")

    @property
    def is_default(self) -> bool:
        """Return whether no option sets a level or a constraint."""
        return self == ObjectiveOptions()

    def _further(self, measure: Measure, tolerance: objective.Tolerance) -> list[objective.Level]:
        further: list[objective.Level] = []
        for name, text in self._given_levels().items():
            own = objective.EXACT if text is None else _parse_tolerance(text)
            balance = tolerance if text is None else own
            match name:
                case "imbalance":
                    further.append(objective.Imbalance(measure, balance))
                case "hosts":
                    further.append(objective.HostImbalance(measure, balance))
                case objective.Movement.name:
                    further.append(objective.Movement(tolerance=own))
                case objective.Colocation.name:
                    if not self.colocate:
                        raise UsageError("--level colocation requires --colocate TOPIC,...; add it")
                    further.append(objective.Colocation(self._colocated(), own))
                case _:
                    further.append(objective.FURTHER_LEVELS[name](own))
        return further

    def _given_levels(self) -> dict[str, str | None]:
        levels: dict[str, str | None] = {}
        for text in self.level or ():
            name, separator, tolerance = text.partition("=")
            levels[name] = tolerance if separator else levels.get(name)
        return levels

    def _colocated(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(names.split(",")) for names in self.colocate or ())

    def constraints(self, group: Group) -> tuple[solver_constraints.Constraint, ...]:
        """Convert the options to constraints, without the capacities of members."""
        constraints: list[solver_constraints.Constraint] = []
        if objective.Colocation.name not in self._given_levels():
            constraints += map(solver_constraints.Colocated, self._colocated())
        if self.max_moves is not None:
            constraints.append(solver_constraints.MaxMoves(self.max_moves))
        if self.max_partitions is not None:
            constraints.append(solver_constraints.MaxPartitions(self.max_partitions))
        for text in self.pin or ():
            topic, number, member = _parse_placement(group, "--pin", text)
            if number is None:
                raise UsageError(f"--pin must be TOPIC-N=MEMBER, got {text!r}")
            constraints.append(solver_constraints.Pinned(topic, number, member))
        for text in self.forbid or ():
            topic, number, member = _parse_placement(group, "--forbid", text)
            if number is not None and f"{topic}-{number}" in group.topic_table():
                raise InputError(
                    f"--forbid: '{topic}-{number}' is a topic of {group.label}, and also "
                    f"partition {number} of topic {topic!r}; for the topic, forbid each of its "
                    f"partitions, such as {topic}-{number}-0"
                )
            constraints.append(solver_constraints.Forbidden(member, topic, number))
        return tuple(constraints)


def _parse_placement(group: Group, option: str, text: str) -> tuple[str, int | None, str]:
    """Parse TOPIC-N=MEMBER or TOPIC=MEMBER into a topic, a partition and a member id.

    The partition is None for TOPIC. If a name can be a topic or a partition of another topic, it
    means the partition.
    """
    name, separator, member_name = text.partition("=")
    if not separator or not name or not member_name:
        form = "TOPIC-N=MEMBER" if option == "--pin" else "TOPIC-N=MEMBER or TOPIC=MEMBER"
        raise UsageError(f"{option} must be {form}, got {text!r}")
    member = _find_member(group, member_name).id
    topics = group.topic_table()
    topic, _, number = name.rpartition("-")
    if topic in topics and number.isdecimal():
        return topic, int(number), member
    if name in topics:
        return name, None, member
    raise InputError(f"{option}: {group.label} has no topic or partition {name!r}; correct it")


def _find_member(group: Group, name: str) -> Member:
    """Find a member by id, instance id, client id, host or unique prefix, or raise InputError."""
    exact = group.member_table().get(name)
    if exact is not None:
        return exact
    keys = [
        (key, member)
        for member in group.members
        for key in (member.id, member.instance_id, member.client.id, member.client.host)
        if key
    ]
    hosts = [(key, member) for key, member in keys if key.lstrip("/") == name.lstrip("/")]
    found = {m.id: m for _, m in hosts or [pair for pair in keys if pair[0].startswith(name)]}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise InputError(f"{group.label} has no member {name!r}; give a member id or client id")
    raise InputError(
        f"{group.label} has {len(found)} members that match {name!r}: "
        f"{', '.join(list(found)[:4])}; give a longer prefix or the member id"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Command-line options for the work and time limits of each search."""

    work: float = option(60.0, min=0, metavar="UNITS")
    time_limit: float | None = option(None, min=0, metavar="SECONDS")

    def case_limits(self) -> "CaseLimits":
        """Return the limits of comparisons that Ctrl-C cannot stop."""
        from kassay.experiments.comparison.compare import CaseLimits

        return CaseLimits(work=self.work, time=self.time_limit)

    def interruptible_limits(self) -> "CaseLimits":
        """Return the limits of comparisons that Ctrl-C can stop."""
        return replace(self.case_limits(), stop=STOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(LimitOptions):
    """Command-line options for the limits, threads and seed of each search."""

    workers: int = option(1, min=1)
    seed: int = option(0)

    def limits(self) -> SearchLimits:
        """Return the limits of a search that Ctrl-C can stop."""
        return SearchLimits(work=self.work, time=self.time_limit, workers=self.workers, stop=STOP)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedMembers:
    """Command-line options for added members, and for lag as the weight."""

    like: str | None = option(
        None, metavar="MEMBER", show_default="subscription to all topics, no rack"
    )
    allow_lag: bool = option(False)
