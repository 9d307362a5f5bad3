"""Client libraries, recognised by the client ids that they use by default."""

import re

_PATTERNS = (
    ("kafka-go", re.compile(r".*\(github\.com/segmentio/kafka-go\)")),
    ("franz-go", re.compile(r"kgo")),
    ("sarama", re.compile(r"sarama")),
    ("librdkafka", re.compile(r"rdkafka")),
    ("kafkajs", re.compile(r"kafkajs")),
    ("aiokafka", re.compile(r"aiokafka-\d.*")),
    ("kafka-python", re.compile(r"kafka-python-\d.*")),
    ("kafka-streams", re.compile(r".*-StreamThread-\d+(-restore)?-consumer")),
    ("java", re.compile(r"consumer-(.+-)?\d+")),
)
LIBRARIES = frozenset(name for name, _ in _PATTERNS)
_UUID_SUFFIX = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def recognise_library(client_id: str | None, *, member_id: str | None = None) -> str | None:
    """Return the name of the library with this default client id, or None if no library has it.

    A member id of the classic protocol is the client id and a UUID, so it replaces a client id
    that the source does not show. An application that sets ``client.id`` is not recognised.

    Examples
    --------
    >>> recognise_library("consumer-orders-1"), recognise_library("rdkafka")
    ('java', 'librdkafka')
    >>> recognise_library("billing") is None
    True
    """
    if client_id is None and member_id is not None and _UUID_SUFFIX.search(member_id):
        client_id = _UUID_SUFFIX.sub("", member_id)
    if client_id is None:
        return None
    return next((name for name, form in _PATTERNS if form.fullmatch(client_id)), None)
