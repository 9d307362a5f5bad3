"""Observe the groups of a cluster at intervals: survey changed groups, and record rebalances."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Sequence
from threading import Event, Lock
from typing import Any

from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.history.rebalances import compare_result, identity
from kassay.experiments.planning import survey
from kassay.experiments.planning.plan import Plan, plan
from kassay.experiments.sources.anonymize import PUBLIC_NAMES, rename_group
from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.capture_files import ImportedGroup
from kassay.experiments.sources.live_cluster.admin_client import LiveCluster
from kassay.experiments.sources.live_cluster.cluster_responses import LiveGroup
from kassay.experiments.sources.live_cluster.live_groups import import_live
from kassay.experiments.watch.store import DOCUMENT, Store
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.model.assignment import Assignment, rejoin
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError, KassayError
from kassay.reference.model.group import Group, Member, Protocol
from kassay.reference.model.group_remarks import is_rebalancing
from kassay.solver.limits import SearchLimits

_LIMITS = SearchLimits(work=1.0)
"""Limits for the survey of a group, and for the comparison of a rebalance."""
_PLAN_WORK, _KEPT_PLANS = 20.0, 20
"""Work for the plan of a group, and number of plans in memory."""
_SECONDS_TO_REFRESH = 900.0
"""Time after which all groups are read: new partitions of a topic do not change its groups."""
_NAME_DIGITS = 12
"""Hexadecimal digits of a hashed name."""
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
    if same and not left:
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
        "rebalances": _count(before, after),
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
    if before.topics != after.topics:
        return "partitions"
    return "assignor" if before.status.assignor != after.status.assignor else "other"


def _count(before: Group, after: Group) -> int:
    """Return the number of rebalances: epochs of the consumer protocol, else at least one."""
    old, new = (max((m.generation for m in one.members), default=0) for one in (before, after))
    return max(1, new - old) if after.status.protocol is Protocol.CONSUMER and old > 0 else 1


class Watcher:
    """Watcher of all groups of a cluster.

    ``hash_names`` replaces names of groups, topics, members, clients and hosts by hashes.
    ``on_change`` is called with a sentence when the cluster stops or starts to answer.
    """

    def __init__(
        self,
        connect: Callable[[], LiveCluster],
        store: Store,
        *,
        hash_names: bool = False,
        on_change: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connect, self._store, self._clock = connect, store, clock
        self._on_change, self._key = on_change, store.key() if hash_names else None
        self._described: dict[str, int] = {}  # hash of the description of each group
        self._results: dict[str, survey.SurveyResult] = {}
        self._plans: dict[str, tuple[Group, Plan]] = {}
        self._planning, self._next_refresh = Lock(), 0.0
        self.observed: float | None = None  # last time at which the cluster answered
        self.problem: str | None = "the first answer is pending"
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
        """Read the groups once. If the cluster does not answer, this is recorded as its state."""
        now, problem = self._clock(), None
        is_complete = now >= self._next_refresh
        try:
            # A new connection has no errors of the past.
            described, imported = self._read(self._connect(), is_complete=is_complete)
            results = {} if is_complete else dict(self._results)
            for one in imported:
                name = self._renamed("group", one.id or "")
                results[name] = self._survey(name, one)
        except KassayError as error:
            problem = str(error)
        else:
            with self._store.transaction():
                self._record(described, results, now)
            # A hash takes less memory. Sets of one content rarely differ in order: the group is
            # then only read once more.
            self._described = {name: hash(repr(one)) for name, one in described.items()}
            self._results, self.observed = results, now
            if is_complete:
                self._next_refresh = now + _SECONDS_TO_REFRESH
        if (problem is None) != (self.problem is None):
            with self._store.transaction():
                kind = "cluster-answers" if problem is None else "cluster-away"
                self._store.add_event(now, None, kind, problem=problem)
            self._on_change(
                problem or f"the cluster answers: {count_of(len(self._results), 'group')}"
            )
        self.problem = problem
        self._store.remove_old(now)

    def _read(
        self, cluster: LiveCluster, *, is_complete: bool
    ) -> tuple[Described, Iterable[ImportedGroup]]:
        """Describe all consumer groups, and read those that changed, or all groups."""
        names = cluster.group_ids()
        described = cluster.describe(names) if names else {}
        changed = [one for one in names if self._described.get(one) != hash(repr(described[one]))]
        if not (is_complete or changed):
            return described, []
        selected = () if is_complete else changed
        return described, import_live(cluster, selected, ImportOptions())

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
                self._record_change(name, result.group, now)
            is_moving = isinstance(answer, LiveGroup) and answer.status.is_rebalancing
            if is_moving and self.observed is not None and self.problem is None:
                self._store.add_total("not_stable_seconds", name, now - self.observed)

    def _record_change(self, name: str, group: Group, now: float) -> None:
        before = self._stable.get(name)
        self._stable[name] = group  # also if it is equal, so that one copy is in memory
        if before == group:
            return
        self._store.put_document(name, group_document(group))
        found = None if before is None else find_rebalance(before, group)
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
