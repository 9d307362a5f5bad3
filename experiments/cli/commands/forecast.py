"""``kassay forecast``: predict the cost of changes and planned events."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import ClassVar

import typer

from kassay.experiments.cli.application import PROGRESS, given_options, option, print_note
from kassay.experiments.cli.process_groups import GroupResult, SelectedGroups, process_each_group
from kassay.experiments.cli.process_kind_documents import forecasts_of_documents, parse_settings
from kassay.experiments.cli.search_options import AddedMembers, ImbalanceOptions, SearchOptions
from kassay.experiments.cli.write_results import Format, Record, TableLayout, error_record
from kassay.experiments.implementations.assignor_names import complete_name, shown_name
from kassay.experiments.kinds.group_kind import ForecastRequest
from kassay.experiments.planning import change_forecast as forecasts
from kassay.experiments.planning import event_forecast
from kassay.experiments.planning.configuration_choice import Criterion, recommend
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_result import UnplannableGroupError, check_planning_start
from kassay.experiments.planning.recommended_action import read_group
from kassay.experiments.prediction.predict import interval_text
from kassay.experiments.prediction.scenario import Configuration, RollingRestart, Timing
from kassay.reference.assignors import ASSIGNORS
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import condition
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import default_levels
from kassay.solver.solution import Status

_MAX_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOptions:
    """Command-line options of ``kassay forecast``."""

    rare: ClassVar = {
        *("poll", "allow_lag", "missing_lag", "hosts", "speeds", "together"),
        *("imbalance", "tolerance", "time_limit", "workers"),
    }

    members: str | None = option(None, metavar="COUNT")
    partitions: list[str] | None = option(None, metavar="TOPIC=N")
    assignor: list[str] | None = option(
        None,
        text_names=ASSIGNORS,
        show_default=f"{', '.join(forecasts.DEFAULT_CHANGES)}, with weights or without sticky "
        "roundrobin; with other options, that of the group",
    )
    events: Path | None = option(None, metavar="FILE")
    current: str | None = option(None)
    settings: list[str] | None = option(None, "--set", metavar="KEY=VALUE,...")
    at_once: list[int] | None = option(None, min=1, show_default="1")
    downtime: float = option(10.0, min=0)
    pause: float = option(30.0, min=0.1)
    session_timeout: float = option(45.0, min=6)
    criterion: Criterion = option(Criterion.UNOWNED, "--minimise")
    restarts_per_week: float = option(2.0, min=0, max=1000, metavar="N")
    poll: float | None = option(None, min=0, show_default="0.01 to 1.2, over the samples")
    samples: int | None = option(
        None, min=1, show_default="20 for small groups, fewer for large ones"
    )
    output_format: Format = option(Format.JSONL, "--format")

    @property
    def restart(self) -> RollingRestart:
        """Create a rolling restart from the options. Raise a usage error if a time is too long."""
        for name in ("downtime", "pause", "session_timeout"):
            seconds = getattr(self, name)
            # Not a number also fails this comparison.
            if not seconds <= _MAX_SECONDS:
                option = name.replace("_", "-")
                raise typer.BadParameter(
                    f"--{option} must be at most {_MAX_SECONDS}, got {seconds}"
                )
        return RollingRestart(downtime=self.downtime, pause=self.pause)

    def configuration(self, group: Group, current: str | None = None) -> Configuration:
        """Return the configuration of a group, with the assignor ``current`` if it is not None."""
        found = Configuration.of(group, current or self.current)
        name = current or found.assignor
        found = replace(found, assignor=name, session_timeout=self.session_timeout)
        if self.poll is None:
            return found
        return replace(found, timing=Timing(poll=(round(1000 * self.poll),) * 2))


def forecast(
    *,
    options: ForecastOptions,
    added: AddedMembers,
    source: SelectedGroups,
    objective: ImbalanceOptions,
    search: SearchOptions,
) -> None:
    """Run ``kassay forecast`` with parsed options."""
    if options.events is not None and (options.members or options.partitions or options.settings):
        raise typer.BadParameter(
            "--events cannot be combined with --members, --partitions or --set; omit one"
        )
    given = [complete_name(one) if ":" in one else one for one in options.assignor or ()]
    options = replace(options, assignor=given or None)
    restart = options.restart
    request = ForecastRequest(
        downtime_ms=round(1000 * restart.downtime),
        pause_ms=round(1000 * restart.pause),
        assignors=options.assignor or (),
        changes=parse_settings(options.settings) if options.settings else None,
        limits=search.limits(),
    )
    others = forecasts_of_documents(request, options.output_format)

    def process(group: Group) -> GroupResult:
        if options.settings:
            raise typer.BadParameter("--set requires documents of Kafka Streams or Kafka Connect")
        try:
            check_planning_start(group)
        except UnplannableGroupError as error:
            return GroupResult(error_record(group.id, error, options.output_format), reached=False)
        if options.events is not None:
            return GroupResult(_forecast_events(group, options.events, options, search))
        result = _forecast(group, options, added, objective, search)
        for note in _notes(group, result.record, options, source):
            print_note(note)
        return result

    process_each_group(source, process, options.output_format, _LAYOUT, others=others)


def _forecast(
    group: Group,
    options: ForecastOptions,
    added: AddedMembers,
    objective: ImbalanceOptions,
    search: SearchOptions,
) -> GroupResult:
    sizes = forecasts.parse_sizes(
        group,
        members=options.members,
        partitions=options.partitions or (),
        like=added.like,
        allow_lag=added.allow_lag,
    )
    changed = {f"{forecasts.OPTIMUM}, {one.name}": one.changed(group) for one in sizes}
    optima = list(_optima(group, {forecasts.OPTIMUM: group} | changed, objective, search))
    own = identify_assignor(group).name or options.current
    assignors: Sequence[str] | None = options.assignor
    starts: Sequence[str | None] = [own]
    if sizes and own is None:
        # The group runs one of the given assignors.
        assignors, starts = None, options.assignor or []
    PROGRESS("samples")
    simulated = [
        one
        for start in starts
        for one in forecasts.forecast_changes(
            group,
            options.configuration(group, start),
            assignors=assignors,
            sizes=sizes,
            batch_sizes=options.at_once or [1],
            restart=options.restart,
            samples=options.samples,
            seed=search.seed,
        )
    ]
    if sizes:
        reason = "the changes are other numbers of members or partitions"
        reason += "" if own else "; the assignor of the group is not known: give --current NAME"
        best: Record = {"configuration": None, "at_once": None, "reason": reason}
    else:
        minimum = optima[0]["maximum_load"] if optima else None
        first = [one for one in simulated if one.batch_size == simulated[0].batch_size]
        planned, limits = None, search.limits()
        if assignors is None and not limits.is_stopped:
            with suppress(LookupError):
                found = read_group(group, default_levels(group), limits=limits, forecasts=first)
                action = found.to_do.action
                planned = found.to_do.short, None if action is None else action.change
        recommended = recommend(
            simulated,
            options.criterion,
            restarts_per_week=options.restarts_per_week,
            optimum=None if minimum is None else minimum["high"],
            condition=condition(group, with_racks=True),
            plan=planned,
        )
        best = asdict(recommended)
    record = {
        "id": group.id,
        "current": own,
        "current_maximum_load": forecasts.current_load(group),
        "own_assignor": identify_assignor(group).record(),
        "forecasts": [*(one.record() for one in simulated), *optima],
        "recommendation": best,
    }
    is_solved = {one["status"] for one in optima} <= {Status.OPTIMAL, Status.FEASIBLE}
    return GroupResult(record, reached=not sizes or is_solved)


def _optima(
    group: Group, groups: dict[str, Group], objective: ImbalanceOptions, search: SearchOptions
) -> Iterator[Record]:
    limits = search.limits()
    budget = SearchBudget.start(limits, search.seed)
    for index, (name, one) in enumerate(groups.items()):
        if limits.is_stopped:
            return
        PROGRESS(name)
        yield forecasts.optimum_record(
            name,
            one,
            before=group,
            levels=objective.levels(one),
            limits=budget.part(1 / (len(groups) - index)).rest(),
            seed=search.seed,
        )


def _forecast_events(
    group: Group, events: Path, options: ForecastOptions, search: SearchOptions
) -> Record:
    script = event_forecast.load_planned_events(events, group)
    entries, optimum = list[Record](), None
    names: Sequence[str | None] = options.assignor or [None]
    for name in names:
        configuration = options.configuration(group, name)
        found = event_forecast.predict_events(
            group, script, configuration, samples=options.samples, seed=search.seed
        )
        entries += event_forecast.event_records(shown_name(configuration.assignor), found)
        optimum = optimum or event_forecast.hindsight_record(group, found, limits=search.limits())
    return {
        "id": group.id,
        "current": identify_assignor(group).name or options.current,
        "forecasts": [*entries, *([] if optimum is None else [optimum])],
        "recommendation": {"configuration": None, "reason": "events have no recommendation"},
    }


def _notes(
    group: Group, record: Record, options: ForecastOptions, source: SelectedGroups
) -> Iterator[str]:
    best = record["recommendation"]
    if best["configuration"] is not None and options.output_format is Format.TABLE:
        name, size, reason = best.values()
        samples = record["forecasts"][0]["samples"]
        assumed = condition(group, with_racks=True)
        yield (
            f"{group.id}: recommended{f' if {assumed}' if assumed else ''}: {name}, {size} at "
            f"once: {reason.removeprefix(f'if {assumed}: ')} ({count_of(samples, 'sample')} "
            "per configuration)"
        )
        given = given_options(source, without=["--file", "--group"])
        command = ["kassay", "plan", str(source.file), *given, *source.selection(group.id)]
        yield f"{group.id}: loads and moves per assignor in one rebalance: {shlex.join(command)}"
    if options.members and record["current"] is None:
        yield f"{group.label}: {best['reason']}"
    own = identify_assignor(group)
    if own.port is not None and not own.is_ported:
        yield f"{group.label}: {own}"


_COSTS = ("rebalances", "moves", "unowned_seconds")


def _rows(record: Record) -> Iterator[Sequence[object]]:
    if "current_maximum_load" in record:
        yield ("now", *[None] * 10, record["current_maximum_load"], None)
    shown: list[list[object]] = []
    has_sizes = len({one["members"] for one in record["forecasts"] if "members" in one}) > 1
    for one in record["forecasts"]:
        costs = [
            _cost(part[key], key) if part is not None and key in part else None
            for part in (one["change"], one["restart"])
            for key in _COSTS
        ]
        if one.get("movement"):
            costs[1] = one["movement"]["value"]
        load = one["maximum_load"]
        cells: list[object] = [
            one.get("event"),
            one.get("members") if has_sizes else None,
            one["at_once"] if one.get("at_once", 1) > 1 else None,
            one.get("rolling_restarts"),
            *costs,
            None if load is None else interval_text(load),
            _remark(one),
        ]
        # The group without changes has one row, also if it is one of the requested sizes.
        if "members +0" in one["configuration"] and cells in shown:
            continue
        shown.append(cells)
        yield (one["configuration"], *cells)


def _cost(value: Mapping[str, float], name: str) -> str:
    """Format a cost: as a range for counts, without decimals if the interval reaches 10."""
    digits = 0 if value["high"] >= 10 or name != "unowned_seconds" else 1
    text = interval_text({key: round(one, digits) for key, one in value.items()})
    return text if name == "unowned_seconds" else text.partition("(")[2].rstrip(")") or text


def _remark(one: Record) -> str:
    parts = [*one.get("stopped_members", ())]
    status = one.get("status", Status.OPTIMAL)
    if status != Status.OPTIMAL:
        parts.append(status)
    elif any(level["value"] != level["bound"] for level in one.get("levels", {}).values()):
        parts.append(f"{status} within the tolerance; other rows can have a lower load")
    if one.get("topics_without_subscribers"):
        parts.append(f"no subscriber of {', '.join(one['topics_without_subscribers'])}")
    return "; ".join(parts)


_SIMULATED = ("at\nonce", "rolling\nrestarts")
_LATER = ("later\nrebalances", "later\nmoves", "later s\nwithout\nowner")
_COST_COLUMNS = ("rebalances", "moves", "s without\nowner", *_LATER)
_LAYOUT = TableLayout(
    first=("configuration", "event"),
    numbers=("members", *_SIMULATED, *_COST_COLUMNS, "max\nload"),
    last=("remark",),
    optional=(_SIMULATED[1], *_LATER),
    not_empty=("event", "members", *_SIMULATED, *_COST_COLUMNS, "remark"),
    rows=_rows,
)
