"""Installation of client libraries with their drivers, in a directory of the user.

Each version of a library has its own directory, which is complete when it has its final name.
``KASSAY_IMPLEMENTATIONS`` selects the directory of all installations, by default
``kassay/implementations`` in the user's cache directory. Only `install` uses the network.

A *driver* is a program that calls the assignors of one version of a library. Its source is in
``drivers/RUNTIME``. It writes one line on standard output when it is ready. Then it reads one
JSON line per group, ``{"assignor": NAME, "group": GROUP_DOCUMENT}``, and writes one line: an
assignment document, or ``{"failed": EXCEPTION, "reason": TEXT}``. It ends when its standard input
ends, even during a call of an assignor.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from kassay.experiments.implementations.library_catalogue import (
    Library,
    LibraryAssignor,
    libraries,
    version_key,
)
from kassay.reference.model.errors import InputError, RunError

DRIVERS = Path(__file__).with_name("drivers")
_INSTALL_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Runtime:
    """Runtime of drivers, such as the JVM."""

    name: str
    programs: tuple[str, ...]  # required on PATH, in any order
    needs: str  # the required programs and their versions, for people
    # Installs a version of a library and its driver into an empty directory.
    install: Callable[[Library, str, Path], None]
    # Returns the command of the driver in this directory.
    command: Callable[[Library, Path], tuple[str, ...]]

    def missing_programs(self) -> list[str]:
        """Return the required programs that are not on PATH."""
        return [name for name in self.programs if _find_program(name) is None]


def run_step(
    command: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run one step of an installation. Raise RunError with the end of its output if it fails."""
    program = _find_program(command[0])
    if program is None:
        raise RunError(f"{command[0]!r} is required and not on PATH")
    try:
        done = subprocess.run(  # noqa: S603 - a command of this package
            [program, *command[1:]],
            cwd=directory,
            env=os.environ | dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{command[0]} did not end within {_INSTALL_SECONDS} seconds") from None
    if done.returncode != 0:
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-3:]
        raise RunError(f"{command[0]} failed: {' '.join(errors[:3])[:600]}")


def _find_program(name: str) -> str | None:
    """Return the path of a program. Java programs are first searched in JAVA_HOME."""
    home = os.environ.get("JAVA_HOME")
    if home and name in {"java", "javac"}:
        found = shutil.which(name, path=f"{home}/bin")
        if found is not None:
            return found
    return shutil.which(name)


_EQUAL_HASHES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
)
"""Options that give all objects without a method ``hashCode`` the same hash code.

Some task assignors iterate over hash sets of such objects. Without the options, an answer depends
on the previous requests of the process.
"""


def _install_jvm(library: Library, version: str, directory: Path) -> None:
    source = DRIVERS / "jvm"
    maven = ["mvn", "--quiet", "--batch-mode", f"--file={source / 'pom.xml'}"]
    maven += [f"-Dkafka.artifact={library.package}", f"-Dkafka.version={version}"]
    maven += ["dependency:copy-dependencies", f"-DoutputDirectory={directory / 'jars'}"]
    run_step(maven, directory=directory)
    names = ("Driver", "ListTypes", library.driver)
    classes = ["-d", str(directory / "classes"), *(str(source / f"{name}.java") for name in names)]
    javac = ["javac", "-nowarn", "-Xlint:none", "-classpath", str(directory / "jars" / "*")]
    run_step([*javac, "-sourcepath", str(source), *classes], directory=directory)


