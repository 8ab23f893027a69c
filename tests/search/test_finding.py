"""What one request finds over several kinds: sections, reasons, corrections, and an honest nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.search.corpora import ask, documents, ids, index_of, own, read_yaml, skill_of

from iii_directory.documents.model import Provenance
from iii_directory.search.fields import Document
from iii_directory.search.finding import find
from iii_directory.search.search_replies import row_of
from iii_directory.search.searching import of_function

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iii_directory.search.index import Index
    from iii_directory.search.search_request import Kind

BOTH: Mapping[Kind, Index] = {"skill": own("skills"), "function": own("functions")}


def whys(request: str, kind: Kind) -> dict[str, str]:
    finding = find(BOTH, request)
    return {hit.document.id: hit.why for s in finding.sections if s.kind == kind for hit in s.hits}


def test_each_kind_that_has_something_has_a_section_the_best_fitting_first() -> None:
    finding = find(BOTH, "transcribe a recording")

    assert [section.kind for section in finding.sections] == ["function", "skill"]
    assert finding.sections[0].hits[0].document.id == "speech::transcribe"
    assert finding.sections[1].hits[0].document.id == "media/transcription"


def test_a_kind_without_anything_that_fits_has_no_section() -> None:
    finding = find(BOTH, "geocode an address")

    assert [section.kind for section in finding.sections] == ["function"]


def test_only_the_kinds_asked_for_are_searched() -> None:
    finding = find(BOTH, "transcribe a recording", kinds=["skill"])

    assert [section.kind for section in finding.sections] == ["skill"]


def test_the_reason_names_the_words_and_where_they_stand() -> None:
    assert whys("resize a photo", "function")["images::resize"] == "resize (name); photo→image (description)"
    assert (
        whys("resize a photo", "skill")["media/image-editing"] == "resize (description); photo→image (name)"
    )


def test_the_reason_is_at_most_sixty_characters() -> None:
    request = "extract compress convert resize pictures thumbnails watermarks metadata profiles"

    reasons = whys(request, "skill")

    assert all(0 < len(why) <= 60 for why in reasons.values())


def test_a_document_of_a_skill_counts_for_its_skill_and_is_named() -> None:
    finding = ask(own("skills"), "fill in form fields of a PDF", "skill")

    best = finding.sections[0].hits[0]
    assert (best.document.id, best.inside) == ("office/pdf", "office/pdf/forms")
    assert len([one for one in ids(finding) if one.startswith("office/pdf")]) == 1


def test_a_hit_of_its_body_alone_is_known_as_one() -> None:
    only_body = {
        hit.document.id: hit.only_body
        for hit in ask(own("skills"), "linearization", "skill").sections[0].hits
    }

    assert only_body == {"office/pdf": True}
    assert not ask(own("skills"), "slides", "skill").sections[0].hits[0].only_body


def test_nothing_that_fits_leaves_as_many_that_came_nearest_as_were_asked_for() -> None:
    finding = find(BOTH, "which colour should the kitchen table of my aunt have")

    assert not finding.fits
    assert finding.sections == []
    assert len(finding.nearest) == 5


def test_gibberish_finds_nothing_at_all() -> None:
    finding = find(BOTH, "zxqv blorp fnord")

    assert (finding.fits, finding.nearest) == (False, [])


def test_a_misspelt_word_is_corrected_and_said_so() -> None:
    finding = find(BOTH, "screnshot of a page")

    assert finding.corrected == {"screnshot": "screenshot"}
    assert ids(finding)[0] == "web::screenshot"


def test_a_word_of_english_is_never_taken_for_a_misspelling() -> None:
    index = index_of([(Document("a::later", description="Do it later."), "")])

    assert ask(index, "water").corrected == {}
    assert not ask(index, "water").fits


def test_an_exact_id_comes_first_in_any_case() -> None:
    finding = find(BOTH, "Queue::DeadLetters")

    assert finding.sections[0].hits[0].document.id == "queue::deadLetters"
    assert finding.sections[0].hits[0].why == "exact id"


def test_a_name_that_only_one_has_is_as_good_as_its_id() -> None:
    assert find(BOTH, "geocode").sections[0].hits[0].why == "exact id"
    assert find(BOTH, "send", kinds=["function"]).sections[0].hits[0].why == "send (name)"


def test_an_unknown_function_id_does_not_fit_however_near_it_comes() -> None:
    finding = find(BOTH, "mailer::sendAll")

    assert not finding.fits
    assert ids(finding)[0] == "mailer::send"


def test_what_is_not_shown_is_not_found_even_by_its_id() -> None:
    def shown(document: Document) -> bool:
        return document.worker != "mailer"

    assert "mailer::send" not in ids(find(BOTH, "send an e-mail", shown=shown))
    assert "mailer::send" not in ids(find(BOTH, "mailer::send", shown=shown))


def test_a_filter_finds_what_it_leaves_however_much_there_is_of_the_rest() -> None:
    crowd = [(Document(f"crowd/n{number}", description="resize image"), "") for number in range(1000)]
    index = index_of([*crowd, (Document("mine/one", description="Sometimes has to resize."), "")])

    finding = find({"skill": index}, "resize", shown=lambda one: one.id.startswith("mine/"))

    assert ids(finding) == ["mine/one"]


def test_another_spelling_of_a_known_id_is_an_exact_match() -> None:
    finding = find(
        BOTH, "iii://office/pdf", exactly=lambda kind, text: "office/pdf" if kind == "skill" else None
    )

    assert finding.sections[0].hits[0].document.id == "office/pdf"


def test_keywords_are_found_like_a_title() -> None:
    rows = documents(read_yaml("skills.yaml"))
    without = index_of((document._replace(keywords=()), body) for document, body in rows)

    assert ids(ask(own("skills"), "podman", "skill")) == ["engineering/docker"]
    assert not ask(without, "podman", "skill").fits


def test_the_same_question_gives_the_same_answer() -> None:
    assert find(BOTH, "send a message to people") == find(BOTH, "send a message to people")


def test_one_word_of_a_document_does_not_count_for_two_words_of_a_question() -> None:
    events = (Document("sessions/events", "Events", "Send events to a session."), "")

    finding = find({"skill": index_of([events])}, "send mail")

    assert not finding.fits


def test_a_page_of_a_skill_is_shown_with_its_own_title_and_the_id_of_its_skill() -> None:
    (best, *_) = find({"skill": own("skills")}, "fill in a form", skill_of=skill_of).sections[0].hits

    row = row_of(best, "brief")

    page = own("skills").find("office/pdf/forms")
    assert page is not None
    assert (row["id"], row["in"], row["title"]) == ("office/pdf", "office/pdf/forms", page.title)
    assert page.description.startswith(row["description"].rstrip("…"))


def test_the_manual_of_this_package_comes_after_everything_that_fits() -> None:
    manual = Document(
        "iii-directory/prompts", "Prompts", "Send mail with a prompt.", provenance=Provenance("built-in")
    )
    mailer = Document("mailer/send", "", "Sends mail to people.", provenance=Provenance("registered"))
    both = index_of([(manual, ""), (mailer, "")])

    hits = find({"skill": both}, "send mail with a prompt").sections[0].hits

    assert [hit.document.id for hit in hits] == ["mailer/send", "iii-directory/prompts"]


def test_a_function_that_is_switched_off_says_so() -> None:
    off = of_function(
        {
            "function_id": "skills::create",
            "description": "Create a skill.",
            "metadata": {"allow_writing": False},
        }
    )

    (hit,) = find({"function": index_of([(off, "")])}, "create a skill").sections[0].hits

    assert row_of(hit, "brief")["callable"] is False
