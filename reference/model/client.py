"""Client of a group member: client id, host and library.

No assignor reads these values. The levels about hosts read the host.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Client id, host and library of a member. None means that the source lacks the value.

    Parameters
    ----------
    id
        ``client.id``.
    host
        Host or pod on which the member runs; by default the address from which the client
        connects, as the broker reports it.
    library
        Name of the client library, if it can be recognised.
    """

    id: str | None = None
    host: str | None = None
    library: str | None = None


NO_CLIENT = Client()
