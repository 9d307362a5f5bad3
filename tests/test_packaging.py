"""Files for containers, clusters and pipelines name commands, options and files that exist."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from kassay.experiments.cli import COMMANDS, app
from kassay.experiments.cli.commands.survey import _parse_condition

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PATTERNS = (".github/**/*.yml", "deploy/kubernetes/*.yaml", "action.yml", ".pre-commit-config.yaml")
FILES = {path: path.read_text("utf-8") for pattern in PATTERNS for path in ROOT.glob(pattern)}
COMMAND = re.compile(rf"(?m)(?:^|\s)kassay((?: (?:{'|'.join(COMMANDS)}) )[^\n`]*)")


def values(node: Any, key: str) -> Iterator[Any]:
    """Find all values of a key, at any depth."""
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == key)
    for one in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from values(one, key)


def parse(arguments: list[str]) -> dict[str, Any]:
    """Parse a command line without running the command; return the options of the command."""
    table = typer.main.get_command(app)
    with table.make_context("kassay", list(arguments)) as context:
        name, command, rest = table.resolve_command(context, list(arguments))
        with command.make_context(name, rest, parent=context) as parsed:
            return dict(parsed.params)


MANIFESTS = [
    one
    for path, text in FILES.items()
    if path.parent.name == "kubernetes"
    for one in yaml.safe_load_all(text)
]
PODS = [one for one in values(MANIFESTS, "spec") if "containers" in one]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_yaml_and_their_commands_have_valid_options(path):
    assert all(yaml.safe_load_all(FILES[path]))
    commands = COMMAND.findall(FILES[path])
    assert commands or path.name not in {"action.yml", "release.yml", "bug.yml"}
    for line in commands:
        parse(shlex.split(line))


def test_an_option_that_does_not_exist_is_found():
    with pytest.raises(Exception, match="No such option"):
        parse(["survey", "--no-such-option"])


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["args"][0])
def test_pods_have_valid_arguments_no_rights_and_the_user_of_the_image(pod):
    [container] = pod["containers"]
    parsed = parse(container["args"])
    assert [_parse_condition(one) for one in parsed.get("fail_on") or ()] or "listen" in parsed
    assert container["image"] == f"kassay:{PROJECT['version']}"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    user = pod["securityContext"]["runAsUser"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert f"\nUSER {user}:{user}\n" in DOCKERFILE
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_the_image_copies_files_that_exist_and_starts_the_watcher():
    default = json.loads(re.findall(r"(?m)^CMD (\[.*\])$", DOCKERFILE)[-1])
    port = parse([*default, "broker:9092"])["listen"].rpartition(":")[2]
    assert f"EXPOSE {port}\n" in DOCKERFILE
    assert f"ARG VERSION={PROJECT['version']}\n" in DOCKERFILE
    copied = " ".join(re.findall(r"(?m)^COPY (?!--from)(.+) \S+$", DOCKERFILE)).split()
    assert all((ROOT / name).exists() for name in copied)
    assert {f"!{name}" for name in copied} <= set((ROOT / ".dockerignore").read_text().split())


def test_the_core_has_few_dependencies_and_all_extras_are_in_the_extra_all():
    assert len(PROJECT["dependencies"]) <= 10
    assert PROJECT["optional-dependencies"]["all"] == ["kassay[live,plots,spark]"]
