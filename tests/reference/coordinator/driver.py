"""Driver of a classic coordinator that records the responses."""

from __future__ import annotations

from collections.abc import Hashable

from kassay.reference.coordinator.classic_protocol_coordinator import ClassicCoordinator, GroupState
from kassay.reference.coordinator.runtime import Clock, CoordinatorConfig, Log
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.group_messages import (
    ConsumerSubscription,
    ErrorCode,
    JoinRequest,
    JoinResponse,
    SupportedProtocol,
    SyncRequest,
    SyncResponse,
)

DELAY, SESSION, REBALANCE = 3_000, 10_000, 60_000


def offers(*names: str, topics: tuple[str, ...] = ("t",)) -> tuple[SupportedProtocol, ...]:
    return tuple(
        SupportedProtocol(name, ConsumerSubscription(topics)) for name in names or ("range",)
    )


class RecordingLog(Log):
    """Log that keeps every record that was written."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[object] = []

    def append(self, key: Hashable, value: object) -> None:
        super().append(key, value)
        self.history.append(value)


class Driver:
    """Sends requests and records the responses per client."""

    def __init__(self, *, config: CoordinatorConfig | None = None) -> None:
        self.clock = Clock()
        self.log = RecordingLog()
        self.config = config or CoordinatorConfig(initial_rebalance_delay=DELAY)
        self.states: list[GroupState] = []
        self.ids: dict[str, str] = {}
        self.joined: dict[str, list[JoinResponse]] = {}
        self.synced: dict[str, list[SyncResponse]] = {}
        self.coordinator = self._create_coordinator()

    def _create_coordinator(self) -> ClassicCoordinator:
        return ClassicCoordinator(
            "g",
            self.clock,
            self.log,
            config=self.config,
            on_state_change=lambda _, state: self.states.append(state),
        )

    @property
    def group(self):
        return self.coordinator.group

    def run(self, milliseconds: int) -> None:
        self.clock.run(self.clock.now + milliseconds)

    def join(self, client: str, *names: str, **fields: object) -> JoinResponse | None:
        """Send a JoinGroup, with a new id if necessary; return the response if there is one."""
        responses = self.joined.setdefault(client, [])
        before = len(responses)
        fields = {"session_timeout": SESSION, "rebalance_timeout": REBALANCE} | fields
        fields.setdefault("offers", offers(*names))
        for _ in range(2):
            request = JoinRequest(self.ids.get(client, ""), client=client, **fields)
            self.coordinator.join(request, responses.append)
            if not responses[before:] or responses[-1].code is not ErrorCode.MEMBER_ID_REQUIRED:
                break
            self.ids[client] = responses[-1].member_id
            before = len(responses)
        if len(responses) == before:
            return None
        if responses[-1].code is ErrorCode.NONE:
            self.ids[client] = responses[-1].member_id
        return responses[-1]

    def join_all(self, *clients: str) -> None:
        """Join clients, and let the initial delay end."""
        for client in clients:
            self.join(client)
        self.run(2 * DELAY if self.group.generation == 0 else 0)
        self.update_ids()

    def update_ids(self) -> None:
        """Update the member ids from the last JoinGroup responses."""
        for client, responses in self.joined.items():
            if responses and responses[-1].code is ErrorCode.NONE:
                self.ids[client] = responses[-1].member_id

    def sync(self, client: str, generation: int | None = None, **fields: object):
        responses = self.synced.setdefault(client, [])
        before = len(responses)
        generation = self.group.generation if generation is None else generation
        self.coordinator.sync(SyncRequest(self.ids[client], generation, **fields), responses.append)
        return responses[-1] if len(responses) > before else None

    def heartbeat(
        self, client: str, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        generation = self.group.generation if generation is None else generation
        return self.coordinator.heartbeat(self.ids[client], generation, instance)

    def leave(self, client: str) -> ErrorCode:
        return self.coordinator.leave(self.ids[client])

    def assignments(self) -> dict[str, Partitions]:
        """Assign partition n of t to the nth member."""
        return {
            member: Partitions.of([("t", number)])
            for number, member in enumerate(self.group.members)
        }

    @property
    def leader(self) -> str:
        return next(client for client, member in self.ids.items() if member == self.group.leader)

    @property
    def follower(self) -> str:
        """The first member that is not the leader."""
        return next(client for client in self.ids if client != self.leader)

    def run_until_stable(self, *clients: str) -> None:
        """Join and sync clients until the group is stable."""
        self.join_all(*clients)
        for client in clients:
            if client != self.leader:
                self.sync(client)
        self.sync(self.leader, assignments=self.assignments())

    def reload(self) -> None:
        """Replace the coordinator by one that loads the log."""
        self.coordinator.unload()
        self.coordinator = self._create_coordinator()
