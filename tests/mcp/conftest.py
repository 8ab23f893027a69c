"""A directory with something in it, and clients of every kind; on a real engine too where one is named."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.mcp.stage import EVERY_KIND, Session, command, http_bridge, session
from tests.support.engine import REAL_ENGINE, EngineThread
from tests.support.reader import OtherWorker, Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMPT = "---\ndescription: Order a coffee\n---\nOne coffee, please.\n"
EXPOSED = ("weather::*", "engine::*", "state::*", "skills::*")


@pytest.fixture(scope="module", params=["embedded", *(["real"] if REAL_ENGINE else [])])
def embedded(request: pytest.FixtureRequest) -> Iterator[EngineThread | None]:
    """The embedded engine; None where a real one is used."""
    if request.param == "real":
        yield None
    else:
        with EngineThread() as engine:
            yield engine


@pytest.fixture(scope="module")
def engine_url(embedded: EngineThread | None) -> str:
    return embedded.url if embedded else str(REAL_ENGINE)


@pytest.fixture(scope="module")
def directory(engine_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Documents at several depths, a prompt in the folder and one that a function renders."""
    with Reader(engine_url, tmp_path_factory.mktemp("mcp"), allow_file_repos=True) as reader:
        reader.skills.write("coffee/SKILL.md", "# Coffee\n\nHow to order coffee.\n")
        reader.skills.write("coffee/beans/origin.md", "# Origin\n\nWhere beans come from.\n")
        reader.skills.write(
            "coffee/prompts/order.md", "---\ndescription: Order a coffee\n---\nOne coffee, please.\n"
        )
        yield reader


@pytest.fixture(scope="module")
def worker(engine_url: str, directory: Reader) -> Iterator[OtherWorker]:
    """A worker with functions of its own, a skill and a prompt."""
    with OtherWorker(engine_url, "weather") as other:
        reads = {"readOnlyHint": True}
        other.offer(
            "weather::report", lambda data: {"city": data.get("city", "anywhere"), "sky": "blue"}, reads
        )
        other.offer("weather::greet", lambda data: f"Hello {data.get('name', 'you')}!", reads)
        other.offer("weather::break", _fail)
        directory.call("skills::register", id="weather", skill="# Weather\n\nAsk for the sky.\n")
        directory.call(
            "prompts::register",
            name="greet",
            description="Greet somebody",
            function_id="weather::greet",
            arguments=[{"name": "name", "description": "Whom", "required": True}],
        )
        yield other


def _fail(_: dict[str, Any]) -> None:
    raise RuntimeError("the sky fell\x1b[31m down\nTraceback (most recent call last): secret.py")


@pytest.fixture(scope="module", params=["joined", "inside"])
def bridge_url(
    request: pytest.FixtureRequest, engine_url: str, embedded: EngineThread | None, worker: OtherWorker
) -> Iterator[str]:
    """A bridge over HTTP."""
    with http_bridge(engine_url, inside=_inside(embedded, request.param), expose=EXPOSED) as url:
        yield url


@pytest.fixture(scope="module", params=EVERY_KIND, ids=["-".join(kind) for kind in EVERY_KIND])
def client(
    request: pytest.FixtureRequest, engine_url: str, embedded: EngineThread | None, worker: OtherWorker
) -> Iterator[Session]:
    """A session of each kind: over stdio and HTTP, in both protocol eras."""
    transport, era = request.param
    with ExitStack() as stack:
        globs = [part for glob in EXPOSED for part in ("--expose", glob)]
        if transport == "stdio":
            target: Any = command(engine_url, *globs)
        else:
            inside = _inside(embedded, transport)
            target = stack.enter_context(http_bridge(engine_url, inside=inside, expose=EXPOSED))
        yield stack.enter_context(session(target, era))


def _inside(embedded: EngineThread | None, place: str) -> EngineThread | None:
    if place != "inside":
        return None
    if embedded is None:
        pytest.skip("nobody is inside a real engine")
    return embedded
