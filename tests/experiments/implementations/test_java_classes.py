"""Java classes of users: interfaces, kinds of groups, patched classes, and failures."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kassay import Group, InputError
from kassay.experiments.cli.application import app
from kassay.experiments.implementations.assignor_names import (
    check_shown_names,
    complete_name,
    find_java_class,
    kind_of_assignor,
    shown_name,
    uses_cooperative_protocol,
)
from kassay.experiments.implementations.client_libraries import installations
from kassay.experiments.implementations.run_assignor import (
    DEPENDS_ON_THE_RUN,
    Ending,
    run_on_document,
    run_until_stable,
)
from kassay.reference.assignors import assign
from kassay.reference.documents.kind_documents import Kind, parse_kind_document
from tests.experiments.implementations.test_kind_assignors import RECORDED
from tests.installed_library import require_library
from tests.notation import group
from tests.stored_cases import java_source, stored_cases

RELEASES = {"broker": "kafka-broker@4.4.0", "clients": "kafka-clients@4.4.0"}
RELEASES |= {"streams": "kafka-streams@4.3.1", "connect": "kafka-connect@4.3.1"}
SOURCES = {
    "broker": "org/example/Mine",
    "clients": "org/example/Client",
    "streams": "org/example/Tasks",
    "connect": "org/apache/kafka/connect/runtime/distributed/Own",
}
GROUP = group("t:3 u:2", a="t u | t-0 t-1 t-2 @1", b="t u", c="t")

pytestmark = pytest.mark.libraries


def compile_java(release: str, name: str, source: str, target: Path) -> None:
    file = target.parent / "src" / f"{name}.java"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    jars = str(installations() / RELEASES[release] / "jars" / "*")
    command = ["javac", "-nowarn", "-proc:none", "-d", str(target), "-cp", jars, str(file)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the classes of all interfaces."""
    for release in RELEASES.values():
        require_library(release)
    target = tmp_path_factory.mktemp("java") / "classes"
    for release, name in SOURCES.items():
        compile_java(release, name, java_source(name), target)
    return target


def stable(name: str, start: Group = GROUP) -> tuple[Ending, str | None]:
    result = run_until_stable(start, name)
    return result.ending, result.detail


def test_classes_of_the_broker_and_the_client_give_the_answers_of_their_release(classes):
    for name, port in (("Mine", "uniform"), ("Client$Eager", "range")):
        result = run_until_stable(GROUP, f"class:org.example.{name}@{classes}")
        assert result.assignment == assign(GROUP, port)
    cooperative = f"class:org.example.Client@{classes}"
    assert uses_cooperative_protocol(cooperative)
    assert run_until_stable(GROUP, cooperative).rounds == 2


def test_classes_of_other_kinds_repeat_the_recorded_answers(classes):
    own = {
        "kafka-broker@4.4.0:share": "org.example.Mine$Share",
        "kafka-broker@4.4.0:streams-sticky": "org.example.Mine$Tasks",
        "kafka-streams@4.3.1:sticky": "org.example.Tasks",
        "kafka-connect@4.3.1:incremental": "org.apache.kafka.connect.runtime.distributed.Own",
    }
    found = set()
    for recorded in RECORDED:
        if recorded["assignor"] in own and recorded["answer"].get("failed") is None:
            name = f"class:{own[recorded['assignor']]}@{classes}"
            kind = Kind(recorded["problem"]["kind"])
            assert kind_of_assignor(name) is kind
            document = parse_kind_document(recorded["problem"], kind=kind)
            assert run_on_document(document, name).answer == recorded["answer"]
            found.add(recorded["assignor"])
    assert found == set(own)


@pytest.mark.parametrize(
    ("name", "ending", "detail"),
    [
        ("Crash", Ending.FAILED, "IllegalStateException: no idea"),
        ("Halt", Ending.FAILED, "(exit code 3)"),
        ("Nothing", Ending.FAILED, "the answer of the class is not usable"),
        ("Empty", Ending.INVALID, "t-0 is not assigned"),
        ("Needy", Ending.FAILED, "NoSuchMethodException"),
        ("Turns", Ending.FAILED, DEPENDS_ON_THE_RUN),
    ],
)
def test_failures_are_named(classes, name, ending, detail):
    found, text = stable(f"class:org.example.Mine${name}@{classes}")
    assert found is ending
    assert detail in text


def test_a_class_over_the_time_limit_does_not_terminate(classes):
    found = stable(f"class@2s:org.example.Mine$Hang@{classes}")
    assert found == (Ending.NONTERMINATING, "no assignment within 2 seconds")


def test_a_patched_class_precedes_that_of_the_release(classes, tmp_path):
    package = "org.apache.kafka.coordinator.group.assignor"
    source = (
        java_source(SOURCES["broker"])
        .replace("org.example", package)
        .replace("Mine", "UniformAssignor")
    )
    source = source.replace("new UniformAssignor()", "new RangeAssignor()")
    name = f"{package.replace('.', '/')}/UniformAssignor"
    compile_java("broker", name, source, tmp_path / "patch")
    patched = run_until_stable(GROUP, f"class:{package}.UniformAssignor@{tmp_path / 'patch'}")
    assert patched.assignment == assign(GROUP, "server-range")
    released = run_until_stable(GROUP, f"class:{package}.UniformAssignor@{classes}")
    assert released.assignment == assign(GROUP, "uniform")


def test_folders_stand_for_their_jars(classes, tmp_path):
    shutil.make_archive(str(tmp_path / "mine-1.0-SNAPSHOT"), "zip", classes)
    (tmp_path / "mine-1.0-SNAPSHOT.zip").rename(tmp_path / "mine-1.0-SNAPSHOT.jar")
    for path in (tmp_path, tmp_path / "mine-1.0-SNAPSHOT.jar"):
        found = find_java_class("org.example.Mine", [str(path)], version=None)
        assert found.library == "kafka-broker"


def test_relative_paths_are_resolved_and_results_show_the_alias(classes, monkeypatch):
    monkeypatch.chdir(classes.parent)
    name = complete_name("mine=class:org.example.Mine@classes")
    assert name == f"mine=class:org.example.Mine@{classes}"
    document = json.dumps({"topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]})
    for command in ("assign", "compare"):
        output = CliRunner().invoke(app, [command, "--assignor", name], input=document).stdout
        result = json.loads(output)
        assert result.get("comparisons", [result])[0]["assignor"] == "mine"


@pytest.mark.parametrize(("name", "message"), stored_cases("names_of_missing_classes"))
def test_names_that_do_not_work_are_input_errors(classes, name, message):
    with pytest.raises(InputError, match=message.replace("[", r"\[")):
        complete_name(name.format(classes))


def test_a_broken_class_file_is_an_input_error(tmp_path):
    require_library("kafka-broker@4.4.0")
    for content in (b"", b"\xca\xfe\xba\xbe\0\0\0\x3d\0\x09\x01\xff\xff"):
        (tmp_path / "Broken.class").write_bytes(content)
        with pytest.raises(InputError, match="cannot load class Broken; correct this: "):
            find_java_class("Broken", [str(tmp_path)], version=None)


def test_two_assignors_with_one_shown_name_need_an_alias():
    names = ["python:/a/mine.py:assign", "python:/b/mine.py:assign"]
    assert {shown_name(name) for name in names} == {"python:mine.py:assign"}
    with pytest.raises(InputError, match="give one an alias"):
        check_shown_names(names)
    check_shown_names([names[0], f"other={names[1]}"])
