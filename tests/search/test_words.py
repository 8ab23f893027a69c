"""How text of any script becomes words, and which words are forms of one another."""

from __future__ import annotations

import pytest

from iii_directory.search.words import content, form_key, is_pair, plain_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("storage::putObject", ["storage", "put", "object", "putobject"]),
        ("image_resize", ["image", "resize", "imageresize"]),
        ("re-render", ["re", "render", "rerender"]),
        ("GitHub and PowerPoint", ["github", "and", "powerpoint"]),
        ("HTTPServer APIs", ["http", "server", "httpserver", "apis"]),
        ("a-b-c-d", ["a", "b", "c", "d"]),
        ("C++, C# and .NET", ["cpp", "csharp", "and", "dotnet"]),
        ("it's a bird's nest, l'image", ["it", "a", "bird", "nest", "image"]),
        ("Größe ÉCOLE \u0131", ["grosse", "ecole", "i"]),
        ("\uff32\uff25\uff33\uff29\uff3a\uff25", ["resize"]),
        ("图片处理", ["图片", "片处", "处理", "理"]),
        ("用Python处理", ["用", "python", "处理", "理"]),
        ("الصُّوَرُ", ["الصور"]),
        ("चित्र बदलें", ["चित्र", "बदलें"]),
        ("изменить размер", ["изменить", "размер"]),
        ("", []),
        ("—…!?", []),
    ],
)
def test_text_is_cut_into_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        "resize resizes resized resizing",
        "create creates created creating creation",
        "query queries",
        "run runs running",
        "validate validation validates",
        "deploy deployment deployed",
        "schedule scheduler scheduling",
        "branch branches",
        "class classes",
        "صور الصور والصور",
    ],
)
def test_forms_of_one_word_have_one_key(forms: str) -> None:
    assert len({form_key(word) for word in forms.split()}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("state", "station"),
        ("custom", "customer"),
        ("docker", "document"),
        ("string", "str"),
        ("status", "statu"),
        ("king", "k"),
    ],
)
def test_words_that_only_look_alike_have_keys_of_their_own(one: str, other: str) -> None:
    assert form_key(one) != form_key(other)


def test_words_of_grammar_and_single_letters_say_nothing() -> None:
    assert content(words("how do I put a file into the bucket x 图")) == ["put", "file", "bucket", "图"]


def test_a_long_text_is_cut_like_a_short_one_but_for_the_humps() -> None:
    assert plain_words("Call putObject — né? 图片") == ["call", "putobject", "ne", "图片", "片"]
    assert plain_words("Call putObject — né?") == ["call", "putobject", "ne"]


def test_a_pair_of_characters_is_told_from_a_word() -> None:
    assert is_pair("图片")
    assert not is_pair("размер")
    assert not is_pair("file")
