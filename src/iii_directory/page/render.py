"""Turn the data of a view into HTML or Markdown. Documents are hostile: everything is escaped or cleaned."""

from __future__ import annotations

import json
import posixpath
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from iii_directory.documents.provenance import Provenance
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME
from iii_directory.limits import MAX_PAGE_MARKDOWN_CHARS
from iii_directory.shapes import object_of
from iii_directory.text import nanoseconds_of, without_controls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    from iii_directory.page.views import View
    from iii_directory.shapes import Json

TEMPLATES: Final = Path(__file__).parent / "templates"
_TAGS: Final = {
    *(
        "a",
        "b",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
    ),
    *("hr", "i", "img", "li", "ol", "p", "pre", "s", "span", "strong", "sub", "sup"),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES: Final = {
    "a": {"href", "title"},
    "code": {"class"},
    "div": {"class"},
    "img": {"src", "alt", "title"},
    "ol": {"start"},
    "span": {"class"},
    "td": {"class"},
    "th": {"class"},
}
_SECONDS: Final = (
    ("year", 31_536_000),
    ("month", 2_592_000),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
)


def html(view: View, **shared: Any) -> str:
    """Render the HTML page of a view."""
    values = {"view": view, "title": view.title, **view.data, **view.extra, **shared}
    return _environment().get_template(f"{view.template}.html").render(values)


def markdown(view: View) -> str:
    """Render the Markdown twin of a view."""
    return _environment().get_template(f"{view.template}.md").render({"title": view.title, **view.data})


def prometheus(metrics: Sequence[Json]) -> str:
    """Write metrics in the text format of Prometheus."""
    lines: list[str] = []
    for metric in metrics:
        name, kind = metric["name"], metric["type"]
        lines += [f"# HELP {name} {metric['help']}", f"# TYPE {name} {kind}"]
        for sample in metric["samples"]:
            labels = dict(sample["labels"])
            part = labels.pop("part", "bucket" if kind == "histogram" else "")
            written = ",".join(f'{key}="{_escaped_label(value)}"' for key, value in labels.items())
            braces = f"{{{written}}}" if written else ""
            lines.append(f"{name}{'_' + part if part else ''}{braces} {sample['value']}")
    return "\n".join(lines) + "\n"


def _escaped_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, select_autoescape

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(("html",)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ago=ago,
        size=size,
        count=lambda number: f"{number:,}",
        path=lambda text: quote(str(text), safe="/"),
        part=lambda text: quote(str(text), safe=""),
        document=document_html,
        code=code_html,
        pretty=lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        source=source_words,
        clean=without_controls,
    )
    return made


def source_words(provenance: Any) -> str:
    """Say in a few words where a document comes from, in the words every door uses."""
    known = object_of(provenance)
    return Provenance.parse(known).mark() if known else "source unknown"


def ago(moment: Any) -> str:
    """Say how long ago an RFC 3339 time was."""
    nanoseconds = nanoseconds_of(moment) if isinstance(moment, str) else None
    if nanoseconds is None:
        return "at an unknown time"
    seconds = int(datetime.now(UTC).timestamp()) - nanoseconds // 1_000_000_000
    for name, length in _SECONDS:
        if seconds >= length:
            number = seconds // length
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "just now"


def size(number: Any) -> str:
    """Write a number of bytes for people."""
    value = float(number or 0)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def document_html(body: Any, skill_id: str = "", title: str = "") -> Any:
    """Render the Markdown of a document as safe HTML.

    ``skill_id`` resolves its relative links; a first heading that repeats ``title`` is left out.
    """
    from markupsafe import Markup

    text = str(body).lstrip()
    if title:
        text = text.removeprefix(f"# {title}\n")
    # A page of ten megabytes helps no reader; the raw file is one click away.
    cut = text[:MAX_PAGE_MARKDOWN_CHARS]
    note = "\n\n*The rest is left out; open the raw document to read all of it.*" if cut != text else ""
    return Markup(_document(cut + note, skill_id))  # noqa: S704 (cleaned by nh3)


@lru_cache(maxsize=64)
def _document(text: str, skill_id: str) -> str:
    import nh3

    made = _parser().render(text, {"skill_id": skill_id})
    return nh3.clean(
        made,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def code_html(text: Any, name: str = "") -> Any:
    """Highlight code by the language of a file name or fence; unknown languages stay plain."""
    from markupsafe import Markup

    return Markup(_highlighted(str(text), name))  # noqa: S704 (escaped by Pygments)


def _highlighted(text: str, name: str) -> str:
    from html import escape

    from pygments import highlight, lexers
    from pygments.formatters import HtmlFormatter
    from pygments.util import ClassNotFound

    find: Any = lexers  # it has no types

    try:
        lexer = find.get_lexer_for_filename(name) if "." in name else find.get_lexer_by_name(name)
    except (ClassNotFound, ValueError):
        return escape(text)
    return highlight(text, lexer, HtmlFormatter(nowrap=True))


def _fence(text: str, name: str, _: str) -> str:
    return _highlighted(text, name)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "highlight": _fence})
    parser.enable(["table", "strikethrough"])
    parser.add_render_rule("link_open", _link)
    for tag in ("heading_open", "heading_close"):
        parser.add_render_rule(tag, _heading)
    parser.add_render_rule("image", _image)
    for cell in ("td_open", "th_open"):
        parser.add_render_rule(cell, _cell)
    return parser


def _link(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token = tokens[index]
    token.attrSet("href", _target(str(token.attrGet("href") or ""), str(env.get("skill_id", ""))))
    return self.renderToken(tokens, index, options, env)


def _heading(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Move headings one level down, because the title of the view is the only first-level heading."""
    token = tokens[index]
    token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    return self.renderToken(tokens, index, options, env)


def _image(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Show images of the skill itself; an image from elsewhere becomes a link, so that nothing is loaded."""
    from html import escape

    token = tokens[index]
    source = str(token.attrGet("src") or "")
    words = self.renderInlineAsText(token.children or [], options, env) or "image"
    target = _target(source, str(env.get("skill_id", "")))
    if target.startswith("/files/"):
        return f'<img src="{escape(target)}" alt="{escape(words)}">'
    return f'<a href="{escape(target)}">{escape(words)}</a>'


def _cell(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Replace the style attribute of an aligned cell, which the page's policy forbids, by a class."""
    token = tokens[index]
    style = str(token.attrs.pop("style", ""))
    if style:
        token.attrSet("class", style.rpartition(":")[2])
    return self.renderToken(tokens, index, options, env)


def _target(href: str, skill_id: str) -> str:
    """Lead links between documents to their views and links to files of the skill to the file view."""
    if href.startswith(SCHEME):
        path = href.removeprefix(SCHEME)
        return (
            f"/functions/{quote(path[3:].replace('/', '::'), safe='')}"
            if path.startswith("fn/")
            else f"/skills/{path}"
        )
    if href.startswith(SKILL_SCHEME):
        return f"/files/{href.removeprefix(SKILL_SCHEME)}"
    parts = urlsplit(href)
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/") or not skill_id:
        return href
    namespace, _, below = skill_id.partition("/")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(below), parts.path))
    if path.startswith(".."):
        return "#"
    if path.endswith(".md"):
        return f"/skills/{namespace}/{path.removesuffix('.md')}"
    return f"/files/{namespace}/{path}"
