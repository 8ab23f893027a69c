"""What is passed on of the directory's answers."""

from __future__ import annotations

from iii_directory.mcp import exposure

HOSTILE = "Co\x1b[2Jffee\u202e \n\u200b\U000e0041time"


def test_labels_are_cleaned_and_addresses_kept() -> None:
    answer = {
        "resources": [
            {"uri": "iii://a", "name": HOSTILE, "description": HOSTILE, "mimeType": "text/markdown"}
        ]
    }

    assert exposure.resources(answer) == [
        {
            "uri": "iii://a",
            "name": "Co[2Jffee time",
            "description": "Co[2Jffee time",
            "mimeType": "text/markdown",
        }
    ]


def test_a_row_without_an_address_that_can_be_sent_back_is_left_out() -> None:
    bad = [
        {"name": "a"},
        {"uri": 1, "name": "a"},
        {"uri": "iii://a\x00", "name": "a"},
        {"uri": "", "name": "a"},
    ]
    answer = {"resources": [*bad, "no row", {"uri": "iii://a"}, {"uri": "iii://b", "name": "b", "size": "x"}]}

    assert exposure.resources(answer) == [{"uri": "iii://b", "name": "b"}]


def test_an_answer_of_another_shape_is_an_empty_list() -> None:
    for answer in (None, [], "text", {"resources": None}, {"resources": {}}):
        assert exposure.resources(answer) == []
        assert exposure.templates(answer) == []
        assert exposure.prompts(answer) == []


def test_templates_are_passed_on() -> None:
    row = {
        "uriTemplate": "iii://{skill_id}",
        "name": "skill",
        "description": "One",
        "mimeType": "text/markdown",
    }

    assert exposure.templates({"resourceTemplates": [row, {"name": "none"}]}) == [row]


def test_arguments_of_a_prompt_are_cleaned_or_left_out() -> None:
    arguments = [
        {"name": "a", "description": HOSTILE, "required": 1},
        {"name": "b\n", "required": True},
        {},
        "c",
    ]
    found = exposure.prompts(
        {"prompts": [{"name": "p", "description": HOSTILE, "arguments": arguments}, {"name": "p q\n"}]}
    )

    assert found == [
        {
            "name": "p",
            "description": "Co[2Jffee time",
            "arguments": [{"name": "a", "description": "Co[2Jffee time", "required": False}],
        }
    ]


def test_the_messages_of_a_prompt_stay_as_they_are() -> None:
    messages = [{"role": "user", "content": {"type": "text", "text": HOSTILE}}]

    assert exposure.prompt({"description": HOSTILE, "messages": messages}) == {
        "description": "Co[2Jffee time",
        "messages": messages,
    }
    assert exposure.prompt("no prompt") == {"messages": None}


def test_contents_are_passed_on_untouched_or_not_at_all() -> None:
    content = {"uri": "iii://a", "mimeType": "text/markdown", "text": HOSTILE}

    assert exposure.contents({"contents": [content]}) == [content]
    for answer in (None, {}, {"contents": []}, {"contents": [content, {"uri": "iii://b"}]}):
        assert exposure.contents(answer) is None


def test_only_addresses_of_ours_are_completed() -> None:
    listed = {"resources": [{"uri": "iii://a/b", "name": "x"}, {"uri": "https://a", "name": "y"}]}

    assert exposure.completion(listed, "")["values"] == ["a/b"]


def test_only_functions_with_an_address_are_completed() -> None:
    ids = ["a::b", "a::b", "A::b", "a.b", "a/b", "state::set", "iii.on", "x::y::z", "__hidden"]
    hidden = {"function_id": "c::d", "metadata": {"internal": True}}
    listed = [hidden, *({"function_id": one} for one in ids)]

    assert exposure.completion({"functions": listed}, "")["values"] == ["__hidden", "a/b", "x/y/z"]


def test_no_more_values_than_the_protocol_allows() -> None:
    uris = [*(f"iii://b/a{number}" for number in range(150)), "iii://a"]
    found = exposure.completion({"resources": [{"uri": uri, "name": uri} for uri in uris]}, " A")

    assert found["values"][0] == "a"
    assert len(found["values"]) == 100
    assert found["total"] == 151
    assert found["hasMore"]
