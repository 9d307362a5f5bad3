"""Survey the groups of a cluster at regular intervals, and record their rebalances."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from threading import Event, Lock
from typing import Any, NamedTuple

from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.history.generations import Generation, reconstruct_generations
from kassay.experiments.history.group_records import OffsetsReader
from kassay.experiments.history.recorded_rebalances import compare_result, find_rebalances, identity
from kassay.experiments.planning import survey
from kassay.experiments.sources.anonymize import PUBLIC_NAMES, rename_group
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.import_captures import ImportedGroup
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from kassay.experiments.sources.live_cluster.librdkafka import LiveCluster
from kassay.experiments.sources.live_cluster.live_groups import import_live, read_lags
from kassay.experiments.watch.event_database import DOCUMENT, GENERATION, POSITION, Store
from kassay.experiments.watch.plan_process import plan_page
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
_KEPT_PAGES = 20
"""Number of pages of plans in memory."""
_SECONDS_TO_REFRESH = 900.0
"""Seconds after which all groups are read: descriptions of groups lack new partitions."""
_NAME_DIGITS = 12
"""Hexadecimal digits of a hashed name."""
_Descriptions = dict[str, tuple[int, bool]]
"""Hash of the description of each group, and whether the group is rebalancing.

Rarely, equal sets differ in order, and therefore in the hash: then the group is read once more.
"""
UNCOUNTED = "Rebalances of the classic protocol between two readings are not counted"
"""Consequence if the records of ``__consumer_offsets`` cannot be read."""
_RECORDS_AT_ONCE = _GROUPS_AT_ONCE = 100
"""Number of records in memory and per transaction, and of groups per description."""
_CLASSIC_GROUP = message_decoder.RecordType.GROUP_METADATA.to_bytes(2)


class _StableGroup(NamedTuple):
    """Last stable state of a group. ``number`` is the generation, or None if unknown."""

    group: Group
    number: int | None = None


def find_rebalance(
    before: Group, after: Group, *, generations: int | None = None
) -> dict[str, Any] | None:
    """Describe the difference between two states of a stable group as a JSON object.

    The result is None if no rebalance happened. ``generations`` is the number of rebalances, if it
    is known. Unknown numbers of moves are None. The maximum loads are numbers of partitions.
    """
    old, new = ({identity(one): one for one in group.members} for group in (before, after))
    joined = [member for key, member in new.items() if key not in old]
    left = [member for key, member in old.items() if key not in new]
    same = all(key in old and set(old[key].owned) == set(one.owned) for key, one in new.items())
    first, last = generation_of(before), generation_of(after)
    if generations is None:
        generations = last - first if first > 0 else 0
    if same and not left and generations < 1:
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
        "rebalances": max(1, generations),
        "moves": found.movement.value,
        "unnecessary_moves": found.unnecessary_moves,
        "maximum_load": dict(zip(("before", "after"), loads, strict=True)),
    }


def _cause(before: Group, after: Group, joined: Sequence[Member], left: Sequence[Member]) -> str:
    if joined or left:
        return "replaced" if joined and left else "joined" if joined else "left"
    # Clients remove deleted topics from their subscriptions.
    known = _partition_counts(after).keys()
    old, new = (
        {identity(m): known & set(m.subscription) for m in one.members} for one in (before, after)
    )
    if old != new:
        return "subscriptions"
    if _partition_counts(before) != _partition_counts(after):
        return "partitions"
    return "assignor" if before.status.assignor != after.status.assignor else "other"


def _is_rewritten(group: Group, generation: Generation) -> bool:
    """Return whether a generation differs from a group only in member ids of static members."""
    # Brokers write a generation again if only these ids change.
    before = {identity(one): set(one.owned) for one in group.members}
    after = {
        identity(one): {(topic, number) for topic, each in one.assigned or () for number in each}
        for one in generation.members
    }
    return before == after and not {one.id for one in group.members}.issuperset(
        one.id for one in generation.members
    )


def _partition_counts(group: Group) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in group.topics}


def generation_of(group: Group) -> int:
    """Return the generation of a group, or `NO_GENERATION` if the source does not show it."""
    # Descriptions have a state, and no generation of the classic protocol: 1 replaces it.
    if group.status.state is not None and group.status.protocol is not Protocol.CONSUMER:
        return NO_GENERATION
    return max((member.generation for member in group.members), default=NO_GENERATION)


class Watcher:
    """Watcher of all consumer groups of a cluster.

    ``hash_names`` replaces names of groups, topics, members, clients and hosts by hashes.
    ``on_change`` is called with a sentence when the cluster stops or starts to answer. If given,
    ``records`` shows the rebalances of the classic protocol between two observations.
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
        self._described: _Descriptions = {}
        self._results: dict[str, survey.SurveyResult] = {}
        self._pages: dict[str, tuple[Group, str]] = {}
        self._planning, self._next_refresh = Lock(), 0.0
        self.observed: float | None = None  # last time at which the cluster answered
        self.problem: str | None = "the first answer is pending"
        self._records = records
        self.records_problem: str | None = None  # why the records cannot be read
        self._failed: dict[int, int] = {}  # positions of the last reading, if it failed
        self._has_unread = records is None  # records since the last observation
        numbers = {name: number for name, _, number in store.values(GENERATION)}
        self._stable = {
            name: _StableGroup(parse_group(json.loads(text)), numbers.get(name))
            for name, _, text in store.values(DOCUMENT)
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
            described, results = self._read(self._connect(), is_complete=is_complete)
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
            self._described, self._has_unread = described, self._records is None
            self._results, self.observed = results, now
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
    ) -> tuple[_Descriptions, dict[str, survey.SurveyResult]]:
        """Describe all consumer groups, and survey those that changed (``is_complete``: all)."""
        names, described = cluster.group_ids(), _Descriptions()
        for start in range(0, len(names), _GROUPS_AT_ONCE):
            for name, one in cluster.describe(names[start : start + _GROUPS_AT_ONCE]).items():
                is_moving = isinstance(one, LiveGroup) and one.status.is_rebalancing
                described[name] = hash(repr(one)), is_moving
        changed = [one for one in names if self._described.get(one) != described[one]]
        results = {} if is_complete else dict(self._results)
        if is_complete or changed:
            for group in import_live(cluster, () if is_complete else changed, ImportOptions()):
                renamed = self._renamed("group", group.id or "")
                results[renamed] = self._survey(renamed, group)
        lags = {self._renamed("group", n): lag for n, lag in read_lags(cluster, names).items()}
        for name, result in results.items():
            if isinstance(result, survey.SurveyedGroup):
                results[name] = replace(result, lag=lags.get(name))
        return described, results

    def _read_records(self, reader: OffsetsReader) -> str | None:
        """Record the rebalances since the last reading, or return the reason if this fails."""
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
        state = self._stable.get(name)
        known = {} if state is None else _partition_counts(state.group)
        for generation in reconstruct_generations(record.key["group"], [record]):
            seconds, number = (generation.timestamp or 0) / 1000, generation.number
            if state is not None and (state.number is None or number < state.number):
                # The first record after an observation, or after a deletion of the group.
                is_known = state.number is None and _is_rewritten(state.group, generation)
                state = _StableGroup(state.group, number if is_known else number - 1)
                self._keep(name, state)
            if not generation.members and state is not None:
                empty = replace(state.group, members=())
                self._record_change(name, empty, seconds, number=number)
            topics = {topic for one in generation.members for topic in one.subscription or ()}
            renamed = {topic: self._renamed("topic", topic) for topic in topics}
            counts = {topic: known[one] for topic, one in renamed.items() if one in known}
            # A cooperative rebalance takes several generations; only the last one is found here.
            if next(find_rebalances([generation], partition_counts=counts), None) is None:
                continue
            for found in find_rebalances([generation]):  # partitions without a member do not exist
                if found.group is not None:
                    group = replace(found.group, id=generation.group)
                    group = rejoin(group, found.assignment, generation=number)
                    if self._key is not None:
                        group = rename_group(group, self._renamed)
                    self._record_change(name, group, seconds, number=number)

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
        self, described: _Descriptions, results: dict[str, survey.SurveyResult], now: float
    ) -> None:
        """Record changes of groups and the duration of rebalances, and remove deleted groups."""
        states = {self._renamed("group", name): state for name, (_, state) in described.items()}
        surveyed = {name for name, one in results.items() if isinstance(one, survey.SurveyedGroup)}
        for name in sorted((surveyed | self._stable.keys()) - states.keys()):
            results.pop(name, None)
            self._stable.pop(name, None)
            self._store.remove_group(name)
            self._store.add_event(now, name, "removed")
        for name, is_moving in states.items():
            result = results.get(name)
            if isinstance(result, survey.SurveyedGroup) and not is_rebalancing(result.group):
                is_classic = result.group.status.protocol is Protocol.CLASSIC
                if self._has_unread or not (is_classic and name in self._stable):
                    self._record_change(name, result.group, now)
            if is_moving and self.observed is not None and self.problem is None:
                self._store.add_total("not_stable_seconds", name, now - self.observed)

    def _record_change(
        self, name: str, group: Group, now: float, *, number: int | None = None
    ) -> None:
        """Record the next stable state of a group. ``number`` is its generation, if known."""
        before = self._stable.get(name)
        if before is None:
            self._store.add_event(now, name, "appeared", members=len(group.members))
            if number is None:
                self._keep(name, _StableGroup(group))
                return
            before = _StableGroup(replace(group, members=()), number - 1)
        last, generations, found = before.number, None, None
        if number is not None and last is not None:
            generations = number - last
        if generations or (generations is None and before.group != group):
            found = find_rebalance(before.group, group, generations=generations)
        if number is None and last is not None:
            number = last + (found["rebalances"] if found else 0)
        self._keep(name, _StableGroup(group, number))
        if found is not None:
            self._store.add_event(now, name, "rebalance", **found)
            self._store.add_total("rebalances", name, found["rebalances"], label=found["cause"])
            for kind in ("moves", "unnecessary_moves"):
                self._store.add_total(kind, name, found[kind] or 0)

    def _keep(self, name: str, state: _StableGroup) -> None:
        before = self._stable.get(name)
        self._stable[name] = state  # also if it is equal, so that one copy is in memory
        if before is None or before.group != state.group:
            self._store.put(DOCUMENT, name, json.dumps(group_document(state.group)))
        if state.number is not None:
            self._store.put(GENERATION, name, state.number)

    def _renamed(self, kind: str, name: str) -> str:
        if self._key is None or (kind in ("assignor", "library") and name in PUBLIC_NAMES):
            return name
        text = f"{kind}\0{name}".encode("utf-8", "surrogatepass")
        digest = hmac.new(self._key.encode(), text, hashlib.sha256).hexdigest()
        return f"{kind}-{digest[:_NAME_DIGITS]}"

    def results(self) -> survey.Survey:
        """Return the ranked survey of the last result of each group."""
        return survey.Survey.of(self._results.values())

    def plan_page(self, name: str, source: str) -> str | None:
        """Return the plan page of a group, cached per state, or None if the group is unknown."""
        result = self._results.get(name)
        if not isinstance(result, survey.SurveyedGroup):
            return None
        with self._planning:  # one search at a time: requests must not use all processors
            found = self._pages.pop(name, None)
            if found is None or found[0] is not result.group:
                found = result.group, plan_page(result.group, source)
            self._pages[name] = found
            if len(self._pages) > _KEPT_PAGES:
                del self._pages[next(iter(self._pages))]
            return found[1]
