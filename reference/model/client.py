"""Client of a member, as a cluster reports it. No assignor reads it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Client of a member. A value is None if the source does not contain it.

    Parameters
    ----------
    id
        ``client.id``.
    host
        Address from which the client connects, as the broker reports it.
    library
        Name of the client library, if it can be recognised.
    """

    id: str | None = None
    host: str | None = None
    library: str | None = None


NO_CLIENT = Client()
