"""Translate properties of Kafka's Java client to properties of librdkafka."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.sources.live_cluster import msk_iam
from kassay.reference.documents.files import error_at, read_data_file, read_text

Settings = Mapping[str, str]

IGNORED, TLS = "ignored", "TLS"
_TABLE = read_data_file(__package__, "client_properties.txt")
PROPERTIES = {java: name for java, name, _ in _TABLE}
"""Property of librdkafka, or `IGNORED`, by property of the Java client.

Properties of librdkafka are keys too. `IGNORED` are properties of producers and consumers, which
are common in shared files, and properties that belong to the locations of stores.
"""
KAFKA_PYTHON = {name: setting for _, name, setting in _TABLE if setting != "-"}
"""Setting of kafka-python, `TLS` or `IGNORED`, by the property of librdkafka."""
_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>(?:\s+.*)?);\s*", re.DOTALL)
_JAAS_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"';]+))""")
_JAAS_OPTIONS = {
    (module, option): name
    for module, option, name in read_data_file(__package__, "jaas_options.txt")
}
"""Property of librdkafka, or `IGNORED`, by login module and option of ``sasl.jaas.config``."""
_JAAS_MODULES = tuple(dict.fromkeys(module for module, _ in _JAAS_OPTIONS))
_EMPTY = {"ssl.endpoint.identification.algorithm": "none"}  # empty disables the check in Java
_HANDLER_KEY = ".callback.handler.class"
_HANDLER = re.compile(r".*\.(?:(IAM)\w+|OAuthBearerLogin)CallbackHandler")
_TRUSTSTORE_ERROR = (
    "only PEM truststores are supported: export the certificates with "
    "keytool -exportcert -rfc and set ssl.truststore.type=PEM"
)
_KEYSTORE_ERROR = (
    "only PEM and PKCS12 keystores are supported: convert it with "
    "keytool -importkeystore -deststoretype PKCS12 and set ssl.keystore.type=PKCS12"
)


@dataclass(frozen=True, slots=True)
class Property:
    """Value in a Java properties file, with its line number."""

    key: str
    value: str
    line: int


def load_librdkafka_settings(path: Path) -> dict[str, str]:
    """Convert a Java properties file to librdkafka properties, or raise InputError."""
    properties = parse_properties(read_text(path), name=str(path))
    for item in properties.values():
        is_file = item.key.startswith("ssl.") and item.key.endswith(".location")
        if is_file and not Path(item.value).is_file():
            message = f"{item.key}: no such file: {item.value}"
            raise error_at(str(path), item.line, message)
    return librdkafka_settings(properties, name=str(path))


def parse_properties(text: str, *, name: str) -> dict[str, Property]:
    """Parse a Java properties file. The last value of a repeated key is used."""
    properties: dict[str, Property] = {}
    for line, content in _logical_lines(text):
        key, value = _split(content)
        key = _unescape(key, name, line)
        properties[key] = Property(key, _unescape(value, name, line), line)
    return properties


def librdkafka_settings(properties: Mapping[str, Property], *, name: str) -> dict[str, str]:
    """Convert properties of Kafka's Java client to librdkafka properties.

    Error messages never contain the value of a property.
    """
    settings: dict[str, str] = {}
    # A handler of IAM replaces the mechanism.
    for item in sorted(properties.values(), key=lambda one: one.key.endswith(_HANDLER_KEY)):
        settings |= _translated(item, properties, name)
    return settings


def _translated(item: Property, properties: Mapping[str, Property], name: str) -> Settings:
    translated = PROPERTIES.get(item.key)
    if translated is not None:
        value = item.value or _EMPTY.get(item.key, "")
        return {} if translated == IGNORED else {translated: value}
    if item.key == "sasl.jaas.config":
        return _jaas(item, name)
    if item.key == "ssl.keystore.location":
        return _keystore(item, properties, name)
    handler = _HANDLER.fullmatch(item.value) if item.key.endswith(_HANDLER_KEY) else None
    if handler is not None:
        return {"sasl.mechanisms": msk_iam.MECHANISM} if handler[1] else {}
    if item.key == "ssl.truststore.location":
        if _store_type(item, properties, "ssl.truststore.type") != "PEM":
            raise error_at(name, item.line, _TRUSTSTORE_ERROR)
        return {"ssl.ca.location": item.value}
    raise error_at(name, item.line, f"kassay does not support the property {item.key!r}; remove it")


def _keystore(item: Property, properties: Mapping[str, Property], name: str) -> Settings:
    kind = _store_type(item, properties, "ssl.keystore.type")
    if kind == "PEM":
        return {"ssl.key.location": item.value, "ssl.certificate.location": item.value}
    if kind != "PKCS12":
        raise error_at(name, item.line, _KEYSTORE_ERROR)
    password = properties.get("ssl.keystore.password")
    settings = {"ssl.keystore.location": item.value}
    return settings if password is None else settings | {"ssl.keystore.password": password.value}


def _store_type(item: Property, properties: Mapping[str, Property], key: str) -> str:
    given = properties.get(key)
    if given is not None:
        return given.value.upper()
    suffix = Path(item.value).suffix.lower()
    return {".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}.get(suffix, "JKS")


def _jaas(item: Property, name: str) -> Settings:
    match = _JAAS.fullmatch(item.value)
    module = match["module"].rpartition(".")[2] if match else ""
    if match is None or module not in _JAAS_MODULES:
        known = ", ".join(_JAAS_MODULES)
        raise error_at(name, item.line, f"sasl.jaas.config must have one entry, of {known}")
    settings: dict[str, str] = {}
    rest = match["options"]
    while rest.strip():
        option = _JAAS_OPTION.match(rest)
        if option is None:
            raise error_at(name, item.line, f"sasl.jaas.config: invalid options of {module}")
        key, rest = option[1], rest[option.end() :]
        quoted = None if option[2] is None else re.sub(r"\\(.)", r"\1", option[2])
        value = next(text for text in (quoted, option[3], option[4]) if text is not None)
        if (module, key) not in _JAAS_OPTIONS:
            message = f"sasl.jaas.config: option {key!r} of {module} is not supported"
            raise error_at(name, item.line, message)
        if (translated := _JAAS_OPTIONS[module, key]) != IGNORED:
            settings[translated] = value
    if module == "OAuthBearerLoginModule":
        settings["sasl.oauthbearer.method"] = "oidc"
    return settings


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    start, parts = 0, ""
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        content = line.lstrip(" \t\f")
        if not parts and (not content or content[0] in "#!"):
            continue
        start = start if parts else number
        if (len(content) - len(content.rstrip("\\"))) % 2:
            parts += content[:-1]
            continue
        yield start, parts + content
        parts = ""
    if parts:
        yield start, parts


def _split(line: str) -> tuple[str, str]:
    """Split a line at its first ``=``, ``:`` or space that is not escaped."""
    match = re.match(r"((?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)", line, re.DOTALL)
    return (match[1], match[2]) if match else (line, "")


def _unescape(text: str, name: str, line: int) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise error_at(name, line, "a \\u escape is incomplete")
        return {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", replacement, text, flags=re.DOTALL)
