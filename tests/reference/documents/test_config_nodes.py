"""Configuration files with positions."""

import pytest

from kassay.reference.documents.config_nodes import ConfigNode, read_nodes
from kassay.reference.model.errors import InputError
from tests.stored_cases import stored_cases

TEXT = "name: x\nflag: true\ncount: 7\nlist:\n  - 1\n  - {a: b}\n"


def node(text: str, *path: str) -> ConfigNode:
    found = read_nodes(text, "f.yaml")
    for key in path:
        found = found.items()[key]
    return found


def test_values_of_a_configuration_file_have_a_line_and_a_path() -> None:
    root = read_nodes(TEXT, "f.yaml")
    items = root.only("name", "flag", "count", "list")
    assert (items["name"].text(), items["flag"].flag(), items["count"].integer()) == ("x", True, 7)
    last = items["list"].elements()[1].items()["a"]
    assert (last.value, last.where, last.path) == ("b", "f.yaml:6", "list[1].a")


def test_json_with_tabs_is_accepted() -> None:
    assert node('{"a":\t1}', "a").integer() == 1


@pytest.mark.parametrize(
    ("text", "method", "message"),
    [
        ("a: 1", ConfigNode.text, "f.yaml:1: a: expected a string, got 1"),
        ("a: x", ConfigNode.integer, 'f.yaml:1: a: expected an integer, got "x"'),
        ("a: true", ConfigNode.integer, "expected an integer, got true"),
        ("a: -1", ConfigNode.integer, "must be at least 0, got -1"),
        ("a: 2147483648", ConfigNode.integer, "must be at most 2147483647, got 2147483648"),
        ("a: {}", ConfigNode.elements, "expected a list, got a mapping"),
        ("a: []", ConfigNode.items, "expected a mapping, got a list"),
        ("a: 0", ConfigNode.flag, "expected true or false, got 0"),
        ("a: {c: 1}", lambda value: value.only("b"), "a.c: unknown key 'c', expected one of 'b'"),
    ],
)
def test_values_of_another_type_are_errors(text, method, message: str) -> None:
    with pytest.raises(InputError) as caught:
        method(node(text, "a"))
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "message"), stored_cases("invalid_configuration_files"))
def test_invalid_files_are_errors_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_nodes(text, "f.yaml")
    assert message in str(caught.value)
