"""Interpreters with known vulnerabilities: `make` and `doctor` say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import run

from iii_directory.cli import interpreter
from iii_directory.cli.interpreter import interpreter_warning


@pytest.mark.parametrize(
    ("version", "named", "better"),
    [
        ((3, 11, 7), ["CVE-2024-0450", "CVE-2024-6232", "CVE-2025-8194"], "3.11.14"),
        ((3, 11, 10), ["CVE-2025-8194"], "3.11.14"),
        ((3, 12, 5), ["CVE-2024-6232", "CVE-2025-8194"], "3.12.12"),
        ((3, 13, 5), ["CVE-2025-8194"], "3.13.6"),
    ],
)
def test_a_vulnerable_release_is_named_with_a_better_one(
    version: tuple[int, ...], named: list[str], better: str
) -> None:
    warning = interpreter_warning(version)

    assert warning is not None
    assert f"({', '.join(named)})" in warning
    assert f"use Python {better} or newer" in warning


@pytest.mark.parametrize("version", [(3, 11, 14), (3, 12, 12), (3, 13, 6), (3, 14, 0), (3, 15, 1)])
def test_a_repaired_release_gets_no_warning(version: tuple[int, ...]) -> None:
    assert interpreter_warning(version) is None


def test_doctor_and_make_warn_about_the_running_interpreter(tmp_path: Path) -> None:
    expected = interpreter_warning()
    script = Path(interpreter.__file__)
    alone = subprocess.run([sys.executable, "-I", script], capture_output=True, text=True, check=True)
    makefile = Path(__file__).parents[2] / "Makefile"

    doctor = run("doctor", cwd=tmp_path)

    assert (expected or "no warning") in (doctor.stderr if expected else "no warning")
    assert alone.stderr == (f"warning: {expected}\n" if expected else "")
    assert script.relative_to(makefile.parent).as_posix() in makefile.read_text(encoding="utf-8")
