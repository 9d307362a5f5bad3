"""Parse YAML and JSON configuration files, and keep the line of every value for errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import yaml

from kassay.reference.documents.files import format_value
from kassay.reference.model.errors import InputError

T = TypeVar("T")
MAX_INTEGER = 2**31 - 1
"""Default maximum of integers: Java's maximum ``int``."""


@dataclass(frozen=True, slots=True)
class ConfigNode:
    """Value of a configuration file, with its file, line and path."""

    value: object
    where: str
    path: str

    def fail(self, problem: str) -> NoReturn:
        """Raise an InputError that states the position of the value and the problem."""
        raise InputError(f"{self.where}: {self.path or 'the document'}: {problem}")

    def items(self) -> dict[str, "ConfigNode"]:
        """Return the value if it is a mapping. Otherwise raise InputError."""
        return self._expect(dict, "a mapping")

    def elements(self) -> list["ConfigNode"]:
        """Return the value if it is a list. Otherwise raise InputError."""
        return self._expect(list, "a list")

    def text(self) -> str:
        """Return the value if it is a string. Otherwise raise InputError."""
        return self._expect(str, "a string")

    def flag(self) -> bool:
        """Return the value if it is a boolean. Otherwise raise InputError."""
        return self._expect(bool, "true or false")

    def integer(self, minimum: int = 0, maximum: int = MAX_INTEGER) -> int:
        """Return the value if it is an integer within the limits. Otherwise raise InputError."""
        value = self._expect(int, "an integer")
        if value < minimum:
            self.fail(f"must be at least {minimum}, got {value}")
        if value > maximum:
            self.fail(f"must be at most {maximum}, got {value}")
        return value

    def only(self, *known: str) -> dict[str, "ConfigNode"]:
        """Return the value if it is a mapping without unknown keys. Otherwise raise InputError."""
        items = self.items()
        for key, place in items.items():
            if key not in known:
                place.fail(f"unknown key {key!r}, expected one of {', '.join(map(repr, known))}")
        return items

    def _expect(self, kind: type[T], expected: str) -> T:
        # A boolean is no integer.
        if not isinstance(self.value, kind) or (kind is not bool and isinstance(self.value, bool)):
            names: dict[type, str] = {dict: "a mapping", list: "a list"}
            shown = names.get(type(self.value)) or format_value(self.value)
            self.fail(f"expected {expected}, got {shown}")
        return self.value


def read_nodes(text: str, name: str) -> ConfigNode:
    """Parse a configuration file in YAML or JSON. A key that occurs twice is an error."""
    if text.lstrip().startswith("{"):
        # JSON allows tabs between values, YAML does not; JSON strings contain no tabs.
        text = text.replace("\t", " ")
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise InputError(f"{name}:1: the file is empty; expected YAML or JSON")
            return _place(loader, node, name, "")
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise InputError(f"{name}:{line}: not valid YAML or JSON: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{name}:1: not valid YAML or JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{name}:1: the document is nested too deeply; flatten it") from None


def _place(loader: yaml.SafeLoader, node: yaml.Node, name: str, path: str) -> ConfigNode:
    where = f"{name}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        table: dict[str, ConfigNode] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if not isinstance(key, str):
                line = key_node.start_mark.line + 1
                raise InputError(f"{name}:{line}: a key must be a string, got a list or mapping")
            place = _place(loader, value_node, name, f"{path}.{key}" if path else key)
            if key in table:
                place.fail("the key is repeated")
            table[key] = place
        return ConfigNode(table, where, path)
    if isinstance(node, yaml.SequenceNode):
        elements = [
            _place(loader, element, name, f"{path}[{index}]")
            for index, element in enumerate(node.value)
        ]
        return ConfigNode(elements, where, path)
    try:
        return ConfigNode(loader.construct_object(node), where, path)
    except ValueError as error:
        raise InputError(f"{where}: {path}: {error}") from None


def format_choices(table: Mapping[str, object]) -> str:
    """Return the keys of a mapping as text, separated by commas, for error messages."""
    return ", ".join(map(repr, table))
