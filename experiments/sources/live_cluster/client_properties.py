"""Client properties as Kafka's own tools take them, for a client that is not Java's."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.sources.errors import SourceError, located
from kassay.experiments.sources.live_cluster.property_names import (
    RENAMED,
    UNCHANGED,
    WITHOUT_EFFECT,
)

Settings = Mapping[str, str]

_READ_TOGETHER = frozenset(
    {"ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.password", "ssl.truststore.type"}
)
_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>(?:\s+.*)?);\s*", re.DOTALL)
_JAAS_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"';]+))""")
_JAAS_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
    "Krb5LoginModule": {
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
        "serviceName": "sasl.kerberos.service.name",
    },
}
_KERBEROS_SWITCHES = frozenset({"useKeyTab", "storeKey", "doNotPrompt", "useTicketCache"})


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a file, and the line that it begins on."""

    key: str
    value: str
    line: int


def load_settings(path: Path) -> dict[str, str]:
    """Read a Java properties file and say the same in librdkafka's names.

    Raises
    ------
    SourceError
        If a property cannot be passed on; says file, line and name, never the value.
    """
    return to_settings(_read_properties(path), name=str(path))


def load_options(path: Path) -> dict[str, str]:
    """Read a Java properties file as options of Spark's Kafka source, which is Java itself.

    Raises
    ------
    SourceError
        If it is no text, or an escape is cut.
    """
    return {f"kafka.{key}": found.value for key, found in _read_properties(path).items()}


def _read_properties(path: Path) -> dict[str, Property]:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SourceError(f"{path}: not text in UTF-8") from None
    return parse_properties(text, name=str(path))


def parse_properties(text: str, *, name: str) -> dict[str, Property]:
    r"""Read Java properties, the last of a name winning.

    Raises
    ------
    SourceError
        If an escape is cut.

    Examples
    --------
    >>> parse_properties("# TLS\nsecurity.protocol = SSL\n", name="client.properties")
    {'security.protocol': Property(key='security.protocol', value='SSL', line=2)}
    """
    found: dict[str, Property] = {}
    for line, content in _logical_lines(text):
        key, value = _split(content)
        whole = Property(_unescape(key, name, line), _unescape(value, name, line), line)
        found[whole.key] = whole
    return found


def to_settings(properties: Mapping[str, Property], *, name: str) -> dict[str, str]:
    """Translate Java client properties; librdkafka's own names stay as they are.

    Raises
    ------
    SourceError
        If a property cannot be passed on.

    Examples
    --------
    >>> mechanism = Property("sasl.mechanism", "SCRAM-SHA-512", 1)
    >>> to_settings({"sasl.mechanism": mechanism}, name="client.properties")
    {'sasl.mechanisms': 'SCRAM-SHA-512'}
    """
    settings: dict[str, str] = {}
    for found in properties.values():
        if found.key in WITHOUT_EFFECT or found.key in _READ_TOGETHER:
            continue
        if found.key in UNCHANGED:
            settings[found.key] = found.value
        elif found.key in RENAMED:
            settings[RENAMED[found.key]] = found.value
        elif found.key in _SPECIAL:
            settings |= _SPECIAL[found.key](found, properties, name)
        else:
            raise located(name, found.line, f"property {found.key!r} cannot be passed on")
    return settings


def _endpoint(found: Property, properties: Mapping[str, Property], name: str) -> Settings:  # noqa: ARG001
    # Java turns the check of host names off by an empty value.
    return {found.key: found.value or "none"}


def _truststore(found: Property, properties: Mapping[str, Property], name: str) -> Settings:
    if _store_type(found, properties, "ssl.truststore.type") != "PEM":
        raise located(
            name,
            found.line,
            "only truststores in PEM can be read: export the certificates with "
            "keytool -exportcert -rfc, and give ssl.truststore.type=PEM",
        )
    return {"ssl.ca.location": found.value}


def _keystore(found: Property, properties: Mapping[str, Property], name: str) -> Settings:
    kind = _store_type(found, properties, "ssl.keystore.type")
    if kind == "PEM":
        return {"ssl.key.location": found.value, "ssl.certificate.location": found.value}
    if kind != "PKCS12":
        raise located(
            name,
            found.line,
            "only keystores in PEM or PKCS12 can be read: convert it with "
            "keytool -importkeystore -deststoretype PKCS12, and give ssl.keystore.type=PKCS12",
        )
    password = properties.get("ssl.keystore.password")
    settings = {"ssl.keystore.location": found.value}
    return settings if password is None else settings | {"ssl.keystore.password": password.value}


def _store_type(found: Property, properties: Mapping[str, Property], key: str) -> str:
    given = properties.get(key)
    if given is not None:
        return given.value.upper()
    suffix = Path(found.value).suffix.lower()
    return {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}.get(suffix, "JKS")


def _login(found: Property, properties: Mapping[str, Property], name: str) -> Settings:  # noqa: ARG001
    match = _JAAS.fullmatch(found.value)
    module = match["module"].rpartition(".")[2] if match else ""
    if match is None or module not in _JAAS_OPTIONS:
        known = ", ".join(_JAAS_OPTIONS)
        raise located(name, found.line, f"sasl.jaas.config is not the one entry of {known}")
    settings: dict[str, str] = {}
    rest = match["options"]
    while rest.strip():
        option = _JAAS_OPTION.match(rest)
        if option is None:
            raise located(name, found.line, f"sasl.jaas.config: not options of {module}")
        key, rest = option[1], rest[option.end() :]
        quoted = None if option[2] is None else re.sub(r"\\(.)", r"\1", option[2])
        value = next(text for text in (quoted, option[3], option[4]) if text is not None)
        if key in _JAAS_OPTIONS[module]:
            settings[_JAAS_OPTIONS[module][key]] = value
        elif module != "Krb5LoginModule" or key not in _KERBEROS_SWITCHES:
            raise located(
                name,
                found.line,
                f"sasl.jaas.config: option {key!r} of {module} cannot be passed on",
            )
    if module == "OAuthBearerLoginModule":
        settings["sasl.oauthbearer.method"] = "oidc"
    return settings


_SPECIAL: Mapping[str, Callable[[Property, Mapping[str, Property], str], Settings]] = {
    "sasl.jaas.config": _login,
    "ssl.endpoint.identification.algorithm": _endpoint,
    "ssl.keystore.location": _keystore,
    "ssl.truststore.location": _truststore,
}


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join lines that end in an odd number of backslashes with the next."""
    started, parts = 0, ""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        content = line.lstrip(" \t\f")
        if not parts and (not content or content[0] in "#!"):
            continue
        started = started if parts else number
        if (len(content) - len(content.rstrip("\\"))) % 2:
            parts += content[:-1]
            continue
        yield started, parts + content
        parts = ""
    if parts:
        yield started, parts


def _split(line: str) -> tuple[str, str]:
    """Split at the first separator that no backslash hides: ``=``, ``:`` or a blank."""
    match = re.match(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
    return (match[1], match[2]) if match else (line, "")


def _unescape(text: str, name: str, line: int) -> str:
    def whole(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise located(name, line, "a \\u escape is cut")
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", whole, text, flags=re.DOTALL)
