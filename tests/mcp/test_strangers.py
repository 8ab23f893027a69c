"""What strangers do on the engine, as MCP clients meet it: nothing takes the operator's place."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from tests.hostile import HOSTILE, label

from iii_directory.limits import MAX_BODY_BYTES, MAX_FETCH_BYTES, MAX_FETCH_URIS
from mcp import MCPError

if TYPE_CHECKING:
    from tests.mcp.stage import Session
    from tests.support.reader import Reader

ONE_KIND = pytest.mark.parametrize("client", [("inside", "2026")], indirect=True, ids=["inside-2026"])
CANARY = "canary-52c01d6f"
PAIRS = [("{0}/SKILL.md", "{0}"), ("{0}.md", "{0}/index"), ("{0}/a/SKILL.md", "{0}/a")]


@ONE_KIND
@pytest.mark.parametrize("first", ["file", "registration"])
@pytest.mark.parametrize(("path", "registered"), PAIRS)
def test_the_folder_wins_at_every_door_of_an_mcp_client(
    client: Session, directory: Reader, path: str, registered: str, first: str
) -> None:
    name = f"ns-{uuid.uuid4().hex[:8]}"
    path, registered = path.format(name), registered.format(name)
    text = "# Of the operator\n\nOrders zebras by mail.\n"
    if first == "file":
        directory.skills.write(path, text)
    directory.call("skills::register", id=registered, skill="# Of a stranger\n\nOrders zebras by mail.")
    directory.skills.write(path, text)
    read_as = registered.removesuffix("/index")
    uri = f"iii://{read_as}"

    assert client.text(uri) == text
    assert "Of the operator" in client.call("skill__fetch", uri=uri)
    assert "Of the operator" in client.call("directory__skills__get", id=read_as)
    titles = [row.name for row in client.ask("list_resources").resources if f"iii://{name}" in row.uri]
    assert titles == ["Of the operator"]
    for tool, arguments in (
        ("directory__skills__list", {"prefix": name}),
        ("directory__skills__index", {}),
        ("search", {"query": "order zebras by mail"}),
    ):
        assert "stranger" not in str(client.ask("call_tool", tool, arguments)), tool
    directory.call("skills::unregister", id=registered)


@ONE_KIND
def test_a_hostile_address_or_name_reads_nothing_over_mcp(client: Session, directory: Reader) -> None:
    for secret in ("outside.md", "skills2/secret.md", "etc/passwd"):
        path = directory.skills.root.parent / secret
        path.parent.mkdir(exist_ok=True)
        path.write_text(CANARY, encoding="utf-8")
    sent = [text for text in HOSTILE if not any(0xD800 <= ord(letter) < 0xE000 for letter in text)]
    assert len(sent) >= 150

    for text in sent:
        for uri in (f"iii://{text}", f"skill://{text}", text):
            assert CANARY not in str(answer(client, "read_resource", uri)), label(text)
        assert CANARY not in str(answer(client, "get_prompt", text)), label(text)
        assert CANARY not in str(answer(client, "call_tool", "skill__fetch", {"uri": f"iii://{text}"})), (
            label(text)
        )


def answer(client: Session, *asked: Any) -> object:
    """What comes, be it an error."""
    try:
        return client.ask(*asked)
    except MCPError as error:
        return error


def test_a_fetch_of_too_much_is_refused_in_one_sentence_and_the_session_goes_on(
    client: Session, directory: Reader
) -> None:
    directory.skills.write("big/one.md", "# one\n\n" + "x" * (MAX_BODY_BYTES - 7))
    too_many = ["iii://big/one"] * 6000
    missing = [f"iii://missing/{number}" for number in range(6000)]

    assert f"at most {MAX_FETCH_URIS} addresses" in client.tool_error("skill__fetch", uris=too_many)
    assert f"at most {MAX_FETCH_URIS} addresses" in client.tool_error("skill__fetch", uris=missing)
    sentence = client.tool_error(
        "skill__fetch", uris=["iii://big/one"] * (MAX_FETCH_BYTES // MAX_BODY_BYTES + 1)
    )
    assert "too large" in sentence or f"{MAX_FETCH_BYTES}" in sentence
    assert client.text("iii://coffee").startswith("# Coffee")
