"""A group, driven request by request, with the answers kept."""

from __future__ import annotations

from kassay.reference.coordinator import (
    ClassicCoordinator,
    Clock,
    CoordinatorConfig,
    GroupState,
    Log,
)
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.protocol.consumer_protocol import ConsumerSubscription
from kassay.reference.protocol.messages import (
    ErrorCode,
    JoinRequest,
    JoinResponse,
    MemberIdentity,
    SupportedProtocol,
    SyncRequest,
    SyncResponse,
)

DELAY, SESSION, REBALANCE = 3_000, 10_000, 60_000


def offers(*names: str, topics: tuple[str, ...] = ("t",)) -> tuple[SupportedProtocol, ...]:
    return tuple(
        SupportedProtocol(name, ConsumerSubscription(topics)) for name in names or ("range",)
    )


class Driver:
    """Sends requests and keeps what comes back, by client."""

    def __init__(self, *, config: CoordinatorConfig | None = None) -> None:
        self.clock = Clock()
        self.log = Log(history=True)
        self.config = config or CoordinatorConfig(initial_rebalance_delay=DELAY)
        self.states: list[GroupState] = []
        self.ids: dict[str, str] = {}
        self.joined: dict[str, list[JoinResponse]] = {}
        self.synced: dict[str, list[SyncResponse]] = {}
        self.coordinator = ClassicCoordinator(
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
        """Send a JoinGroup, ask for an id first if there is none; the answer if there is one."""
        answers = self.joined.setdefault(client, [])
        before = len(answers)
        fields = {"session_timeout": SESSION, "rebalance_timeout": REBALANCE} | fields
        fields.setdefault("offers", offers(*names))
        for _ in range(2):
            request = JoinRequest(self.ids.get(client, ""), client=client, **fields)
            self.coordinator.join(request, answers.append)
            if not answers[before:] or answers[-1].code is not ErrorCode.MEMBER_ID_REQUIRED:
                break
            self.ids[client] = answers[-1].member_id
            before = len(answers)
        found = answers[before:]
        if found and found[-1].code is ErrorCode.NONE:
            self.ids[client] = found[-1].member_id
        return found[-1] if found else None

    def learn_ids(self) -> None:
        """Take over the ids that came with answers to static members' JoinGroups."""
        for client, answers in self.joined.items():
            if answers and answers[-1].code is ErrorCode.NONE:
                self.ids[client] = answers[-1].member_id

    def sync(self, client: str, generation: int | None = None, **fields: object):
        answers = self.synced.setdefault(client, [])
        before = len(answers)
        number = self.group.generation if generation is None else generation
        self.coordinator.sync(SyncRequest(self.ids[client], number, **fields), answers.append)
        return answers[-1] if len(answers) > before else None

    def beat(
        self, client: str, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        number = self.group.generation if generation is None else generation
        return self.coordinator.heartbeat(self.ids[client], number, instance)

    def leave(self, client: str) -> ErrorCode:
        return self.coordinator.leave(MemberIdentity(self.ids[client]))[0]

    def lead(self) -> dict[str, Partitions]:
        """Give partition n of t to the nth member, as the leader would."""
        return {
            member: Partitions.of([("t", number)])
            for number, member in enumerate(self.group.members)
        }

    @property
    def leader(self) -> str:
        return next(client for client, one in self.ids.items() if one == self.group.leader)

    def settle(self, *clients: str) -> None:
        """Have clients join and sync until the group is stable."""
        for client in clients:
            self.join(client)
        self.run(2 * DELAY if self.group.generation == 0 else 0)
        self.learn_ids()
        for client in clients:
            if client != self.leader:
                self.sync(client)
        self.sync(self.leader, assignments=self.lead())

    def reload(self) -> None:
        """Lose the coordinator and let another one take over."""
        self.coordinator.unload()
        self.coordinator = ClassicCoordinator.load(
            "g",
            self.clock,
            self.log,
            config=self.config,
            on_state_change=lambda _, state: self.states.append(state),
        )
