"""What a consumer of the classic protocol told its group when it joined."""

from dataclasses import dataclass

from kassay.experiments.sources.errors import SourceError
from kassay.reference.protocol.primitive_types import CorruptRecordError
from kassay.reference.protocol.record_codec import decode_message
from kassay.reference.protocol.record_schemas import SUBSCRIPTION


@dataclass(frozen=True, slots=True)
class JoinedSubscription:
    """A member's subscription, as the broker keeps it.

    Parameters
    ----------
    version
        Of the form it is written in, 0 to 3; later ones count as the latest known.
    topics
        In the order sent.
    rack
        ``client.rack``, where given; sent since version 3.
    """

    version: int
    topics: tuple[str, ...]
    rack: str | None = None


def read_subscription(data: bytes, *, where: str) -> JoinedSubscription:
    r"""Read the bytes of a ``ConsumerProtocolSubscription``.

    What the member owned when it joined is passed over: it is not what it has now.

    Raises
    ------
    SourceError
        If the bytes do not keep to the format.

    Examples
    --------
    >>> read_subscription(b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", where="member 'm'")
    JoinedSubscription(version=0, topics=('t',), rack=None)
    """
    try:
        fields = decode_message(SUBSCRIPTION, data)
    except CorruptRecordError as error:
        raise SourceError(f"{where}: its subscription cannot be read: {error}") from None
    return JoinedSubscription(
        version=min(fields["version"], SUBSCRIPTION.newest),
        topics=tuple(fields["topics"]),
        rack=fields["rack"],
    )
