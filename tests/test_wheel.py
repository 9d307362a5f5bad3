"""The wheel works in a clean environment, beside other modules with the name of a folder."""

import importlib.metadata
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("kassay", "reference", "solver", "experiments")
FILES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")
DATA_SUFFIXES = {".json", ".yaml", ".j2", ".css", ".js", ".properties", ".pyi", ".typed"}

USE_PACKAGE = """
import sys
from pathlib import Path

import kassay

topic, member = kassay.Topic(name="t", partitions=3), kassay.Member(id="a", subscription=("t",))
group = kassay.Group(topics=(topic,), members=(member,))
assert kassay.solve(group).status is kassay.Status.OPTIMAL
assert set(kassay.__all__) <= set(dir(kassay))
assert [name for name in kassay.__all__ if not hasattr(kassay, name)] == []
assert "solver" not in sys.modules
import solver
assert solver.OWNER == "user"
print(Path(kassay.__file__).parent)
"""


def run(*command: str | Path, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)), cwd=directory, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a source archive from a copy of the packages, and the wheel from this archive."""
    source = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=skipped)
    for file in FILES:
        shutil.copyfile(ROOT / file, source / file)
    uv = (Path(sys.executable).parent / "uv", "build", "--quiet", "--out-dir", source / "dist")
    built = run(*uv, source, directory=source)
    assert built.returncode == 0, built.stderr
    [path] = (source / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and another package ``solver`` into a new virtual environment."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    options = ("--no-compile", "--no-deps", "--no-index")
    installed = run(*pip, "install", *options, wheel, directory=home)
    assert installed.returncode == 0, installed.stderr
    [site_packages] = home.glob("lib/python*/site-packages")
    (site_packages / "solver").mkdir()
    (site_packages / "solver" / "__init__.py").write_text('OWNER = "another distribution"\n')
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site_packages / "dependencies.pth").write_text("\n".join(dependencies))
    return home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a user's directory with a module ``solver``."""
    (tmp_path / "solver.py").write_text('OWNER = "user"\n')
    return tmp_path


def test_the_wheel_contains_only_the_package_kassay(wheel: Path) -> None:
    version = importlib.metadata.version("kassay")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"kassay", f"kassay-{version}.dist-info"}


def test_the_wheel_contains_all_modules_and_data_files(wheel: Path) -> None:
    expected = {
        f"{'' if folder == 'kassay' else 'kassay/'}{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", *DATA_SUFFIXES} or path.name == "py.typed"
    }
    assert expected <= set(zipfile.ZipFile(wheel).namelist())


def test_a_build_leaves_no_modules_that_a_later_build_would_include(wheel: Path) -> None:
    assert {path.name for path in wheel.parents[1].iterdir()} == {*FOLDERS, *FILES, "dist"}


def test_the_package_works_beside_other_modules_named_solver(
    environment: Path, project: Path
) -> None:
    done = run(environment / "bin" / "python", "-c", USE_PACKAGE, directory=project)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(environment)


def test_the_package_works_in_a_clone_of_the_repository(environment: Path) -> None:
    script = "import kassay; kassay.solve; import kassay.experiments.cli; print(kassay.__file__)"
    done = run(environment / "bin" / "python", "-c", script, directory=ROOT)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(ROOT)


@pytest.mark.long
def test_a_study_runs_beside_other_modules_named_solver(environment: Path, project: Path) -> None:
    options = ("--cases", "0", "--family", "named", "--output", "out")
    command = (environment / "bin" / "kassay", "study", *options, "--master", "local[2]")
    done = run(*command, directory=project)
    assert done.returncode == 0, done.stderr
    assert list((project / "out").glob("manifest/run=*/part-*")), done.stdout
