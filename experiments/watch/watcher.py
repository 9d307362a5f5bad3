"""Survey the groups of a cluster at intervals, and record their rebalances."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from threading import Event, Lock
from typing import Any

from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.history.generations import reconstruct_generations
from kassay.experiments.history.group_records import OffsetsReader
from kassay.experiments.history.recorded_rebalances import compare_result, find_rebalances, identity
from kassay.experiments.planning import survey
from kassay.experiments.planning.plan import Plan, plan
from kassay.experiments.sources.anonymize import PUBLIC_NAMES, rename_group
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import ImportedGroup
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live, read_lags
from kassay.experiments.watch.event_database import DOCUMENT, POSITION, Store
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError, KassayError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Protocol
from kassay.reference.model.group_remarks import is_rebalancing
from kassay.reference.protocol import message_decoder
from kassay.solver.limits import SearchLimits

_LIMITS = SearchLimits(work=1.0)
"""Limits for the survey of a group, and for the comparison of a rebalance."""
_PLAN_WORK, _KEPT_PLANS = 20.0, 20
"""Work for the plan of a group, and number of plans in memory."""
_SECONDS_TO_REFRESH = 900.0
"""Time after which all groups are read: new partitions of a topic do not change its groups."""
_NAME_DIGITS = 12
"""Hexadecimal digits of a hashed name."""
UNCOUNTED = "Rebalances of the classic protocol between two readings are not counted"
"""Consequence if the records of ``__consumer_offsets`` cannot be read."""
_RECORDS_AT_ONCE = 100
"""Number of records in memory, and per transaction."""
_CLASSIC_GROUP = message_decoder.RecordType.GROUP_METADATA.to_bytes(2)
Described = dict[str, LiveGroup | InputError]


def find_rebalance(before: Group, after: Group) -> dict[str, Any] | None:
    """Describe the difference between two observations of a stable group as a JSON object.

    The result is None if no rebalance happened. Unknown numbers of moves are None. The maximum
    loads are numbers of partitions.
    """
    old, new = ({identity(one): one for one in group.members} for group in (before, after))
    joined = [member for key, member in new.items() if key not in old]
    left = [member for key, member in old.items() if key not in new]
    same = all(key in old and set(old[key].owned) == set(one.owned) for key, one in new.items())
    first, last = generation_of(before), generation_of(after)
    if same and not left and not 0 < first < last:
        return None
    owned = Assignment({one.id: old[key].owned for key, one in new.items() if key in old})
    found = compare_result(
        rejoin(after, owned),
        Assignment({member.id: member.owned for member in after.members}),
        assignor="observed",
        rounds=1,
        owners_known=True,
        limits=CaseLimits.of(_LIMITS),
    )
    loads = [max((len(one.owned) for one in group.members), default=0) for group in (before, after)]
    return {
        "cause": _cause(before, after, joined, left),
        "joined": sorted(member.client.id or member.id for member in joined),
        "left": sorted(member.client.id or member.id for member in left),
        "generation": last if last > 0 else None,
        "rebalances": max(1, last - first) if first > 0 else 1,
        "moves": found.movement.value,
        "unnecessary_moves": found.unnecessary_moves,
        "maximum_load": dict(zip(("before", "after"), loads, strict=True)),
    }


def _cause(before: Group, after: Group, joined: Sequence[Member], left: Sequence[Member]) -> str:
    if joined or left:
        return "replaced" if joined and left else "joined" if joined else "left"
    old, new = ({identity(m): set(m.subscription) for m in one.members} for one in (before, after))
    if old != new:
        return "subscriptions"
    counts = {topic.name: topic.partitions for topic in before.topics}
    if any(counts.get(topic.name) != topic.partitions for topic in after.topics):
        return "partitions"
    return "assignor" if before.status.assignor != after.status.assignor else "other"


def generation_of(group: Group) -> int:
    """Return the generation of a group; `NO_GENERATION` if the source does not show it."""
    # Descriptions have a state, and no generation of the classic protocol: 1 replaces it.
    if group.status.state is not None and group.status.protocol is not Protocol.CONSUMER:
        return NO_GENERATION
    return max((member.generation for member in group.members), default=NO_GENERATION)


class Watcher:
    """Watcher of all groups of a cluster.

    ``hash_names`` replaces names of groups, topics, members, clients and hosts by hashes.
    ``on_change`` is called with a sentence when the cluster stops or starts to answer. Between two
    observations, rebalances of the classic protocol are read from ``records``, if they are given.
    """

    def __init__(
        self,
        connect: Callable[[], LiveCluster],
        store: Store,
        *,
        hash_names: bool = False,
        on_change: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        records: OffsetsReader | None = None,
    ) -> None:
        self._connect, self._store, self._clock = connect, store, clock
        self._on_change, self._key = on_change, store.key() if hash_names else None
        self._described: dict[str, int] = {}  # hash of the description of each group
        self._results: dict[str, survey.SurveyResult] = {}
        self._plans: dict[str, tuple[Group, Plan]] = {}
        self._planning, self._next_refresh = Lock(), 0.0
        self.observed: float | None = None  # last time at which the cluster answered
        self.problem: str | None = "the first answer is pending"
        self._records = records
        self.records_problem: str | None = None  # why the records cannot be read
        self._failed: dict[int, int] = {}  # positions of the last reading, if it failed
        self._has_unread = records is None  # records since the last observation
        self._stable = {
            name: parse_group(json.loads(text)) for name, _, text in store.values(DOCUMENT)
        }

    def run(self, stop: Event, *, interval: float) -> None:
        """Observe the groups every ``interval`` seconds until ``stop`` is set."""
        while not stop.is_set():
            begin = time.monotonic()
            self.observe()
            stop.wait(max(0.0, interval - (time.monotonic() - begin)))

    def observe(self) -> None:
        """Read all groups once, or record that the cluster does not answer."""
        now, problem = self._clock(), None
        is_complete = now >= self._next_refresh
        unread = None if self._records is None else self._read_records(self._records)
        try:
            # A new connection has no errors of the past.
            cluster = self._connect()
            described, imported = self._read(cluster, is_complete=is_complete)
            results = {} if is_complete else dict(self._results)
            for one in imported:
                name = self._renamed("group", one.id or "")
                results[name] = self._survey(name, one)
            names = [name for name, one in described.items() if isinstance(one, LiveGroup)]
            lags = {self._renamed("group", n): lag for n, lag in read_lags(cluster, names).items()}
            for name, result in results.items():
                if isinstance(result, survey.SurveyedGroup):
                    results[name] = replace(result, lag=lags.get(name))
        except KassayError as error:
            problem = str(error)
        else:
            if unread is not None and self.records_problem is None:
                self._on_change(f"{UNCOUNTED}: {unread}")
            self.records_problem = unread
            with self._store.transaction():
                if unread is not None:  # the observations replace the records of this time
                    self._store.remove(POSITION)
                self._record(described, results, now)
            # A hash takes less memory. Sets of one content rarely differ in order: the group is
            # then only read once more.
            self._described = {name: hash(repr(one)) for name, one in described.items()}
            self._results, self.observed, self._has_unread = results, now, self._records is None
            if is_complete:
                self._next_refresh = now + _SECONDS_TO_REFRESH
        if (problem is None) != (self.problem is None):
            with self._store.transaction():
                kind = "cluster-answers" if problem is None else "cluster-away"
                self._store.add_event(now, None, kind, problem=problem)
            groups = count_of(len(self._results), "group")
            self._on_change(problem or f"the cluster answers: {groups}")
        self.problem = problem
        self._store.remove_old(now)

    def _read(
        self, cluster: LiveCluster, *, is_complete: bool
    ) -> tuple[Described, Iterable[ImportedGroup]]:
        """Describe all consumer groups, and read those that changed, or all groups."""
        names = cluster.group_ids()
        described = cluster.describe(names) if names else {}
        changed = [one for one in names if self._described.get(one) != hash(repr(described[one]))]
        if is_complete or changed:
            return described, import_live(cluster, () if is_complete else changed, ImportOptions())
        return described, []

    def _read_records(self, reader: OffsetsReader) -> str | None:
        """Record the rebalances since the last reading. Return why they cannot be read."""
        kept, damaged = self._stable, list[str]()
        try:
            ends = reader.end_offsets()
            stored = {int(label): at for _, label, at in self._store.values(POSITION)}
            positions = (stored or self._failed).items()
            self._failed = {n: at for n, at in positions if at < ends.get(n, 0)}
            rows = (
                row
                for row in reader.read(self._failed)
                if row["offset"] < ends[row["partition"]]
                # A record without a key is damaged: it cannot be decoded.
                and (row["key"] or _CLASSIC_GROUP)[:2] == _CLASSIC_GROUP
            )
            while part := list(islice(rows, _RECORDS_AT_ONCE)):
                if not stored:
                    continue  # observations have replaced these records
                self._stable = dict(kept)
                with self._store.transaction():
                    for row in part:
                        try:
                            self._record_generation(row)
                        except InputError as error:
                            damaged.append(str(error))
                        self._store.put(POSITION, "", row["offset"] + 1, label=row["partition"])
                kept = self._stable
            with self._store.transaction():
                for number, end in ends.items():
                    if end >= 0:
                        self._store.put(POSITION, "", end, label=number)
        except KassayError as error:
            self._has_unread, self._stable = True, kept  # without the transaction that failed
            return str(error)
        if damaged:
            self._on_change(f"skipped {count_of(len(damaged), 'damaged record')}: {damaged[-1]}")
        # Without a position, or if it was truncated, records of a partition were not read.
        is_unread = any(n not in stored or 0 <= end < stored[n] for n, end in ends.items())
        self._failed, self._has_unread = {}, self._has_unread or is_unread or bool(damaged)
        return None

    def _record_generation(self, row: Mapping[str, Any]) -> None:
        """Record a generation of a classic group as if it was observed."""
        record = message_decoder.decode(row["key"], row["value"])
        record = replace(record, timestamp=row["timestamp"])
        name = self._renamed("group", record.key["group"])
        before = self._stable.get(name)
        if before is None:
            return  # the next observation is the first one of the group
        counts = {topic.name: topic.partitions for topic in before.topics}
        for generation in reconstruct_generations(record.key["group"], [record]):
            seconds = (generation.timestamp or 0) / 1000
            if not generation.members:
                self._record_change(name, replace(before, members=()), seconds)
            # A cooperative rebalance takes several generations; only the last one is found here.
            for found in find_rebalances([generation], partition_counts=counts):
                if found.group is not None:
                    group = replace(found.group, id=generation.group)
                    group = rejoin(group, found.assignment, generation=generation.number)
                    if self._key is not None:
                        group = rename_group(group, self._renamed)
                    self._record_change(name, group, seconds)

    def _survey(self, name: str, one: ImportedGroup) -> survey.SurveyResult:
        group, previous = one.group, self._results.get(name)
        if group is None and self._key is not None:
            return survey.UnsurveyedGroup(
                id=name, reason="its names cannot be hashed", is_other_type=True
            )
        if one.document is not None:
            return survey.survey_other_kind(one.document, limits=_LIMITS)
        if group is None:
            reason, is_other_type = one.skipped or one.error or "", one.skipped is not None
            return survey.UnsurveyedGroup(id=name, reason=reason, is_other_type=is_other_type)
        if self._key is not None:
            group = rename_group(group, self._renamed)
        if isinstance(previous, survey.SurveyedGroup) and previous.group == group:
            return previous
        return survey.survey_group(group, limits=_LIMITS)

    def _record(
        self, described: Described, results: dict[str, survey.SurveyResult], now: float
    ) -> None:
        """Record changes of groups and time in rebalances; remove groups that do not exist."""
        states = {self._renamed("group", name): answer for name, answer in described.items()}
        surveyed = {name for name, one in results.items() if isinstance(one, survey.SurveyedGroup)}
        for name in sorted((surveyed | self._stable.keys()) - states.keys()):
            results.pop(name, None)
            self._stable.pop(name, None)
            self._store.remove_group(name)
            self._store.add_event(now, name, "removed")
        for name, answer in states.items():
            result = results.get(name)
            if isinstance(result, survey.SurveyedGroup) and not is_rebalancing(result.group):
                is_classic = result.group.status.protocol is Protocol.CLASSIC
                if self._has_unread or not (is_classic and name in self._stable):
                    self._record_change(name, result.group, now)
            is_moving = isinstance(answer, LiveGroup) and answer.status.is_rebalancing
            if is_moving and self.observed is not None and self.problem is None:
                self._store.add_total("not_stable_seconds", name, now - self.observed)

    def _record_change(self, name: str, group: Group, now: float) -> None:
        before = self._stable.get(name)
        found = None if before is None or before == group else find_rebalance(before, group)
        self._stable[name] = group  # also if it is equal, so that one copy is in memory
        if before == group:
            return
        self._store.put(DOCUMENT, name, json.dumps(group_document(group)))
        if before is None:
            self._store.add_event(now, name, "appeared", members=len(group.members))
        elif found is not None:
            self._store.add_event(now, name, "rebalance", **found)
            self._store.add_total("rebalances", name, found["rebalances"], label=found["cause"])
            for kind in ("moves", "unnecessary_moves"):
                self._store.add_total(kind, name, found[kind] or 0)

    def _renamed(self, kind: str, name: str) -> str:
        if self._key is None or (kind in ("assignor", "library") and name in PUBLIC_NAMES):
            return name
        text = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
        digest = hmac.new(self._key.encode(), text, hashlib.sha256).hexdigest()
        return f"{kind}-{digest[:_NAME_DIGITS]}"

    def results(self) -> survey.Survey:
        """Return the last result of each group, ranked."""
        return survey.Survey.of(self._results.values())

    def plan(self, name: str) -> Plan | None:
        """Return the plan of a group, computed once per state; None if there is no such group."""
        result = self._results.get(name)
        if not isinstance(result, survey.SurveyedGroup):
            return None
        with self._planning:  # one search at a time: requests must not use all processors
            found = self._plans.pop(name, None)
            if found is None or found[0] is not result.group:
                found = result.group, plan(result.group, limits=CaseLimits(work=_PLAN_WORK))
            self._plans[name] = found
            if len(self._plans) > _KEPT_PLANS:
                del self._plans[next(iter(self._plans))]
            return found[1]