def _jvm_command(library: Library, directory: Path, own: Sequence[str] = ()) -> tuple[str, ...]:
    java = _find_program("java") or "java"
    options = ("-Xmx1g", "-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *_EQUAL_HASHES)
    classpath = os.pathsep.join((*own, f"{directory / 'classes'}", f"{directory / 'jars' / '*'}"))
    return (java, *options, "-classpath", classpath, "Driver", str(library.driver))


def _install_go(library: Library, version: str, directory: Path) -> None:
    source, build = DRIVERS / "go", directory / "source"
    build.mkdir()
    names = ["driver.go", f"{library.name.replace('-', '_')}.go"]
    if library.name == "sarama":
        has_cooperative = library.offers("cooperative-sticky", version)
        names.append("sarama_cooperative.go" if has_cooperative else "sarama_eager.go")
    for name in names:
        shutil.copy(source / name, build / name)
    (build / "go.mod").write_text("module kassay/driver\n", encoding="utf-8")
    environment = {"GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}
    for command in (
        ["go", "get", f"{library.package}@v{version}"],
        ["go", "build", "-o", str(directory / "driver"), "."],
    ):
        run_step(command, directory=build, environment=environment)


def _go_command(_library: Library, directory: Path) -> tuple[str, ...]:
    return (str(directory / "driver"),)


def _install_python(library: Library, version: str, directory: Path) -> None:
    packages = directory / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    requirement = f"{library.package}=={version}"
    run_step([*pip, "--target", str(packages), requirement], directory=directory)
    shutil.copy(DRIVERS / "python" / "driver.py", directory / "driver.py")


def _python_command(library: Library, directory: Path) -> tuple[str, ...]:
    """Return a command without the packages of kassay, with the hash seed 0 by default."""
    seed = os.environ.get("PYTHONHASHSEED", "0")
    settings = (f"PYTHONHASHSEED={seed}", f"PYTHONPATH={directory / 'packages'}")
    package = "kafka" if library.name == "kafka-python" else library.name
    python = (sys.executable, "-S", "-s")
    return ("env", *settings, *python, str(directory / "driver.py"), package)


def _install_node(library: Library, version: str, directory: Path) -> None:
    (directory / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--force"]
    run_step([*npm, f"{library.package}@{version}"], directory=directory)
    shutil.copy(DRIVERS / "node" / "driver.js", directory / "driver.js")


def _node_command(library: Library, directory: Path) -> tuple[str, ...]:
    return ("node", str(directory / "driver.js"), str(directory), library.package)


_UNUSED_FEATURES = {"ssl", "gssapi", "curl", "zstd", "zlib", "lz4-ext", "syslog"}
_SANITIZER_VARIABLE = "KASSAY_SANITIZER"


def _install_c(library: Library, version: str, directory: Path) -> None:
    """Build the static library, and two drivers: one has an address sanitizer."""
    built, earlier = directory / "library", directory.with_name(f"{library.name}@{version}")
    if (earlier / "library").is_dir():  # Another driver does not change the library.
        shutil.copytree(earlier / "library", built)
    else:
        _build_librdkafka(library, version, built)
    sources = built / "src"
    compiler = ["cc", "-g", "-O2", "-w", f"-fdebug-prefix-map={sources}=librdkafka"]
    compiler += ["-I", str(sources), "-I", str(DRIVERS / "c")]
    driver, archive = str(DRIVERS / "c" / "driver.c"), str(sources / "librdkafka.a")
    system = ["-lm", "-lpthread", "-ldl", "-lrt"]
    run_step([*compiler, "-o", "driver", driver, archive, *system], directory=directory)
    checked = [*compiler, "-fsanitize=address", "-o", "driver-address", driver]
    assignors = [str(path) for path in sorted(sources.glob("rdkafka_*assignor.c"))]
    run_step([*checked, *assignors, archive, *system], directory=directory)


def _build_librdkafka(library: Library, version: str, target: Path) -> None:
    """Build the static library from the sources in a package of another library."""
    with tempfile.TemporaryDirectory() as name:
        build = Path(name)
        run_step(["npm", "pack", f"{library.package}@{library.packaged[version]}"], directory=build)
        with tarfile.open(next(build.glob("*.tgz"))) as archive:
            archive.extractall(build, filter="data")
        source = build / "package" / "deps" / "librdkafka"
        for script in [source / "configure", *source.glob("lds-gen.py"), *source.rglob("*.sh")]:
            script.chmod(0o755)
        features = _UNUSED_FEATURES - ({"curl"} if version_key(version) < (1, 9) else set())
        options = [f"--disable-{feature}" for feature in sorted(features)]
        run_step([str(source / "configure"), *options], directory=source)
        jobs = f"-j{os.cpu_count() or 1}"
        run_step(["make", "-C", "src", jobs, "librdkafka.a"], directory=source)
        ignored = shutil.ignore_patterns("*.o", "*.d", "librdkafka-dbg.a")
        shutil.copytree(source / "src", target / "src", ignore=ignored)
        shutil.copy(source / "config.h", target / "config.h")


def _c_command(_library: Library, directory: Path) -> tuple[str, ...]:
    sanitizer = os.environ.get(_SANITIZER_VARIABLE)
    return (str(directory / (f"driver-{sanitizer}" if sanitizer else "driver")),)


RUNTIMES: Mapping[str, Runtime] = {
    runtime.name: runtime
    for runtime in (
        Runtime("jvm", ("java", "javac", "mvn"), "JDK 17+ and Maven", _install_jvm, _jvm_command),
        Runtime("go", ("go",), "Go 1.24+", _install_go, _go_command),
        Runtime("python", (), "Python 3.11+ with pip", _install_python, _python_command),
        Runtime("node", ("node", "npm"), "Node 20+ and npm", _install_node, _node_command),
        Runtime("c", ("cc", "make", "npm"), "C compiler, make and npm", _install_c, _c_command),
    )
}
"""The runtimes by name."""


_VARIABLE = "KASSAY_IMPLEMENTATIONS"
_DIGEST = "driver.sha256"


class NotInstalledError(InputError):
    """Error: a library is not installed on this machine. This is no result of an assignor."""


def installations() -> Path:
    """Return the directory with all installed libraries."""
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "kassay" / "implementations"


def is_installed(library: Library, version: str) -> bool:
    """Return whether a version of a library is installed with the current driver."""
    digest = _directory(library, version) / _DIGEST
    return digest.is_file() and digest.read_text(encoding="utf-8") == _driver_digest(library)


def installed_versions() -> Iterator[tuple[Library, str]]:
    """Yield the installed versions of all libraries."""
    pinned = ((library, each) for library in libraries().values() for each in library.versions)
    return (one for one in pinned if is_installed(*one))


def install(library: Library, version: str) -> Path:
    """Install a version of a library with its driver, and return its directory.

    Raise RunError if a required program is missing, or a download or compilation fails.
    """
    target = _directory(library, version)
    if is_installed(library, version):
        return target
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        RUNTIMES[library.runtime].install(library, version, partial)
        (partial / _DIGEST).write_text(_driver_digest(library), encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


@cache
def driver_command(assignor: LibraryAssignor) -> tuple[str, ...]:
    """Return the command that starts the driver of an installed library.

    Raise NotInstalledError if the library is not installed.
    """
    library, version = assignor.library, assignor.version
    if not is_installed(library, version):
        name = f"{library.name}@{version}"
        raise NotInstalledError(
            f"{name} is not installed in {installations()}; run: kassay libraries install {name}"
        )
    return RUNTIMES[library.runtime].command(library, _directory(library, version))


def jvm_command(library: Library, version: str, *, own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the command of an installed JVM driver, with own entries first in its class path."""
    return _jvm_command(library, _directory(library, version), own)


def _directory(library: Library, version: str) -> Path:
    return installations() / f"{library.name}@{version}"


def _driver_digest(library: Library) -> str:
    """Return a digest of the driver's sources. After a change, libraries must be reinstalled."""
    sources = sorted(path for path in (DRIVERS / library.runtime).rglob("*") if path.is_file())
    content = b"".join(path.name.encode() + path.read_bytes() for path in sources)
    return hashlib.sha256(content).hexdigest()
