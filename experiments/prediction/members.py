"""Members of a group as simulated consumers: their names, plans, and new member ids."""

import base64
import random
from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from kassay.experiments.simulation.script import MemberPlan
from kassay.experiments.simulation.simulation import InitialGroup, InitialMember
from kassay.reference.model.assignment import current_partitions
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import Partitions

_LIBRDKAFKA = "librdkafka"


def planned_members(group: Group) -> tuple[list[MemberPlan], InitialGroup]:
    """Return the members of a group as plans of a script, and their current partitions.

    The name of a member is its instance id, its client id if no other member has it, or its
    member id.
    """
    ids = Counter(member.client.id for member in group.members)
    owned = current_partitions(group)
    plans, members = [], []
    for member in group.members:
        is_unique = member.client.id and ids[member.client.id] == 1
        client = member.instance_id or (member.client.id if is_unique else None) or member.id
        plans.append(
            MemberPlan(
                id=client,
                topics=member.subscription,
                static=member.instance_id is not None,
                rack=member.rack,
                sends_user_data=member.client.library == _LIBRDKAFKA,
            )
        )
        partitions = Partitions.of(owned.get(member.id, ()))
        members.append(InitialMember(client=client, id=member.id, owned=partitions))
    generation = max([1, *(member.generation for member in group.members)])
    return plans, InitialGroup(generation=generation, members=tuple(members))


def client_ids(group: Group) -> dict[str, str]:
    """Return the client id of each planned member; members can have equal client ids."""
    plans, _ = planned_members(group)
    return {
        plan.id: member.client.id or plan.id
        for plan, member in zip(plans, group.members, strict=True)
    }


class RandomIds:
    """Random ids of joining members, as clients and brokers create them."""

    def __init__(self, draw: random.Random, clients: Mapping[str, str]) -> None:
        self._draw = draw
        self._clients = clients

    def classic(self, name: str) -> str:
        """Create an id of the classic protocol: the client id or instance id, and a UUID."""
        return f"{self._clients.get(name, name)}-{UUID(int=self._draw.getrandbits(128), version=4)}"

    def consumer(self, _name: str) -> str:
        """Create an id of the consumer protocol: a UUID in Kafka's base64 form."""
        while True:
            value = UUID(int=self._draw.getrandbits(128), version=4).bytes
            text = base64.urlsafe_b64encode(value).decode().rstrip("=")
            if not text.startswith("-"):
                return text
