"""Translate properties of librdkafka to settings of kafka-python."""

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kassay.reference.model.errors import InputError

_NAMES = {
    "broker.address.family": None,
    "client.id": "client_id",
    "connections.max.idle.ms": None,
    "metadata.max.age.ms": None,
    "reconnect.backoff.max.ms": None,
    "reconnect.backoff.ms": None,
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
    "security.protocol": "security_protocol",
    "socket.connection.setup.timeout.ms": None,
    "socket.keepalive.enable": None,
    "socket.receive.buffer.bytes": None,
    "socket.send.buffer.bytes": None,
    "socket.timeout.ms": None,
}
"""Setting of kafka-python by property; None for a property that is not necessary."""
_TLS = frozenset(
    {
        "enable.ssl.certificate.verification",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
    }
)
_UPPER = frozenset({"sasl.mechanisms", "security.protocol"})


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Translate properties of librdkafka. Raise InputError for a property without a translation.

    Examples
    --------
    >>> kafka_python_settings({"security.protocol": "sasl_plaintext", "sasl.username": "reader"})
    {'client_id': 'kassay', 'security_protocol': 'SASL_PLAINTEXT', 'sasl_plain_username': 'reader'}
    """
    settings: dict[str, Any] = {"client_id": "kassay"}
    for name, value in properties.items():
        if name not in _TLS and name not in _NAMES:
            raise InputError(f"kafka-python does not support the property {name!r}")
        translated = _NAMES.get(name)
        if translated is not None:
            settings[translated] = value.upper() if name in _UPPER else value
    if str(settings.get("security_protocol", "")).endswith("SSL"):
        settings["ssl_context"] = _tls_context(properties)
    return settings


def _tls_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    location, text = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    context = ssl.create_default_context(cafile=location, cadata=text)
    if properties.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with (
        _file(properties, "ssl.certificate") as certificate,
        _file(properties, "ssl.key") as key,
    ):
        if certificate is not None:
            context.load_cert_chain(certificate, key, properties.get("ssl.key.password"))
    return context


@contextmanager
def _file(properties: Mapping[str, str], name: str) -> Iterator[str | None]:
    """Yield the path of a certificate or key file. Write inline text to a private file."""
    text = properties.get(f"{name}.pem")
    if text is None:
        yield properties.get(f"{name}.location")
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "content.pem")
        path.touch(mode=0o600)
        path.write_text(text)
        yield str(path)
