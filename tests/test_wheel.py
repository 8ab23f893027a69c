"""The wheel as a user gets it: without the sources, and with nothing it does not declare."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import venv
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from tests.support.commands import START_SECONDS, environment, free_port, running_program

ROOT = Path(__file__).parent.parent
# Each is code of other people that runs with the rights of ours, so a new one is added here knowingly.
DEPENDENCIES = {
    "httptools",
    "jinja2",
    "mcp",
    "msgspec",
    "nh3",
    "orjson",
    "pyyaml",
    "rapidfuzz",
    "rich",
    "ruamel-yaml",
    "simsimd",
    "websockets",
}


def test_the_installed_wheel_answers_a_call_with_nothing_but_what_it_declares(tmp_path: Path) -> None:
    environment_folder = tmp_path / "empty"
    venv.create(environment_folder, with_pip=False, symlinks=True)
    site = next(environment_folder.glob("lib/python*/site-packages"))
    _execute(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist"))
    (wheel,) = (tmp_path / "dist").iterdir()
    python = str(environment_folder / "bin" / "python")
    _execute(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps"),
        *("--disable-pip-version-check", "--no-compile", str(wheel)),
    )
    _lend_dependencies(PathDistribution(next(site.glob("iii_directory-*.dist-info"))), site)
    command = str(environment_folder / "bin" / "iii-directory")
    url = f"ws://127.0.0.1:{free_port()}"

    with running_program(command, "up", "--url", url, "--in-memory", "--http-port", "0", cwd=tmp_path) as up:
        up.wait_for("Ctrl-C")
        answer = _execute(
            command, "trigger", "directory::skills::get", "id=iii-directory", "--url", url, cwd=tmp_path
        )
        where = _execute(python, "-c", "import iii_directory; print(iii_directory.__file__)", cwd=tmp_path)
        assert up.stop() == 0

    assert json.loads(answer)["id"] == "iii-directory"
    assert "mcp      http://" in up.output
    assert Path(where.strip()).is_relative_to(site)


def test_an_installation_brings_twelve_packages_and_what_they_require() -> None:
    """A declared package that another one requires adds no code to an installation, so it does not count."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = {_canonical(Requirement(text).name) for text in declared}
    brought = set[str]().union(*(_all_required_by(name) for name in names))

    assert names - brought == DEPENDENCIES


def _all_required_by(name: str) -> set[str]:
    """What comes with a package, whatever requires it."""
    found: set[str] = set()
    waiting = [(name, "")]
    while waiting:
        one, extra = waiting.pop()
        new = {required for required in _required_by(distribution(one), extra) if required[0] not in found}
        found |= {required for required, _ in new}
        waiting.extend(new)
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _execute(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _lend_dependencies(ours: Distribution, site: Path) -> None:
    """Make what a distribution requires, and what that requires, importable there, and nothing else."""
    waiting: list[tuple[Distribution, str]] = [(ours, "")]
    lent: set[tuple[str, str]] = set()
    while waiting:
        for name, extra in _required_by(*waiting.pop()):
            if (name, extra) in lent:
                continue
            lent.add((name, extra))
            found = distribution(name)
            waiting.append((found, extra))
            for file in found.files or ():
                top = file.parts[0]
                source = Path(str(found.locate_file(top)))
                if top != ".." and source.exists() and not (site / top).exists():
                    (site / top).symlink_to(source)


def _required_by(one: Distribution, extra: str) -> set[tuple[str, str]]:
    """The names of what is required here, on this machine, for an extra; each with extras wanted of it."""
    requirements = [Requirement(text) for text in one.requires or ()]
    return {
        (_canonical(requirement.name), wanted)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        for wanted in ("", *requirement.extras)
    }
