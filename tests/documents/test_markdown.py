"""Titles, first paragraphs, and text made harmless."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import is_harmless

from iii_directory.documents.parse import first_paragraph, heading, plain_line
from iii_directory.limits import MAX_DESCRIPTION_CHARS
from iii_directory.text import cut, escaped, has_unsafe, one_line, quoted


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("# A\n", "A"),
        ("# A", "A"),
        ("\n\n# A  \r\ntext", "A"),
        ("text\n# A\n# B\n", "A"),
        ("## A\n# B\n", "B"),
        ("#A\n", ""),
        (" # A\n", ""),
        ("text # A\n", ""),
        ("# \n# B\n", ""),
        ("", ""),
        ("a\u2028# A", ""),
        ("a\r# A", ""),
        ("# A\u2028B\n", "A\u2028B"),
    ],
)
def test_the_title_is_the_first_line_that_starts_with_a_hash_and_a_space(body: str, title: str) -> None:
    assert heading(body) == title


def test_a_title_before_the_body_is_not_seen() -> None:
    assert heading("# A\n# B\n", 4) == "B"


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("text", "text"),
        ("# A\n\ntext\nmore  \n  and more\n\nother", "text more and more"),
        ("# A\ntext\n## B\nother", "text"),
        ("\n \t\n\n> quote\n> more\n\ntext", "text"),
        ("> quote\ntext", "text"),
        ("text\n> quote", "text"),
        ("text\n\n> quote", "text"),
        ("#tag text", "#tag text"),
        ("####### seven", "####### seven"),
        ("#\ntext", "text"),
        ("  # indented\ntext", "text"),
        ("# A\r\n\r\ntext\r\nmore\r\n\r\nother\r\n", "text more"),
        ("# A\n## B\n", ""),
        ("", ""),
        ("\n\n", ""),
        ("> only\n", ""),
        ("a\u2028b\nc", "a\u2028b c"),
        ("a\x0bb\x0cc\x85d", "a\x0bb\x0cc\x85d"),
        ("a\rb\nc", "a\rb c"),
        ("- item\n- item", "- item - item"),
    ],
)
def test_the_description_is_the_first_paragraph(body: str, description: str) -> None:
    assert first_paragraph(body) == description


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("```ruby\nstream = 1\n```\n\nWords.", "Words."),
        ("~~~\nnever closed\n\nwords", ""),
        ("``` x\n a\n````\nafter", "after"),
        ("words\n```\ncode\n```", "words"),
        ("| T | x |\n|---|---|\n| a | b |\n\nAfter.", "After."),
        ("<!-- a\nb -->\nWords.", "Words."),
        ("<!-- a --> Words.", "Words."),
        ("<!-- not closed\nwords", ""),
        ("![a](b)\n\n[![x](y)](z) ![q](r)\nWords.", "Words."),
        ("See ![a](b) here.", "See ![a](b) here."),
        ("**You MUST** do *this*, _too_.", "You MUST do this, too."),
        ("a snake_case_name and 2 * 3 * 4", "a snake_case_name and 2 * 3 * 4"),
    ],
)
def test_a_description_is_words_without_markup(body: str, description: str) -> None:
    assert first_paragraph(body) == description


@pytest.mark.parametrize(
    "piece", ["```\n", "<!--", "<!-- -->", "![a](b)", "*a ", "**", "_a", "|", "[![a]", "~~a~"]
)
def test_no_body_is_too_odd_to_describe(piece: str) -> None:
    assert len(first_paragraph(piece * (262_144 // len(piece)))) <= MAX_DESCRIPTION_CHARS + 3


def _slow_first_paragraph(body: str) -> str:
    found: list[str] = []
    fence = ""
    for line in body.split("\n"):
        words = line.strip()
        if fence:
            fence = "" if words.startswith(fence) else fence
            continue
        opening = re.match(r"`{3,}|~{3,}", words)
        is_apart = re.match(r"#{1,6}(\s|$)|>|\|", words) or opening
        if words and not is_apart:
            found.append(words)
        elif found:
            break
        elif opening:
            fence = opening[0]
    return " ".join(found)


@given(
    st.lists(
        st.sampled_from(
            [
                "",
                " ",
                "# a",
                "#",
                "##b",
                "> q",
                "text",
                " more ",
                "x\r",
                "\r",
                "\xa0",
                "| a",
                "```",
                "```` b",
                " ~~~",
            ]
        )
    ).map("\n".join)
)
def test_the_first_paragraph_is_what_a_plain_reading_line_by_line_gives(body: str) -> None:
    assert first_paragraph(body) == _slow_first_paragraph(body)


@given(st.text(" \n#>ab|`\r\t\u2028"))
def test_the_first_paragraph_of_odd_text_is_what_a_plain_reading_gives(body: str) -> None:
    assert first_paragraph(body) == _slow_first_paragraph(body)


def test_a_paragraph_as_long_as_a_document_is_cut() -> None:
    assert first_paragraph("a" * MAX_DESCRIPTION_CHARS) == "a" * MAX_DESCRIPTION_CHARS
    assert first_paragraph("ab\n" * MAX_DESCRIPTION_CHARS) == ("ab " * MAX_DESCRIPTION_CHARS)[:4096] + "..."


def test_text_is_cut_only_when_it_is_longer() -> None:
    assert cut("a" * 140, 140) == "a" * 140
    assert cut("a" * 141, 140) == "a" * 140 + "..."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e9\u4e2d\U0001f600", "plain \u00e9\u4e2d\U0001f600"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\rd", "a\\x0ab\\x09c\\x0dd"),
        ("\x00\x7f\x85\x9b", "\\x00\\x7f\\x85\\x9b"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("a\u200bb\u200dc\ufeff", "a\\u200bb\\u200dc\\ufeff"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\U000e0041", "\\U000e0041"),
        ("\u3164\u00ad", "\\u3164\\xad"),
        ("\ud800", "\\ud800"),
        ("a\xa0b\u3000c", "a\xa0b\u3000c"),
    ],
)
def test_what_acts_on_a_terminal_or_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert escaped(text) == shown
    assert has_unsafe(text) == (text != shown)


def test_every_control_and_format_character_of_unicode_is_escaped() -> None:
    passed = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp") and not has_unsafe(chr(code))
    ]

    assert passed == []


def test_an_error_repeats_only_a_short_harmless_part() -> None:
    assert quoted("a\nb") == "'a\\x0ab'"
    assert len(quoted("x" * 1000)) < 100


def test_one_line_joins_on_every_kind_of_white_space() -> None:
    assert one_line(" a\n\tb\u2028c\x85d \u3000 e ") == "a b c d e"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("see [the docs](iii://a) now", "see the docs now"),
        ("![alt](http://x)", "alt"),
        ("[`code`](iii://a)", "`code`"),
        ("a\n- [b](c)", "a - b"),
        ("[a][b]", "\\[a\\]\\[b\\]"),
        ("<b>", "\\<b\\>"),
        ("\\[a](b)", "\\\\a"),
        ("[[a](b)](c)", "\\[a\\](c)"),
        ("x](iii://evil)", "x\\](iii://evil)"),
        ("\x1b[0m", "\\x1b\\[0m"),
    ],
)
def test_a_line_of_a_generated_document_cannot_open_a_link(text: str, line: str) -> None:
    assert plain_line(text) == line


def test_a_line_is_cut_before_it_is_escaped() -> None:
    assert plain_line("[" * 200, 140) == "\\[" * 140 + "..."


@given(st.text(st.sampled_from("ab[]()<>\\!`\n\r\u2028\x1b \u202e"), max_size=40))
def test_no_text_makes_a_second_line_or_a_bracket_that_counts(text: str) -> None:
    line = plain_line(text)

    assert is_harmless(line)
    # With every escaped pair taken out, nothing is left that Markdown would act on.
    assert not re.search(r"[\[\]<>]", re.sub(r"\\.", "", line))
