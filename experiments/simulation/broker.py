"""The broker as clients meet it: a coordinator that may be away for a while."""

from collections.abc import Callable, Iterable

from kassay.experiments.simulation.policies import GroupProtocol, Policy
from kassay.reference.coordinator.classic.coordinator import ClassicCoordinator
from kassay.reference.coordinator.classic.states import GroupState
from kassay.reference.coordinator.clock import Clock
from kassay.reference.coordinator.config import CoordinatorConfig
from kassay.reference.coordinator.consumer.coordinator import (
    ConsumerCoordinator,
    Heartbeat,
    HeartbeatResponse,
)
from kassay.reference.coordinator.log import Log
from kassay.reference.model.group import Topic
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.reference.protocol.messages import (
    ErrorCode,
    JoinReply,
    JoinRequest,
    JoinResponse,
    MemberIdentity,
    Offsets,
    SyncReply,
    SyncRequest,
    SyncResponse,
)

Watch = Callable[[int, GroupState], None]


class Broker:
    """Coordinates one group under one protocol, through fail-overs.

    Parameters
    ----------
    clock
        Virtual time.
    policy
        Decides the protocol; under the consumer protocol the broker runs its assignor.
    topics
        The topics' metadata now.
    config
        The broker's settings.
    new_id
        Makes the id of a new member of a classic group.
    watch
        Told of every change of state of a classic group.
    """

    def __init__(
        self,
        clock: Clock,
        policy: Policy,
        topics: Callable[[], Iterable[Topic]],
        *,
        config: CoordinatorConfig,
        new_id: Callable[[str], str],
        watch: Watch | None = None,
    ) -> None:
        self.log = Log()
        self._clock = clock
        self._policy = policy
        self._topics = topics
        self._config = config
        self._watch = watch
        self._new_id = new_id
        self.classic: ClassicCoordinator | None = None
        self.consumer: ConsumerCoordinator | None = None
        self.is_up = False
        self.take_over()

    def take_over(self) -> None:
        """Load the group from the log and coordinate it from now on."""
        self.is_up = True
        if self._policy.protocol is GroupProtocol.CONSUMER:
            self.consumer = ConsumerCoordinator.load(
                "group",
                self._clock,
                self._policy.assign,
                self._topics(),
                self.log,
                config=self._config,
            )
        else:
            self.classic = ClassicCoordinator.load(
                "group",
                self._clock,
                self.log,
                config=self._config,
                new_id=self._new_id,
                watch=self._watch,
            )

    def crash(self) -> None:
        """Lose the coordinator; whoever waits for an answer gets NOT_COORDINATOR."""
        self.is_up = False
        for coordinator in (self.classic, self.consumer):
            if coordinator is not None:
                coordinator.unload()
        self.classic = self.consumer = None

    def refresh(self) -> None:
        """Take in new metadata of the topics."""
        if self.consumer is not None:
            self.consumer.update_topics(self._topics())

    @property
    def generation(self) -> int:
        """Generation, or epoch, of the group; -1 while nobody coordinates it."""
        if self.classic is not None:
            return self.classic.group.generation
        return -1 if self.consumer is None else self.consumer.group.epoch

    @property
    def state(self) -> str:
        """State of the group, by the coordinator's name for it."""
        if self.classic is not None:
            return str(self.classic.group.state)
        return "no coordinator" if self.consumer is None else str(self.consumer.group.state)

    @property
    def member_ids(self) -> tuple[str, ...]:
        """Members, by the coordinator's account."""
        for coordinator in (self.classic, self.consumer):
            if coordinator is not None:
                return tuple(coordinator.group.members)
        return ()

    def committed(self, partition: TopicPartition) -> int:
        """Return the committed offset of a partition, 0 if there is none."""
        if self.classic is not None:
            return self.classic.offsets.get(partition, 0)
        return 0 if self.consumer is None else self.consumer.group.offsets.get(partition, 0)

    # ---- Requests -----------------------------------------------------------------

    def join(self, request: JoinRequest, reply: JoinReply) -> None:
        """JoinGroup."""
        if self.classic is None:
            reply(JoinResponse(ErrorCode.NOT_COORDINATOR, request.member_id))
        else:
            self.classic.join(request, reply)

    def sync(self, request: SyncRequest, reply: SyncReply) -> None:
        """SyncGroup."""
        if self.classic is None:
            reply(SyncResponse(ErrorCode.NOT_COORDINATOR))
        else:
            self.classic.sync(request, reply)

    def heartbeat(self, member_id: str, generation: int, instance_id: str | None) -> ErrorCode:
        """Heartbeat of the classic protocol."""
        if self.classic is None:
            return ErrorCode.NOT_COORDINATOR
        return self.classic.heartbeat(member_id, generation, instance_id)

    def leave(self, member_id: str, instance_id: str | None) -> None:
        """LeaveGroup."""
        if self.classic is not None:
            self.classic.leave(MemberIdentity(member_id, instance_id))

    def consumer_heartbeat(self, beat: Heartbeat) -> HeartbeatResponse:
        """Heartbeat of the consumer protocol."""
        if self.consumer is None:
            return HeartbeatResponse(ErrorCode.NOT_COORDINATOR)
        return self.consumer.heartbeat(beat)

    def commit(self, member_id: str, generation: int, offsets: Offsets) -> ErrorCode:
        """OffsetCommit, in a generation or an epoch."""
        if self.classic is not None:
            return self.classic.commit(member_id, generation, offsets)
        if self.consumer is not None:
            return self.consumer.commit(member_id, generation, offsets)
        return ErrorCode.NOT_COORDINATOR
