"""Output files are replaced only when their new content is complete."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kassay.reference.documents.files import replacing_file, write_text


def test_a_file_is_replaced_and_no_other_file_remains(tmp_path: Path) -> None:
    file = tmp_path / "new" / "plan.json"
    write_text(file, "old\n")
    write_text(file, "täglich\n")
    assert file.read_bytes() == "täglich\n".encode()
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), MemoryError()])
def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path, error: Exception) -> None:
    file = tmp_path / "plan.json"
    write_text(file, "old\n")

    def write() -> None:
        with replacing_file(file) as stream:
            stream.write(b"half of the new con")
            raise error

    with pytest.raises(type(error)) as raised:
        write()
    assert file.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [file]
    if isinstance(raised.value, OSError):
        assert raised.value.filename == str(file)
        assert raised.value.errno == errno.ENOSPC


def test_a_full_disk_at_the_flush_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "plan.json"
    write_text(file, "old\n")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_text(file, "new\n")
    assert raised.value.filename == str(file)
    assert file.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [file]


_SLOW_WRITER = """
import sys, time
from pathlib import Path
from kassay.reference.documents.files import replacing_file
with replacing_file(Path(sys.argv[1])) as stream:
    stream.write(b"half" * 100_000)
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(("number", "rest"), [(signal.SIGINT, 0), (signal.SIGKILL, 1)])
def test_an_interruption_or_a_crash_leaves_the_old_file(
    tmp_path: Path, number: signal.Signals, rest: int
) -> None:
    file = tmp_path / "plan.json"
    write_text(file, "old\n")
    command = [sys.executable, "-c", _SLOW_WRITER, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        writer.send_signal(number)
    assert file.read_text() == "old\n"
    # A killed process cannot remove its temporary file.
    assert len(list(tmp_path.iterdir())) == 1 + rest


def test_permissions_and_symbolic_links_are_kept(tmp_path: Path) -> None:
    file, link = tmp_path / "data" / "plan.json", tmp_path / "link.json"
    write_text(file, "old\n")
    file.chmod(0o640)
    link.symlink_to(file)
    write_text(link, "new\n")
    assert link.is_symlink()
    assert file.read_text() == "new\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_pipe_receives_the_text(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "text\n")
        time.sleep(0)
        assert os.read(reader, 100) == b"text\n"
    finally:
        os.close(reader)


def test_an_error_names_the_file_and_not_its_temporary_file(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file is no directory")
    with pytest.raises(OSError, match=str(blocked)) as raised:
        write_text(blocked / "plan.json", "text")
    assert ".new" not in str(raised.value)
