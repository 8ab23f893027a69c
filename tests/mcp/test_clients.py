"""What a client sees: the same over stdio and HTTP, in the protocol of 2025 and in that of 2026-07-28."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from mcp_types import PromptReference
from tests.mcp.stage import http_bridge, session

if TYPE_CHECKING:
    from tests.mcp.stage import Era, Session
    from tests.support.engine import EngineThread
    from tests.support.reader import OtherWorker, Reader

INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002
SKILLS, SECTIONS, FILES = "iii://{skill_id}", "iii://fn/{function_path}", "skill://{+path}"


# Who it is


def test_a_client_learns_what_the_server_can_do(client: Session) -> None:
    able = client.client.server_capabilities

    assert client.client.server_info is not None
    assert client.client.server_info.name == "iii-directory"
    assert client.client.protocol_version.startswith(client.era)
    assert "skill__fetch" in (client.client.instructions or "")
    assert able.resources is not None
    assert able.resources.list_changed
    assert able.resources.subscribe
    assert able.prompts is not None
    assert able.prompts.list_changed
    assert able.tools is not None
    assert able.tools.list_changed
    assert able.completions is not None


# Resources


def test_every_skill_at_every_depth_is_a_resource(client: Session) -> None:
    uris = client.uris()

    skills = [uri for uri in uris if uri.startswith("skill://")]
    documents = [uri for uri in uris[1:] if uri.startswith("iii://")]
    assert uris == ["iii://skills", *skills, *documents]
    assert {"iii://coffee", "iii://coffee/beans/origin", "iii://weather"} <= set(documents)
    assert {"skill://coffee/SKILL.md", "skill://weather/SKILL.md"} <= set(skills)
    assert skills == sorted(skills)
    assert documents == sorted(documents)


def test_a_resource_says_what_it_is_about(client: Session) -> None:
    rows = {row.uri: row for row in client.ask("list_resources").resources}

    assert rows["skill://coffee/SKILL.md"].name == "coffee"
    assert rows["skill://coffee/SKILL.md"].description == "How to order coffee."
    assert rows["iii://coffee/beans/origin"].description == "Where beans come from."


def test_a_resource_has_the_title_of_its_document(client: Session) -> None:
    rows = {row.uri: row for row in client.ask("list_resources").resources}

    assert rows["iii://coffee/beans/origin"].name == "Origin"
    assert rows["iii://coffee/beans/origin"].mime_type == "text/markdown"


def test_every_template_is_listed_with_a_description(client: Session) -> None:
    found = client.ask("list_resource_templates").resource_templates

    assert [row.uri_template for row in found] == [SKILLS, SECTIONS, FILES]
    assert all(row.name and row.description for row in found)


@pytest.mark.parametrize(
    ("uri", "starts"),
    [
        ("iii://coffee", "# Coffee"),
        ("iii://coffee/beans/origin", "# Origin"),
        ("iii://weather", "# Weather"),
        ("iii://skills", "# Skills"),
        ("iii://directory/skills", "# Skills"),
        ("iii://fn/weather/greet", "Hello you!"),
    ],
)
def test_any_address_is_read(client: Session, uri: str, starts: str) -> None:
    assert client.text(uri).startswith(starts)


def test_a_section_that_answers_data_is_json(client: Session) -> None:
    (content,) = client.ask("read_resource", "iii://fn/weather/report").contents

    assert content.mime_type == "application/json"
    assert json.loads(content.text)["sky"] == "blue"


def test_a_body_is_served_as_it_is(client: Session, directory: Reader) -> None:
    body = "# Odd\r\n\n\tescape \x1b[31m, zero\u200bwidth, bidi \u202e, tag \U000e0041, emoji 👩\u200d🚀 \n\n"
    directory.call("skills::register", id="odd", skill=body)

    assert client.text("iii://odd") == body


def test_a_title_is_cleaned_of_what_cannot_be_seen(client: Session, directory: Reader) -> None:
    directory.call("skills::register", id="loud", skill="# Lo\x1b[31mud \u202eti\u200btle\n")
    names = {row.uri: row.name for row in client.ask("list_resources").resources}

    assert names["iii://loud"] == "Lo[31mud title"


def test_a_missing_skill_is_the_error_of_the_protocol(client: Session) -> None:
    error = client.refusal("read_resource", "iii://cofee")

    assert error.code == (RESOURCE_NOT_FOUND if client.era == "2025" else INVALID_PARAMS)
    assert re.match(r"D110 not_found: .*not found.*\. Next: ", error.message)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("era", ["2025", "2026"])
@pytest.mark.parametrize("place", ["joined", "inside"])
def test_the_first_answer_of_a_bridge_names_the_next_step_if_it_is_an_error(
    engine_url: str, embedded: EngineThread | None, place: str, era: Era
) -> None:
    inside = embedded if place == "inside" else None
    with http_bridge(engine_url, inside=inside) as url, session(url, era) as client:
        error = client.refusal("read_resource", "iii://cofee")

    assert "Next: call directory__skills__list to see every skill id" in error.message


@pytest.mark.parametrize(
    "uri",
    ["http://example.org", "iii://Coffee", "iii://a//b", "iii://fn", "iii://../x", "iii://fn/state/set"],
)
def test_an_invalid_address_is_the_clients_mistake(client: Session, uri: str) -> None:
    error = client.refusal("read_resource", uri)

    assert error.code == INVALID_PARAMS
    assert re.match(r"D1\d\d \w+: ", error.message)


def test_a_list_has_one_page(client: Session) -> None:
    for method in ("list_resources", "list_resource_templates", "list_prompts", "list_tools"):
        assert client.refusal(method, cursor="page 2").code == INVALID_PARAMS
        assert client.ask(method).next_cursor is None


def test_the_order_of_a_list_does_not_change(client: Session) -> None:
    assert client.uris() == client.uris()
    assert list(client.tools()) == sorted(client.tools())


# Prompts


def test_prompts_are_listed_with_their_arguments(client: Session) -> None:
    prompts = {row.name: row for row in client.ask("list_prompts").prompts}
    (argument,) = prompts["greet"].arguments

    assert prompts["order"].description == "Order a coffee"
    assert (argument.name, argument.description, argument.required) == ("name", "Whom", True)


def test_a_prompt_of_the_folder_is_its_body(client: Session) -> None:
    found = client.ask("get_prompt", "order")

    assert found.description == "Order a coffee"
    assert [(one.role, one.content.text) for one in found.messages] == [("user", "One coffee, please.\n")]


def test_a_prompt_is_rendered_with_the_arguments(client: Session) -> None:
    (message,) = client.ask("get_prompt", "greet", {"name": "Ada"}).messages

    assert message.content.text == "Hello Ada!"


def test_a_missing_prompt_is_the_error_of_the_protocol(client: Session) -> None:
    error = client.refusal("get_prompt", "ordr")

    assert error.code == INVALID_PARAMS
    assert "Did you mean: order" in error.message


def test_a_prompt_with_invalid_messages_is_an_error(
    client: Session, directory: Reader, worker: OtherWorker
) -> None:
    if not worker._knows("weather::odd-messages"):
        worker.offer("weather::odd-messages", lambda _: {"messages": [{"role": "nobody", "content": 1}]})
    directory.call("prompts::register", name="odd", description="Odd", function_id="weather::odd-messages")

    assert "'odd'" in client.refusal("get_prompt", "odd").message


# Tools


def test_the_tools_of_the_directory_are_offered(client: Session) -> None:
    offered = set(client.tools())

    assert {
        "skill__fetch",
        "directory__skills__index",
        "directory__skills__list",
        "directory__skills__get",
        "directory__prompts__list",
        "directory__prompts__get",
        "directory__engine__functions__info",
        "directory__diagnostics",
    } <= offered
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in offered)


def test_a_tool_says_what_it_takes_and_what_it_may_do(client: Session) -> None:
    fetch = client.tools()["skill__fetch"]

    assert set(fetch.input_schema["properties"]) == {"uris"}
    assert fetch.title
    assert fetch.output_schema is None
    assert fetch.annotations.read_only_hint
    assert not fetch.annotations.destructive_hint


def test_functions_asked_for_are_tools_and_the_worst_is_said_of_them(client: Session) -> None:
    report = client.tools()["weather__report"]

    assert not report.annotations.read_only_hint
    assert report.annotations.destructive_hint
    assert json.loads(client.call("weather__report", city="Rome")) == {"city": "Rome", "sky": "blue"}


def test_internal_functions_are_not_tools_even_if_asked_for(client: Session) -> None:
    offered = client.tools()

    assert not [name for name in offered if name.startswith(("engine__", "state__", "skills__", "prompts__"))]
    assert not [name for name in offered if "changed" in name]
    for name in ("state__set", "engine__functions__list", "skills__register", "state::set"):
        assert client.refusal("call_tool", name, {}).code == INVALID_PARAMS


def test_a_tool_reads_several_links_at_once(client: Session) -> None:
    text = client.call("skill__fetch", uris=["iii://coffee", "iii://coffee/beans/origin"])

    assert text.split("\n\n---\n\n")[0].startswith("# iii://coffee\n\n# Coffee")
    assert text.count("# iii://") == 2


def test_a_tool_searches_by_filter(client: Session) -> None:
    found = client.call("directory__skills__list", search="beans")

    assert found == "coffee/beans/origin (file): Where beans come from."


def test_a_search_answers_in_text_with_links_to_what_it_found(client: Session) -> None:
    answer = client.ask("call_tool", "search", {"query": "coffee", "kinds": ["skill"]})

    text, *links = answer.content
    assert text.text.startswith("- skill coffee ")
    assert text.text.count("How to order coffee.") == 1
    assert {"iii://coffee"} <= {link.uri for link in links}
    assert all(client.text(link.uri) for link in links)


def test_a_search_only_reads(client: Session) -> None:
    hints = client.tools()["search"].annotations

    assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (True, False, False)


def test_an_error_of_the_directory_is_a_tool_error_of_one_sentence(client: Session) -> None:
    text = client.tool_error("directory__skills__get", id="cofee")

    assert text.startswith("D110 not_found: ")
    assert "Did you mean: coffee" in text
    assert "\n" not in text


def test_of_another_workers_failure_one_clean_line_is_passed_on(client: Session) -> None:
    text = client.tool_error("weather__break")

    assert text.startswith("the sky fell[31m down")
    assert "\n" not in text
    assert "\x1b" not in text


def test_an_unknown_tool_is_the_error_of_the_protocol(client: Session) -> None:
    error = client.refusal("call_tool", "no_such_tool", {})

    assert error.code == INVALID_PARAMS
    assert "'no_such_tool'" in error.message


# Completion


def test_skill_ids_are_completed(client: Session) -> None:
    found = client.completions(SKILLS, "skill_id", "cof")

    assert found.values == ["coffee", "coffee/beans/origin"]
    assert found.total == 2
    assert not found.has_more


def test_what_starts_with_the_text_comes_before_what_contains_it(client: Session) -> None:
    values = client.completions(SKILLS, "skill_id", "o").values

    assert values == sorted(values, key=lambda value: not value.startswith("o"))
    assert "coffee" in values


def test_function_paths_are_completed_without_internal_ones(client: Session) -> None:
    assert "weather/report" in client.completions(SECTIONS, "function_path", "weather").values
    assert client.completions(SECTIONS, "function_path", "state/").values == []


def test_an_unknown_template_cannot_be_completed(client: Session) -> None:
    reference = {"name": "x", "value": ""}

    assert client.completions(SKILLS, "skill_id", "zzz").values == []
    with pytest.raises(Exception, match="no argument 'x'"):
        client.completions("iii://{other}", "x", "")
    assert client.ask("complete", PromptReference(name="greet"), reference).completion.values == []
