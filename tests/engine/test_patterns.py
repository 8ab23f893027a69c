"""Patterns: the same answers as Python's, and never more steps than the text times the pattern."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iii_directory.engine.schemas import PatternError, _compiled, search
from iii_directory.limits import MAX_PATTERN_CHARS, MAX_PATTERN_STEPS

EMAIL = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
HTML_EMAIL = (
    r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    r"(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"
)
SEMVER = (
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
)
UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
DATE = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$"
PASSWORD = r"^(?=.*[A-Z])(?=.*\d)(?!.*\s).{8,}$"


def count(pattern: str, text: str) -> tuple[bool, int]:
    """The answer and the number of steps it took."""
    spent = [0]
    return search(pattern, text, spent.append), sum(spent)


def found(pattern: str, text: str) -> bool:
    return count(pattern, text)[0]


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("", ["", "x"], []),
        ("b", ["b", "abc"], ["", "a"]),
        ("^[a-z0-9-]+$", ["a-1"], ["", "A", "a b", "a\n"]),
        ("^[a-z0-9]+(-[a-z0-9]+)*$", ["a", "a-1-b"], ["-a", "a--b", "a-"]),
        (EMAIL, ["a@b.c", "x.y@z.example.org"], ["a@b", "a b@c.d", "@b.c"]),
        (HTML_EMAIL, ["a@b", "x+y@z.example.org"], ["a@-b", "a@b..c", "@b"]),
        (SEMVER, ["1.2.3", "1.0.0-alpha.1+build.5", "1.0.0-0a"], ["1.2", "01.2.3", "1.0.0-01", "1.0.0-"]),
        (UUID, ["01234567-89ab-cdef-0123-456789ABCDEF"], ["01234567-89ab-cdef-0123-456789ABCDE"]),
        (DATE, ["2024-02-29"], ["2024-13-01", "2024-1-1", "2024-01-011"]),
        (r"^\d{1,3}(\.\d{1,3}){3}$", ["127.0.0.1"], ["1.2.3", "1.2.3.4.5", "1234.1.1.1"]),
        (PASSWORD, ["Passw0rd"], ["passw0rd", "Password", "Pass w0rd", "P4ss"]),
        ("^(?!internal)", ["a", ""], ["internal-a"]),
        ("^(a|bc|)$", ["", "a", "bc"], ["b", "abc"]),
        (r"\bend\b", ["the end.", "end"], ["ends", "bend"]),
        (r"a\Bb", ["ab"], ["a b"]),
        (r"^\x41\u00e9\.\/\-\t$", ["A\u00e9./-\t"], ["A"]),
        (r"^[]a]$|^[^]b]$", ["]", "a", "x"], ["b", "bb"]),
        (r"^[\]\\\w]$", ["]", "\\", "x"], ["-"]),
        ("^.{1,4096}$", ["x", "x" * 4096], ["", "x" * 4097, "\n"]),
        ("^a{2}b{2,}c{0,2}d{,1}$", ["aabb", "aabbbccd"], ["abb", "aabbccc", "aabbdd"]),
        ("^a{x}{,$", ["a{x}{,"], ["a"]),
        ("^a+?b*?c??$", ["a", "aabbc"], ["b"]),
        ("^(?P<one>a)(?<two>b)(?:c)$", ["abc"], ["ab"]),
        (r"(?i)^äb\w$", ["ÄBx", "äbX"], ["ac"]),
        (r"\A\d\Z|\A\s\z", ["1", " "], ["11", "1\n"]),
        ("\U0001f600+$", ["\U0001f600\U0001f600"], ["x"]),
        ("|".join(f"^word{n}$" for n in range(300)), ["word0", "word299"], ["word300", "word"]),
    ],
)
def test_ordinary_patterns_work(pattern: str, fitting: list[str], other: list[str]) -> None:
    assert [text for text in fitting if not found(pattern, text)] == []
    assert [text for text in other if found(pattern, text)] == []


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^(a+)+$", "a" * 2000 + "!", False),
        ("^(a*)*$", "a" * 2000 + "!", False),
        ("^(a|a)*$", "a" * 2000 + "!", False),
        ("^(a|aa)+$", "a" * 2000 + "!", False),
        ("(.*a){20}", "b" * 2000, False),
        ("(.*a){20}", "a" * 2000, True),
        ("a*" * 50 + "b", "a" * 2000, False),
        ("a?" * 200 + "a" * 200, "a" * 200, True),
        ("^((a?b?)*)*$", "ab" * 1000 + "!", False),
        (r"^(\w+\s?)*$", "word " * 400 + "!", False),
        (".*.*=.*", "x" * 2000, False),
        ("x+x+y", "x" * 2000, False),
        ("((a{0,5}){0,5})*c", "a" * 2000, False),
    ],
)
def test_a_pattern_with_countless_ways_takes_no_more_steps_than_its_size_allows(
    pattern: str, text: str, fits: bool
) -> None:
    answer, steps = count(pattern, text)

    assert answer is fits
    assert steps <= (len(text) + 1) * len(_compiled(pattern))


def test_the_budget_may_stop_a_search() -> None:
    def refuse(steps: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        search("a", "b", refuse)
    with pytest.raises(InterruptedError):
        search("(?=(?!b))", "b", refuse)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "(a",
        "a)",
        "[",
        "[a",
        "[]",
        "[b-a]",
        "*",
        "a**",
        "a*+",
        "|+",
        "(?",
        "{2}",
        "a{2}{3}",
        "a{3,2}",
        "\\",
        r"\1",
        r"(a)\1",
        r"\p{L}",
        r"\y",
        r"\xg0",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a)",
        "(?#a)",
        "(?P=a)",
        "a(?i)b",
        "(?x)a",
        "(?(1)a|b)",
        "x" * (MAX_PATTERN_CHARS + 1),
        f"x{{{MAX_PATTERN_STEPS}}}",
        f"(x{{100}}){{{MAX_PATTERN_STEPS // 100}}}",
        "()" + "{9999999}",
        "(x{2000}|y{2000}|z{2000})(x{2000}|y{2000})",
        "(" * 2000 + ")" * 2000,
    ],
)
def test_an_unusable_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        found(pattern, "x")


atoms = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", "^", "$", r"\b", "(?:)", r"\n"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{0,2}", "{1,}", "{,1}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda part: f"(?={part})"),
        inner.map(lambda part: f"(?!{part})"),
    ),
    max_leaves=8,
)


@settings(max_examples=1000, deadline=None)
@given(patterns, st.text("ab\n", max_size=6))
def test_the_answer_is_the_one_python_gives(pattern: str, text: str) -> None:
    assert found(pattern, text) is (re.search(pattern.replace("$", r"\Z"), text) is not None)
