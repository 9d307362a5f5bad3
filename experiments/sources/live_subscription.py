"""What a consumer of the classic protocol told its group when it joined."""

import struct
from dataclasses import dataclass

from experiments.sources.errors import SourceError

_RACK_SINCE = 3


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription, as the broker keeps it.

    Parameters
    ----------
    version
        Of the form it is written in, 0 to 3 so far.
    topics
        In the order sent.
    rack
        ``client.rack``, where given; sent since version 3.
    """

    version: int
    topics: tuple[str, ...]
    rack: str | None = None


def read_subscription(data: bytes, *, where: str) -> Subscription:
    r"""Read the bytes of a ``ConsumerProtocolSubscription``.

    Fields of versions yet to come stand behind the known ones and are passed over.

    Raises
    ------
    SourceError
        If the bytes end early or lengths are not possible.

    Examples
    --------
    >>> read_subscription(b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", where="member 'm'")
    Subscription(version=0, topics=('t',), rack=None)
    """
    reader = _Reader(data, where)
    version = reader.int16()
    if version < 0:
        raise SourceError(f"{where}: not a version of a subscription: {version}")
    topics = tuple(reader.text() for _ in range(reader.count()))
    reader.skip(max(0, reader.int32()))  # user data
    if version < _RACK_SINCE:
        return Subscription(version, topics)
    for _ in range(reader.count()):  # what it owned when it joined: not what it has now
        reader.text()
        reader.skip(4 * reader.count())
    reader.int32()  # the generation of that
    return Subscription(_RACK_SINCE, topics, reader.optional_text())


class _Reader:
    """Takes big-endian fields off the front of some bytes."""

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._at = 0
        self._where = where

    def int16(self) -> int:
        return int(struct.unpack(">h", self.skip(2))[0])

    def int32(self) -> int:
        return int(struct.unpack(">i", self.skip(4))[0])

    def count(self) -> int:
        count = self.int32()
        if count < 0:
            raise SourceError(f"{self._where}: the subscription holds a list of {count} entries")
        return count

    def optional_text(self) -> str | None:
        length = self.int16()
        if length < 0:
            return None
        try:
            return self.skip(length).decode("utf-8")
        except UnicodeDecodeError:
            raise SourceError(f"{self._where}: the subscription holds no UTF-8") from None

    def text(self) -> str:
        text = self.optional_text()
        if text is None:
            raise SourceError(f"{self._where}: the subscription lacks the name of a topic")
        return text

    def skip(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._data):
            raise SourceError(f"{self._where}: the subscription is cut at {len(self._data)} bytes")
        taken, self._at = self._data[self._at : end], end
        return taken
