"""The pinned requirements: an installer that takes nothing unpinned finds everything it will ask for."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-dev.txt"])
def test_a_pin_names_the_extras_that_other_packages_ask_for(file: str) -> None:
    """Otherwise pip looks for the newest with that extra, and refuses the file once that is another."""
    pins = _pins(file)
    unnamed = [
        f"{name} asks for {asked}"
        for name in pins
        for asked in _asked_by(name, pins[name].extras)
        if (pin := pins.get(canonicalize_name(asked.name))) and not asked.extras <= pin.extras
    ]

    assert len(pins) > 10
    assert unnamed == []


def _pins(file: str) -> dict[str, Requirement]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.removesuffix("\\")) for line in lines if line[:1].isalpha()]
    return {canonicalize_name(pin.name): pin for pin in pins}


def _asked_by(name: str, extras: set[str]) -> list[Requirement]:
    """What an installed package requires here; one that is for other systems requires nothing here."""
    try:
        asked = [Requirement(text) for text in requires(name) or []]
    except PackageNotFoundError:
        return []
    return [
        each
        for each in asked
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in (extras or {""}))
    ]
