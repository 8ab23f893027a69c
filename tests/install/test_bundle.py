"""What a source offers, before it is written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iii_directory import limits
from iii_directory.disk.install_record import RegistrySource
from iii_directory.documents import frontmatter
from iii_directory.errors import DirectoryError
from iii_directory.install.bundle import make_bundle, prompt_file, registry_bundle
from iii_directory.registry.registry_messages import BundleAnswer, PromptAnswer, SkillAnswer

SOURCE = RegistrySource("db", tag="latest")


def bundle_of(*entries: tuple[str, bytes]) -> Any:
    return make_bundle("db", SOURCE, "1.0.0", entries)


def test_dot_files_are_left_out_and_named() -> None:
    bundle = bundle_of(("SKILL.md", b"s"), (".env", b"x"), ("a/.git/config", b"y"))

    assert list(bundle.files) == ["SKILL.md"]
    assert bundle.left_out == (".env", "a/.git/config")


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([], "empty"),
        ([(".env", b"only hidden")], "empty"),
        ([("../x.md", b"")], "relative"),
        ([("ok.md", b""), (".git/../../x", b"")], "relative"),
        ([("a.md", b""), ("A.md", b"")], "case"),
        ([("a", b""), ("a/b", b"")], "folder"),
        ([("big.md", b"x" * (limits.MAX_BODY_BYTES + 1))], "256 KiB"),
        ([("big.bin", b"x" * (limits.MAX_BUNDLE_BYTES + 1))], "16 MiB"),
        ([(f"{n}.txt", b"") for n in range(limits.MAX_BUNDLE_FILES + 1)], "512 files"),
    ],
)
def test_a_bundle_with_one_wrong_thing_in_it_is_refused_as_a_whole(
    entries: list[tuple[str, bytes]], why: str
) -> None:
    with pytest.raises(DirectoryError, match=f"D340 .*{why}.*nothing was changed"):
        bundle_of(*entries)


def test_a_bundle_at_every_limit_passes() -> None:
    most = [(f"{n}.txt", b"") for n in range(limits.MAX_BUNDLE_FILES - 1)]

    assert len(bundle_of(*most, ("a.md", b"x" * limits.MAX_BODY_BYTES)).files) == limits.MAX_BUNDLE_FILES
    assert bundle_of(("a.bin", b"x" * limits.MAX_BUNDLE_BYTES)).files


@pytest.mark.parametrize("namespace", ["", "..", "fn", "A", "a/b", ".x"])
def test_a_namespace_that_is_not_a_segment_is_refused(namespace: str) -> None:
    with pytest.raises(DirectoryError, match=r"D340"):
        make_bundle(namespace, SOURCE, "1", [("a.md", b"")])


def test_a_registry_answer_loses_one_leading_skills_and_its_prompts_become_files() -> None:
    answer = BundleAnswer(
        "1.2.3",
        (
            SkillAnswer("skills/SKILL.md", "# a"),
            SkillAnswer("skills/skills/b.md", "b"),
            SkillAnswer("c.md", "c"),
        ),
        (PromptAnswer("send-email", "compose and send", {"type": "object"}, "Compose."),),
    )

    bundle = registry_bundle(SOURCE, "db", answer)

    assert list(bundle.files) == ["SKILL.md", "c.md", "prompts/send-email.md", "skills/b.md"]
    assert bundle.resolved == "1.2.3"
    assert bundle.files["prompts/send-email.md"] == (
        b"---\nname: send-email\ndescription: compose and send\n"
        b'args_schema: {"type": "object"}\n---\nCompose.\n'
    )


def test_the_same_path_with_and_without_the_prefix_is_refused() -> None:
    answer = BundleAnswer("1", (SkillAnswer("skills/a.md", "1"), SkillAnswer("a.md", "2")), ())

    with pytest.raises(DirectoryError, match="twice"):
        registry_bundle(SOURCE, "db", answer)


@pytest.mark.parametrize("name", ["", "Bad Name", "../x", "a/b", "x" * 65, "a\nb"])
def test_a_prompt_with_a_wrong_name_is_refused(name: str) -> None:
    answer = BundleAnswer("1", (), (PromptAnswer(name, "d", None, "c"),))

    with pytest.raises(DirectoryError, match=r"D340"):
        registry_bundle(SOURCE, "db", answer)


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(DirectoryError, match="Unicode"):
        registry_bundle(SOURCE, "db", BundleAnswer("1", (SkillAnswer("a.md", "\ud800"),), ()))


def test_a_prompt_without_a_description_gets_one_so_that_it_is_listed() -> None:
    text, _ = prompt_file(PromptAnswer("hello", " ", None, "Hi.\n"))

    assert text == "---\nname: hello\ndescription: The prompt hello\n---\nHi.\n"


def test_a_schema_that_does_not_fit_is_left_out_with_a_finding() -> None:
    deep: Any = "end"
    for _ in range(30):
        deep = {"properties": deep}
    answer = BundleAnswer("1", (), (PromptAnswer("hello", "d", deep, "Hi."),))

    bundle = registry_bundle(SOURCE, "db", answer)

    assert b"args_schema" not in bundle.files["prompts/hello.md"]
    assert bundle.findings[0].subject == "db/prompts/hello.md"


@given(st.text(max_size=60))
def test_any_description_reads_back_as_one_line_of_itself(description: str) -> None:
    try:
        text, _ = prompt_file(PromptAnswer("p", description, None, "body"))
        text.encode()
    except UnicodeEncodeError:
        return
    block, body = frontmatter.split(text)
    assert block is not None

    read = frontmatter.read(block)

    assert read.problem is None
    assert read.values["name"] == "p"
    assert read.values["description"] == " ".join(description.split()) or "The prompt p"
    assert body == "body\n"


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.text(max_size=8)
        | st.booleans()
        | st.integers(-1000, 1000)
        | st.lists(st.text(max_size=5), max_size=3),
        max_size=4,
    )
)
def test_a_schema_reads_back_as_itself(schema: dict[str, Any]) -> None:
    text, complete = prompt_file(PromptAnswer("p", "d", schema, "body"))
    block, _ = frontmatter.split(text)
    assert block is not None

    if complete:
        assert frontmatter.read(block).values["args_schema"] == schema
