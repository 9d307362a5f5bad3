"""Resolution of the jars: cache and error messages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import jars


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Provide an empty cache and an empty PATH."""
    jars.classpath.cache_clear()
    monkeypatch.setattr(jars, "CACHE", tmp_path / "jars")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    yield
    jars.classpath.cache_clear()


def _install_maven(tmp_path: Path, script: str) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.write_text(f"#!/bin/sh\n{script}\n")
    maven.chmod(0o755)


def test_missing_maven_is_an_error() -> None:
    with pytest.raises(jars.JarsUnavailableError, match="mvn is not on PATH"):
        jars.classpath("clients")


def test_missing_java_is_an_error() -> None:
    with pytest.raises(jars.JarsUnavailableError, match="no java on PATH"):
        jars.java()


def test_first_error_of_maven_is_reported(tmp_path: Path) -> None:
    _install_maven(tmp_path, "echo '[ERROR] no such artifact'; echo '[ERROR] -e'; exit 1")
    with pytest.raises(jars.JarsUnavailableError, match=r"broker jars .* no such artifact$"):
        jars.classpath("broker")


def test_unknown_class_path_is_rejected() -> None:
    with pytest.raises(ValueError, match="'server'"):
        jars.classpath("server")


def test_resolved_class_path_is_cached_while_its_jars_exist(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jar", tmp_path / "b.jar"
    first.touch()
    second.touch()
    _install_maven(
        tmp_path,
        f'for option; do case "$option" in -Dmdep.outputFile=*) '
        f'printf %s "{first}{os.pathsep}{second}" > "${{option#*=}}";; esac; done',
    )
    assert jars.classpath("tools") == (str(first), str(second))
    _install_maven(tmp_path, "exit 1")
    jars.classpath.cache_clear()
    assert jars.classpath("tools") == (str(first), str(second))
    jars.classpath.cache_clear()
    second.unlink()
    with pytest.raises(jars.JarsUnavailableError):
        jars.classpath("tools")
