"""Front matter: where it lies, what it says, what is refused, and that both readers agree."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iii_directory.documents.frontmatter import FrontMatterError, load, read, scan, split
from iii_directory.limits import MAX_FRONT_MATTER_BYTES, MAX_FRONT_MATTER_DEPTH, MAX_FRONT_MATTER_VALUES

# Where it lies


@pytest.mark.parametrize(
    ("text", "block", "body"),
    [
        ("---\na: b\n---\nbody", "a: b\n", "body"),
        ("---\na: b\n---\n\nbody\n", "a: b\n", "\nbody\n"),
        ("---\n---\nbody", "", "body"),
        ("---\r\na: b\r\n---\r\nbody", "a: b\r\n", "body"),
        ("---  \na: b\n---\t\nbody", "a: b\n", "body"),
        ("\ufeff---\na: b\n---\nbody", "a: b\n", "body"),
        ("---\na: b\n---", "a: b\n", ""),
        ("---\na: |\n  x\n  ---\n---\nbody", "a: |\n  x\n  ---\n", "body"),
        ("---\na: b\n---- \n---\nbody", "a: b\n---- \n", "body"),
        ("---\na: b\n--- c\n---\nbody", "a: b\n--- c\n", "body"),
        ("---\na: b\n---\nx\n---\ny", "a: b\n", "x\n---\ny"),
        ("---\n\n---\nbody", "\n", "body"),
    ],
)
def test_a_block_between_two_fences_is_split_from_its_body(text: str, block: str, body: str) -> None:
    assert split(text) == (block, body)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "body",
        "---",
        "---\n",
        "---\na: b\n",
        "--- a\nb\n---\n",
        "----\na: b\n----\n",
        " ---\na: b\n---\n",
        "\n---\na: b\n---\n",
        "---\na: b\n ---\nbody",
        "---\u2028a: b\u2028---\u2028body",
        "---\ra: b\r---\rbody",
    ],
)
def test_a_text_without_two_fences_is_all_body(text: str) -> None:
    assert split(text) == (None, text)


def test_a_byte_order_mark_belongs_to_no_body() -> None:
    assert split("\ufeffbody") == (None, "body")


# What it says


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("", {}),
        ("\n\n", {}),
        ("# only a comment\n", {}),
        ("title: How to query\n", {"title": "How to query"}),
        ('title: "How: to"\n', {"title": "How: to"}),
        ("title: 'How # to'\n", {"title": "How # to"}),
        ('title: ""\n', {"title": ""}),
        ("title:\n", {"title": None}),
        ("function_id: db::query\n", {"function_id": "db::query"}),
        ("functions:\n  - a::b\n  - c\n", {"functions": ["a::b", "c"]}),
        ("functions:\n- a\n- b\ntitle: x\n", {"functions": ["a", "b"], "title": "x"}),
        ("version: 1.2.3\n", {"version": "1.2.3"}),
        ("count: 12\n", {"count": 12}),
        ("a: b  \n\n# c\nd: e\n", {"a": "b", "d": "e"}),
        ("title: \u4e2d\u6587 \U0001f600\n", {"title": "\u4e2d\u6587 \U0001f600"}),
        ("link: see iii://a/b\n", {"link": "see iii://a/b"}),
    ],
)
def test_plain_lines_are_read_without_a_parser(block: str, values: dict[str, Any]) -> None:
    assert scan(block) == values
    assert load(block) == values


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("title: No\n", {"title": "No"}),
        ("on: off\n", {"on": "off"}),
        ("date: 2024-01-31\n", {"date": "2024-01-31"}),
        ("date: 2024-01-31 10:00:00\n", {"date": "2024-01-31 10:00:00"}),
        ("time: 12:30:45\n", {"time": "12:30:45"}),
        ("hex: 0x1F\noctal: 0o17\n", {"hex": 31, "octal": 15}),
        ("zip: 012\nsigned: +007\nold: 0o9\n", {"zip": 12, "signed": 7, "old": "0o9"}),
        ("yes: true\nno: False\nnone: ~\n", {"yes": True, "no": False, "none": None}),
        ("f: 1.5\ne: -2.5e3\ng: 1e3\nh: 5.\n", {"f": 1.5, "e": -2500.0, "g": 1000.0, "h": 5.0}),
        ("n: -7\nbig: 12345678901234567890\n", {"n": -7, "big": 12345678901234567890}),
        (f"long: {'1' * 65}\n", {"long": "1" * 65}),
        ("under: 1_000\nsexagesimal: 1:30\n", {"under": "1_000", "sexagesimal": "1:30"}),
        ("bad: .nan\nworse: .inf\nhuge: 1e999\n", {"bad": ".nan", "worse": ".inf", "huge": "1e999"}),
        ("a: [b, {c: d}]\n", {"a": ["b", {"c": "d"}]}),
        ("a: >-\n  one\n  two\n", {"a": "one two"}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
        ("a: one\n  two\n", {"a": "one two"}),
        ("a: b # c\n", {"a": "b"}),
        ('a: "\\u00e9\\n"\n', {"a": "\u00e9\n"}),
        ("1: a\ntrue: b\n", {"1": "a", "true": "b"}),
        ("<<: {a: b}\n", {"<<": {"a": "b"}}),
        ("~\n", {}),
        ("a:\n  - b\n  -\n", {"a": ["b", None]}),
    ],
)
def test_yaml_beyond_the_plain_subset_is_read_as_data_that_json_can_carry(
    block: str, values: dict[str, Any]
) -> None:
    assert scan(block) is None
    assert read(block) == (values, None, False)


def test_windows_line_ends_are_read_like_others() -> None:
    assert read("a: b\r\nc:\r\n  - d\r\n").values == {"a": "b", "c": ["d"]}


# What is refused


@pytest.mark.parametrize(
    ("block", "fragment"),
    [
        ("a: !!python/object/apply:os.system [x]\n", "tags"),
        ("a: !x b\n", "tags"),
        ("a: ! b\n", "tags"),
        ("!!map {a: b}\n", "tags"),
        ("!k a: b\n", "tags"),
        ("a: &x b\n", "anchors"),
        ("a: &x b\nc: *x\n", "anchors"),
        ("&x a: b\n", "anchors"),
        ("a: b\na: c\n", "twice"),
        ("a: b\n'a': c\n", "twice"),
        ("x: {a: 1, a: 2}\n", "twice"),
        ("a: [b\n", "not valid YAML (line 3)"),
        ("a: b\n\tc: d\n", "not valid YAML"),
        ("a: \x01\n", "not valid YAML"),
        ("- a\n- b\n", "not a list of"),
        ("words\n", "not a list of"),
        ("a: b\n--- \nc: d\n", "more than one"),
        ("[a, b]: c\n", "not a word"),
        ("? {a: b}\n: c\n", "not a word"),
        ("a: " + "[" * 9 + "]" * 9 + "\n", "levels deep"),
        ("a: [" + "x," * MAX_FRONT_MATTER_VALUES * 3 + "]\n", "values"),
        ("a: " + "b" * MAX_FRONT_MATTER_BYTES + "\n", "larger than"),
        ("a: " + "\u00e9" * (MAX_FRONT_MATTER_BYTES // 2) + "\n", "larger than"),
    ],
)
def test_a_block_that_is_not_plain_data_is_refused_with_its_reason(block: str, fragment: str) -> None:
    values, problem, repaired = read(block)

    assert values == {}
    assert fragment in str(problem)
    assert not repaired


def test_a_block_as_deep_and_as_large_as_allowed_is_read() -> None:
    deep = "a: " + "[" * (MAX_FRONT_MATTER_DEPTH - 1) + "]" * (MAX_FRONT_MATTER_DEPTH - 1) + "\n"
    large = "a: " + "b" * (MAX_FRONT_MATTER_BYTES - 4) + "\n"
    many = "".join(f"k{count}: x\n" for count in range(MAX_FRONT_MATTER_VALUES - 1))

    assert read(deep).problem is None
    assert len(read(large).values["a"]) == MAX_FRONT_MATTER_BYTES - 4
    assert len(read(many).values) == MAX_FRONT_MATTER_VALUES - 1


def test_half_a_character_is_refused_by_whichever_parser_lets_it_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")

    with pytest.raises(FrontMatterError, match="half a Unicode character"):
        load('a: "\\ud800"\n')


# A second try


@pytest.mark.parametrize(
    ("block", "values"),
    [
        ("description: Use this: it works\n", {"description": "Use this: it works"}),
        ("title: a\ndescription: it's: fine  \n", {"title": "a", "description": "it's: fine"}),
        ("description: Steps to take:\n x: y\n", None),
        ("description: a: b\nname: c: d: e\n", {"description": "a: b", "name": "c: d: e"}),
        ("description: a: b # c\n", None),
        ("description: a: b\n  c: d\n", None),
        ("description: a: b\nlist: [\n", None),
    ],
)
def test_an_unquoted_colon_is_read_as_if_quoted_when_only_one_reading_is_left(
    block: str, values: dict[str, Any] | None
) -> None:
    found = read(block)

    assert found.values == (values or {})
    assert found.repaired == (values is not None)
    assert found.problem is not None


# Both readers agree

_WORDS = [
    *("a", "b", "title", "to do", "yes", "No", "true", "null", "on", "y", "~", "1", "0", "007", "12", "1.5"),
    *("1.2.3", "1e3", "0x1f", "12:30", "2024-01-01", ".inf", "<<", "=", "db::query", "iii://a", "it's"),
    *("\u00e9", "\xa0", "\u4e2d", "\U0001f600", "x, y", "a [b]", "a&b", "c# d", "e|f", "g?", "100%"),
]
_LETTERS = ["a", "title", "to do", "db::query", "it's", "\u00e9", "\u4e2d", "x, y", "1.2.3", "12", "c# d"]
_MARKS = [*" \t:#-'\"\\[]{},&*!|>%@`?=\n\r", ": ", " #", "- ", ":\n", "  ", "\n- ", "\n  - "]
_ODD = ["\x00", "\x1b", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffe", "\u200b"]
_KEYS = ["title", "a", "b", "c", "d", "e", "on", "a-b", "_x", "1", "", " a", "- a", "#"]
_COLONS = [":", " : ", ":  ", ":\n  - ", ":\n- ", ': "', ": '"]
_ENDS = [" ", '"', "'", "\n", "\n# c", "\n\n", "\n  - x", "\n- x", "\n  more"]


def random_block(rng: random.Random) -> str:
    """A block that is nearly plain: most lines are, some have one thing in them that is not."""
    lines: list[str] = []
    keys = rng.sample(_KEYS, len(_KEYS)) if rng.random() < 0.2 else rng.sample(_KEYS[:6], 6)
    for key in keys[: rng.randint(0, 5)]:
        parts = rng.choices(_LETTERS if rng.random() < 0.9 else _WORDS) + rng.choices(
            _WORDS, k=rng.randint(0, 3)
        )
        if rng.random() < 0.1:
            parts.insert(rng.randint(0, len(parts)), rng.choice(_MARKS if rng.random() < 0.8 else _ODD))
        colon = rng.choice(_COLONS) if rng.random() < 0.3 else ": "
        end = rng.choice(_ENDS) if rng.random() < 0.3 else ""
        lines.append(key + colon + " ".join(parts) + end + "\n")
    return "".join(lines)


_PARTS = st.lists(st.sampled_from([*_WORDS, *_MARKS, *_ODD]), max_size=25)
_BLOCKS = st.one_of(
    st.randoms(use_true_random=False).map(random_block),
    _PARTS.map(lambda parts: "".join(parts) + "\n"),
    st.text(max_size=40).map(lambda text: text + "\n"),
)


def assert_readers_agree(block: str) -> None:
    quick = scan(block)
    if quick is not None:
        assert load(block) == quick
        for loader in (yaml.CSafeLoader, yaml.SafeLoader):
            assert (yaml.load(block, loader) or {}) == quick


@settings(max_examples=600, deadline=None)
@given(_BLOCKS)
@example("a:\n- b\n- c\n")
@example("a: b\n\n  \n# c\nd:\n   - e\n   - f\n")
@example("a: b:\n")
@example("a:\n - b\n  - c\n")
def test_wherever_the_scanner_answers_every_yaml_reader_says_the_same(block: str) -> None:
    assert_readers_agree(block)


def test_many_nearly_plain_blocks_need_no_parser() -> None:
    rng = random.Random(1)

    blocks = [random_block(rng) for _ in range(2000)]

    assert sum(scan(block) is not None and len(block) > 10 for block in blocks) > 250
    for block in blocks:
        assert_readers_agree(block)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_a_million_blocks_are_read_alike(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100_000):
        assert_readers_agree(random_block(rng))


def _depth(value: object) -> int:
    children = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max(map(_depth, children), default=0)


def test_a_block_that_swells_when_it_becomes_json_is_refused() -> None:
    """Keys without values are the shortest: ``a,`` becomes ``"a":null,``."""
    lists = [f"{number}: {{{','.join(string.ascii_letters)}}}\n" for number in range(8)]

    found = read("".join(lists))

    assert (found.values, found.problem) == ({}, "it is more than 4 times as large once it is JSON")


@settings(max_examples=300, deadline=None)
@given(_BLOCKS)
def test_whatever_the_block_its_values_are_small_plain_json(block: str) -> None:
    found = read(block)

    written = json.dumps(found.values, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    assert json.loads(written) == found.values
    assert len(written) <= max(4 * len(block.encode("utf-8", "surrogatepass")), 1024)
    assert _depth(found.values) <= MAX_FRONT_MATTER_DEPTH + 1


@given(st.text(max_size=60), st.text(max_size=60).filter(lambda block: "---" not in block))
def test_a_block_and_a_body_put_together_come_apart_again(body: str, block: str) -> None:
    block = f"{block}\n" if block else ""

    assert split(f"---\n{block}---\n{body}") == (block, body)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tags: [a, b-c, some words]", ["a", "b-c", "some words"]),
        ("tags: [ a.b ,c/d ] ", ["a.b", "c/d"]),
        ("tags: [a, no]", None),
        ("tags: [a, 'b']", None),
        ("tags: [a, [b]]", None),
        ("tags: [a: b]", None),
        ("tags: []", None),
    ],
)
def test_a_list_of_plain_words_on_its_key_s_line_needs_no_yaml_parser(
    line: str, expected: list[str] | None
) -> None:
    block = f"{line}\n"

    assert scan(block) == (None if expected is None else {"tags": expected})
    if expected is not None:
        assert load(block) == {"tags": expected}
