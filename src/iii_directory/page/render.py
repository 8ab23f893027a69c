"""Turn the data of a view into HTML or Markdown. Documents are hostile: everything is escaped or cleaned."""

from __future__ import annotations

import json
import posixpath
import shlex
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from iii_directory.documents import frontmatter
from iii_directory.documents.ids import OVERVIEWS
from iii_directory.documents.model import Provenance
from iii_directory.documents.uris import SCHEME, SKILL_SCHEME
from iii_directory.limits import MAX_PAGE_MARKDOWN_CHARS
from iii_directory.shapes import object_of
from iii_directory.text import nanoseconds_of, without_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

    from iii_directory.page.views import View
    from iii_directory.shapes import Json

TEMPLATES: Final = Path(__file__).parent / "templates"
_TAGS: Final = {
    *("a", "b", "br", "code", "del", "em", "i", "img", "s", "span", "strong", "sub", "sup"),
    *("blockquote", "dd", "div", "dl", "dt", "h2", "h3", "h4", "h5", "h6"),
    *("hr", "li", "ol", "p", "pre", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
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
_SECONDS: Final = {"year": 31_536_000, "month": 2_592_000, "day": 86_400, "hour": 3_600, "minute": 60}
_DIFF_LINES: Final = (("+++", "meta"), ("---", "meta"), ("@@", "hunk"), ("+", "plus"), ("-", "minus"))


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
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    for metric in metrics:
        name, kind = metric["name"], metric["type"]
        lines += [f"# HELP {name} {metric['help']}", f"# TYPE {name} {kind}"]
        for sample in metric["samples"]:
            labels = dict(sample["labels"])
            part = labels.pop("part", "bucket" if kind == "histogram" else "")
            written = ",".join(f'{key}="{value.translate(escapes)}"' for key, value in labels.items())
            braces = f"{{{written}}}" if written else ""
            lines.append(f"{name}{'_' + part if part else ''}{braces} {sample['value']}")
    return "\n".join(lines) + "\n"


@cache
def _environment() -> Environment:
    # Imported when the first view is rendered: a bridge over stdio never renders one.
    from jinja2 import Environment, FileSystemLoader, select_autoescape
    from rich.filesize import decimal

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(("html",)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "ago": ago,
        "size": decimal,
        "count": "{:,}".format,
        "path": partial(quote, safe="/"),
        "part": partial(quote, safe=""),
        "shell": shlex.quote,
        "document": document_html,
        "code": code_html,
        "diff": diff_html,
        "calls": calls,
        "pretty": partial(json.dumps, indent=2, ensure_ascii=False),
        "source": source_words,
        "clean": without_controls,
    }
    made.filters.update(filters)
    return made


def _markup(safe: str) -> Any:
    """Mark HTML as safe; only for text that was escaped or cleaned in this module."""
    from markupsafe import Markup

    return Markup(safe)  # noqa: S704


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
    for name, length in _SECONDS.items():
        if seconds >= length:
            number = seconds // length
            return f"{number} {name}{'s' if number > 1 else ''} ago"
    return "just now"


def calls(info: Json) -> list[tuple[str, str]]:
    """Write the example call of a function for a shell, Python, Node and an agent."""
    name, payload = str(info.get("function_id")), json.dumps(info.get("example"), ensure_ascii=False)
    return [
        ("Command", f"iii-directory trigger {shlex.quote(name)} --json {shlex.quote(payload)}"),
        ("Python", f'worker.trigger({{"function_id": {json.dumps(name)}, "payload": {payload}}})'),
        ("Node", f"await worker.trigger({{ function_id: {json.dumps(name)}, payload: {payload} }})"),
        ("For an agent", f"Call the function {name} with {payload}."),
    ]


def diff_html(patch: Any) -> Any:
    """Mark the lines of a patch by what they do."""
    lines: list[str] = []
    for line in str(patch).splitlines():
        kind = next((kind for start, kind in _DIFF_LINES if line.startswith(start)), "same")
        lines.append(f'<span class="{kind}">{escape(without_controls(line)) or " "}</span>')
    return _markup("".join(lines))


def document_html(body: Any, folder: str = "", title: str = "") -> Any:
    """Render the Markdown of a document as safe HTML.

    Its relative links start in ``folder``; a first heading that repeats ``title`` is left out.
    """
    # A registered document is served with its front matter.
    text = frontmatter.split(str(body))[1].lstrip()
    if title:
        text = text.removeprefix(f"# {title}\n")
    # A page of ten megabytes helps no reader; the raw file is one click away.
    cut = text[:MAX_PAGE_MARKDOWN_CHARS]
    note = "\n\n*The rest is left out; open the raw document to read all of it.*" if cut != text else ""
    return _markup(_document(cut + note, folder))


@lru_cache(maxsize=64)
def _document(text: str, folder: str) -> str:
    import nh3

    made = _parser().render(text, {"folder": folder})
    # The parser escapes already; a second, independent pass makes one mistake in either harmless.
    return nh3.clean(
        made,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def code_html(text: str, name: str) -> Any:
    """Highlight the text of a file."""
    return _markup(_highlighted(text, name))


def _highlighted(text: str, name: str, _: str = "") -> str:
    """Highlight code by the language of a file name or fence; unknown languages stay plain."""
    from pygments import highlight, lexers
    from pygments.formatters import HtmlFormatter
    from pygments.util import ClassNotFound

    find: Any = lexers  # it has no types
    try:
        lexer = find.get_lexer_for_filename(name) if "." in name else find.get_lexer_by_name(name)
    except (ClassNotFound, ValueError):
        return escape(text)
    return highlight(text, lexer, HtmlFormatter(nowrap=True))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted})
    parser.enable(["table", "strikethrough"])
    for name in ("link_open", "heading_open", "heading_close", "td_open", "th_open"):
        parser.add_render_rule(name, _tag)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("text", _text)
    return parser


def _tag(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """Render the tag of a link, a heading or a cell, adapted to the page."""
    token = tokens[index]
    if token.type == "link_open":
        token.attrSet("href", _target(str(token.attrGet("href") or ""), str(env.get("folder", ""))))
    elif token.type.startswith("heading"):
        # One level down, because the title of the view is the only first-level heading.
        token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    elif style := str(token.attrs.pop("style", "")):
        # The page's policy forbids the style of an aligned cell, so a class says how it is aligned.
        token.attrSet("class", style.rpartition(":")[2])
    return self.renderToken(tokens, index, options, env)


def _image(
    self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    """Show images of the skill itself; an image from elsewhere becomes a link, so that nothing is loaded."""
    token = tokens[index]
    words = self.renderInlineAsText(token.children or [], options, env) or "image"
    target = _target(str(token.attrGet("src") or ""), str(env.get("folder", "")))
    if target.startswith("/files/"):
        return f'<img src="{escape(target)}?raw=1" alt="{escape(words)}">'
    return f'<a href="{escape(target)}">{escape(words)}</a>'


def _text(_: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType) -> str:
    """Make links of the iii:// addresses in plain text, unless the text is in a link already."""
    is_in_link = any(token.type == "link_open" for token in tokens[:index]) and any(
        token.type == "link_close" for token in tokens[index:]
    )
    words = tokens[index].content.split(SCHEME)
    if is_in_link or len(words) == 1:
        return escape(tokens[index].content)
    made = [escape(words[0])]
    for word in words[1:]:
        end = next((at for at, sign in enumerate(word) if not (sign.isalnum() or sign in "/_-.")), len(word))
        address = word[:end].rstrip(".")
        shown = f"{SCHEME}{escape(address)}"
        made.append(f'<a href="{escape(_target(SCHEME + address, ""))}">{shown}</a>' if address else shown)
        made.append(escape(word[len(address) :]))
    return "".join(made)


def _target(href: str, folder: str) -> str:
    """Lead links between documents to their views and links to other files of a skill to the file view."""
    if href.startswith(SCHEME):
        path = href.removeprefix(SCHEME)
        if path.startswith("fn/"):
            return f"/functions/{quote(path[3:].replace('/', '::'), safe='')}"
        return f"/skills/{path}"
    if href.startswith(SKILL_SCHEME):
        return f"/files/{href.removeprefix(SKILL_SCHEME)}"
    try:
        parts = urlsplit(href)
    except ValueError:
        return "#"
    if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/") or not folder:
        return href
    path = posixpath.normpath(posixpath.join(folder, parts.path))
    if path.startswith(".."):
        return "#"
    parent, _, name = path.rpartition("/")
    if name in OVERVIEWS:
        return f"/skills/{parent}"
    return f"/skills/{path.removesuffix('.md')}" if name.endswith(".md") else f"/files/{path}"
