"""What is around the package: the image, the compose file and the worker's manifest, run as far as can be."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.support.commands import COMMAND, environment, free_port, run, running
from tests.support.engine import WAIT

from iii_directory import __version__
from iii_directory.cli.main import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
TOKEN = "s3cret-of-the-image"


def instruction(name: str) -> str:
    """What the last one of this name in the Dockerfile says."""
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)[-1]


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """What the image runs, in a folder, on ports of its own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert json.loads(instruction("ENTRYPOINT")) == ["iii-directory"]
    port = str(free_port())
    command = [*json.loads(instruction("CMD")), "--port", port, "--http-port", "0"]
    with running(*command, cwd=tmp_path, III_TOKEN=TOKEN) as up:
        up.wait_for("Ctrl-C")
        yield tmp_path, port
        assert up.stop() == 0


def test_the_image_serves_everybody_who_has_the_token(container: tuple[Path, str]) -> None:
    folder, port = container
    url = f"ws://127.0.0.1:{port}"

    assert run("skills", "list", "--url", url, cwd=folder, III_TOKEN=TOKEN).returncode == 0
    assert "asks for a token" in run("skills", "list", "--url", url, cwd=folder).stderr


def test_the_image_knows_whether_it_is_well(container: tuple[Path, str]) -> None:
    folder, _ = container
    program, *arguments = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])

    assert program == "iii-directory"
    assert run(*arguments, cwd=folder, III_TOKEN=TOKEN).returncode == 0


def test_the_image_refuses_to_serve_without_a_token(tmp_path: Path) -> None:
    done = run(*json.loads(instruction("CMD")), cwd=tmp_path)

    assert done.returncode == 2
    assert "needs a token" in done.stderr


def test_the_compose_file_opens_what_the_image_exposes() -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["directory"]

    assert {port.rsplit(":", 1)[1] for port in service["ports"]} == set(instruction("EXPOSE").split())
    assert any(volume.endswith(f":{instruction('VOLUME')}") for volume in service["volumes"])
    assert service["environment"]["III_TOKEN"].startswith("${III_TOKEN:?")


def test_the_manifest_has_what_the_tools_of_the_engine_read() -> None:
    """A name for the registry, and a version in the manifest that is named.

    The engine's tools refuse other keys when a worker is added by its path, and what it depends on by a name
    that they do not know: the state is called ``iii-state`` up to 0.22 and ``state`` from then on.
    """
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "iii.worker.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / manifest["manifest"]).read_text(encoding="utf-8"))["project"]

    assert manifest["iii"] == "v1"
    assert manifest["language"] in ("rust", "javascript", "node", "python")
    assert manifest["deploy"] in ("binary", "image", "bundle")
    assert manifest.keys() <= {
        "iii",
        "name",
        "description",
        "language",
        "deploy",
        "manifest",
        "tags",
        "scripts",
    }
    assert manifest["name"] == project["name"]
    assert project["version"] == __version__
    assert 20 < len(manifest["description"]) < 200
    assert manifest["scripts"].keys() == {"install", "start"}
    assert "III_URL" in manifest["scripts"]["start"]


def test_the_manifest_starts_the_worker() -> None:
    manifest: dict[str, Any] = yaml.safe_load((ROOT / "iii.worker.yaml").read_text(encoding="utf-8"))

    assert (manifest["iii"], manifest["name"], manifest["language"]) == ("v1", "iii-directory", "python")
    assert (ROOT / manifest["manifest"]).is_file()
    program, name, *_ = manifest["scripts"]["start"].split()
    assert (program, name in COMMANDS) == ("iii-directory", True)
    shown = subprocess.run(
        ["sh", "-c", f"{manifest['scripts']['start']} --help"],
        env=environment(PATH=f"{Path(COMMAND).parent}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT * 3,
    )
    assert shown.stdout.startswith("Usage: iii-directory serve")
