"""List what the files of a skill can do (scripts, hosts, variables, tools, hooks) and odd content. Pure.

The inventory has no verdict. Findings are content that benign skills almost never have; they never say that a
skill is safe, and never block anything.
"""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from iii_directory.documents.file_pages import media_type, text_of
from iii_directory.documents.frontmatter import of_text
from iii_directory.documents.ids import OVERVIEWS, skill_name_of
from iii_directory.limits import KIB, MAX_FACT_CHARS, MAX_FACT_FILE_BYTES, MAX_FACTS
from iii_directory.shapes import is_object, is_text_list, items_of, object_of
from iii_directory.text import cut, escaped, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

KINDS: Final = (
    "scripts",
    "executables",
    "bytecode",
    "hosts",
    "urls",
    "environment",
    "allowed_tools",
    "hooks",
    "shell_directives",
    "functions",
    "skills",
    "unread",
)
"""The lists of an inventory, in the order they are shown."""
LOOK: Final = frozenset({"download-to-shell", "keys-near-network"})
"""Rules that only ask the reader to look: benign skills break them now and then."""

_ENDINGS: Final = {
    "bash": "bash",
    "cmd": "bat cmd",
    "fish": "fish",
    "lua": "lua",
    "node": "cjs js mjs ts tsx",
    "perl": "pl",
    "php": "php",
    "powershell": "ps1",
    "python": "py",
    "Rscript": "r",
    "ruby": "rb",
    "sh": "sh",
    "zsh": "zsh",
}
_INTERPRETERS: Final = {one: program for program, endings in _ENDINGS.items() for one in endings.split()}
_SHEBANG: Final = re.compile(
    r"#!\s*(?:/\S*/)?env\s+(?:-S\s+)?(?:\w+=\S+\s+)*(\S+)|#!\s*\S*?([^/\s]+)(?=\s|\Z)"
)
_EXECUTABLE_MAGIC: Final = (
    b"\x7fELF",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\0asm",
)
_EXECUTABLE_ENDINGS: Final = frozenset({"exe", "dll", "so", "dylib", "msi", "com", "scr", "wasm"})
_BYTECODE_ENDINGS: Final = frozenset({"pyc", "pyo", "class", "jar", "luac", "beam", "elc"})
_ARCHIVE_MAGIC: Final = (
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!",
    b"\x28\xb5\x2f\xfd",
)
_MEDIA: Final = ("image/", "audio/", "video/", "font/")
_TAR_MAGIC: Final = slice(257, 262)

_URL: Final = re.compile(r"\bhttps?://[^\s<>\"'`)\]}|\\^{*,;]{1,2000}", re.IGNORECASE)
# Names of XML namespaces look like addresses and are never asked.
_NAMESPACES: Final = re.compile(
    r"(?:xmlns(?::\w+)?|targetNamespace|namespace|xsi:\w+)\s*=\s*[\"'][^\"']{0,400}[\"']"
)
_HOST: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.?")
_ENVIRONMENT: Final = re.compile(
    r"\b(?:os\.)?environ(?:\.get|\.setdefault|\.pop)?[\[(]\s*f?[\"'](\w+)[\"']"
    r"|\bgetenv\(\s*[\"'](\w+)[\"']"
    r"|\b(?:process|import\.meta|Deno|Bun)\.env(?:\.get\(\s*[\"'])?[.\[\"']*([A-Za-z_]\w*)"
    r"|\bENV(?:\.fetch)?[\[(]\s*[\"'](\w+)[\"']"
    r"|\benv::var\(\s*\"(\w+)\""
    r"|\$env:([A-Za-z_]\w*)"
    r"|(?<![\\$\w])\$\{?([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"
    r"|^[^\S\n]*+export\s+([A-Z][A-Z0-9_]{2,})=",
    re.MULTILINE,
)
# In prose, names that can hardly be anything else.
_NAMED_VARIABLE: Final = re.compile(
    r"\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:API_KEY|KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|URL|ENDPOINT))\b"
)
_ASSIGNED: Final = re.compile(
    r"^[^\S\n]*+(?:(?:local|readonly|declare|typeset)\s+(?:-\w+\s+)?)?([A-Z][A-Z0-9_]*)="
    r"|\bfor\s+([A-Z][A-Z0-9_]*)\s+in\b|\bread\s+(?:-\w+\s+)*([A-Z][A-Z0-9_]*)",
    re.MULTILINE,
)
_TOOL: Final = re.compile(r"[^\s,()]+(?:\([^()]*\))?")
_DIRECTIVE: Final = re.compile(r"(?:^|(?<=[\s(:]))!`([^`\n]+)`", re.MULTILINE)
# An id of a function in quotes or backticks, or after the word that calls it.
_FUNCTION: Final = re.compile(
    r"(?:[\"'`]|\b(?:trigger|call|invoke)\s+)([a-z][a-z0-9_-]*(?:::[a-z][a-z0-9_-]*)+)(?=[\"'`\s({.,;]|\Z)"
)
_NOT_WORKERS: Final = frozenset({"std", "core", "alloc", "crate", "self", "super", "boost", "detail"})
_CODE_WITH_COLONS: Final = frozenset(
    {"rs", "c", "cc", "cpp", "cxx", "h", "hpp", "php", "rb", "pl", "pm", "cairo", "move", "mo", "nr", "ps1"}
)
_SKILL: Final = re.compile(
    r"(?:iii|skill)://([a-z0-9][a-z0-9_/-]*)"
    r"|\.\./([a-z0-9][a-z0-9-]*)/SKILL\.md"
    r"|\b[Ss]kills?:?\s+(?:called\s+|named\s+)?[`*]{1,2}([a-z0-9][a-z0-9:-]*)[`*]{1,2}"
    r"|[`*]{1,2}([a-z0-9][a-z0-9:-]*)[`*]{1,2}\s+[Ss]kill\b"
    r"|\b(?:SUB-SKILL|SKILL):\**\s+(?:[Uu]se\s+)?[`*]{0,2}([a-z0-9][a-z0-9:-]*[a-z0-9])"
)
_FENCED_WITH_COLONS: Final = _CODE_WITH_COLONS | {"rust", "c++", "csharp", "perl", "ruby", "powershell"}
_FENCE: Final = re.compile(r"^[^\S\n]*(`{3,}|~{3,})[^\S\n]*([\w+#-]*)", re.MULTILINE)

_HIDDEN: Final = re.compile(
    "[\u202a-\u202e\u2066-\u2069\u2060-\u2064\u180e\u115f\u1160\u3164\uffa0]"
    # Before a fence it is how authors show a fence.
    "|\u200b(?!```)"
    # After a black flag, tags spell the flag of a country.
    "|(?<![\U0001f3f4\U000e0020-\U000e007e])[\U000e0000-\U000e007f]"
)
_B64: Final = r"(?:base64\s+(?:-d\b|-D\b|--decode\b)|openssl\s+(?:enc\s+)?-?base64\s+-d)"
_BASE64_RUN: Final = re.compile(
    rf"{_B64}[^\n|;&]{{0,300}}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?sh\b"
    rf"|{_B64}[^\n|;&]{{0,300}}\|\s*(?:python[0-9.]*|node|perl|ruby|php)\b"
    rf"|\b(?:eval|(?:ba|z)?sh\s+-c)\s+[\"']?\$\([^\n)]{{0,300}}{_B64}"
    r"|\b(?:exec|eval|compile)\s*\(\s*(?:[\w.]{1,60}\(\s*){0,6}(?:base64\.)?(?:b64decode|urlsafe_b64decode)\s*\("
    r"|\b(?:eval|Function)\s*\(\s*(?:atob\s*\(|Buffer\.from\([^)\n]{0,300}[\"']base64[\"'])"
    r"|\bpowershell(?:\.exe)?\b[^\n]{0,300}\s-e(?:nc|ncodedcommand)\s+[A-Za-z0-9+/=]{16,}"
    r"|\b(?:iex|Invoke-Expression)\b[^\n]{0,300}FromBase64String",
    re.IGNORECASE,
)
_PEOPLE: Final = r"(?:the\s+|your\s+|any\s+)?(?:user|human|operator)s?\b"
_SECRECY: Final = re.compile(
    r"\b(?:do\s+not|don['\u2019]t|never|must\s+not)\s+(?:ever\s+)?"
    rf"(?:(?:tell|inform|notify|alert|warn)\s+{_PEOPLE}(?!\s+to\b)"
    r"|(?:mention|reveal|disclose|report|show)\s+(?:this|these|it|that)(?:\s+\w+){0,4}?\s+to\s+"
    rf"{_PEOPLE})"
    rf"|\bwithout\s+(?:telling|informing|notifying)\s+{_PEOPLE}"
    rf"|\b(?:hide|conceal|keep)\s+(?:this|it|these|that)\s+(?:secret\s+|hidden\s+)?from\s+{_PEOPLE}",
    re.IGNORECASE,
)
_PADDING: Final = re.compile(r"^(?:[^\S\n]*+\n){100}|\S[^\S\n]{400}", re.MULTILINE)
_IP_URL: Final = re.compile(
    r"\bhttps?://(?:[^\s/@]+@)?(\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:.]+\])", re.IGNORECASE
)
_DOWNLOAD_RUN: Final = re.compile(
    r"\b(?:curl|wget)\b[^\n|;&]{0,300}\|\s*(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+\S+\s+)?(?:(?:ba|z|da|k)?sh|python[0-9.]*|node|perl|ruby)\b"
    r"|\b(?:ba|z)?sh\s+(?:-c\s+[\"']?\$\(|<\()\s*(?:curl|wget)\b"
    r"|\b(?:iex|Invoke-Expression)\b[^\n]{0,300}(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|DownloadString)"
    r"|\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\b[^\n|]{0,300}\|\s*(?:iex|Invoke-Expression)\b",
    re.IGNORECASE,
)
_KEY_FILE: Final = re.compile(
    r"\.ssh/id_\w+|\.aws/credentials|\.netrc\b|\.git-credentials|\.npmrc\b|\.pypirc\b|\.docker/config\.json"
    r"|\.kube/config\b|\.gnupg/|/etc/shadow\b|Login Data\b|wallet\.dat\b"
)
_NETWORK: Final = re.compile(
    r"\b(?:curl|wget|nc)\s+[-\"'$h]|\brequests\.(?:get|post|put)\(|\burlopen\(|\bhttpx\.|\bfetch\(|\bsocket\.connect|"
    r"\bXMLHttpRequest|\baxios[.(]|\bInvoke-(?:WebRequest|RestMethod)"
)


class _Rule(NamedTuple):
    name: str
    words: str
    signs: tuple[str, ...]
    """Words in small letters of which one is there wherever the pattern fits: looking for them is quick."""
    pattern: re.Pattern[str]


_RULES: Final = (
    _Rule("hidden-characters", "it holds characters that cannot be seen", (), _HIDDEN),
    _Rule(
        "base64-run",
        "decoded base64 is handed to an interpreter",
        ("base64", "b64decode", "atob(", "powershell"),
        _BASE64_RUN,
    ),
    _Rule("secrecy", "it asks to keep something from the user", ("user", "human", "operator"), _SECRECY),
    _Rule("padding", "a long run of blanks pushes text out of sight", (), _PADDING),
    _Rule("raw-address", "an address by IP number, without a name", ("://",), _IP_URL),
    _Rule(
        "download-to-shell",
        "look at this: a download is handed to a shell",
        ("curl", "wget", "iex", "invoke-expression"),
        _DOWNLOAD_RUN,
    ),
)
_PROSE: Final = frozenset({"md", "env", "example", "txt"})
_SHELL_VARIABLE: Final = 7
"""The group of `_ENVIRONMENT` that a shell's own variables fit, too."""
_PIECE_CHARS: Final = 64 * KIB
_HOST_CHARS: Final = 253


class FileContent(NamedTuple):
    """A file of a skill as it was read."""

    raw: bytes
    """All of its bytes, or the first ones where it is larger than what is read."""
    executable: bool = False
    is_whole: bool = True


def fact_content(raw: bytes, executable: bool) -> FileContent:  # noqa: FBT001 - as the file has it
    """Give as much of a file as is looked at."""
    return FileContent(raw[:MAX_FACT_FILE_BYTES], executable, len(raw) <= MAX_FACT_FILE_BYTES)


class FactFinding(NamedTuple):
    """Content of a file that almost no benign skill has."""

    rule: str
    path: str
    line: int | None
    words: str

    def __str__(self) -> str:
        return f"{self.rule} in {self.path}: {self.words}"

    def as_dict(self) -> dict[str, Any]:
        line = {} if self.line is None else {"line": self.line}
        return {"rule": self.rule, "path": self.path, **line, "words": self.words}


Accepted: TypeAlias = "Mapping[str, Sequence[str]]"
"""Facts that the operator accepted, by kind, in the words of `listed_facts`."""


class Facts(NamedTuple):
    """What a skill can do, by kind, and the findings in its files."""

    inventory: dict[str, list[str]]
    """A sorted list for each of `KINDS`; a row of ``scripts`` is ``path (interpreter)``."""
    findings: tuple[FactFinding, ...]

    def as_dict(
        self, functions: Collection[str] | None = None, accepted: Accepted = MappingProxyType({})
    ) -> dict[str, Any]:
        """Return the reply; ``functions`` are those there are now, None where no engine was asked.

        Findings that the operator accepted are marked. Of a list that is longer than the bound, ``left_out``
        says how many rows are missing.
        """
        known = frozenset(accepted.get("findings", ()))
        shown: dict[str, list[Any]] = {kind: values[:MAX_FACTS] for kind, values in self.inventory.items()}
        for kind, detail in (("scripts", "interpreter"), ("unread", "reason")):
            pairs = (value[:-1].rpartition(" (") for value in shown[kind])
            shown[kind] = [{"path": path, detail: said} for path, _, said in pairs]
        shown["functions"] = [
            {"id": one, "exists": None if functions is None else one in functions}
            for one in shown["functions"]
        ]
        lists = {**self.inventory, "findings": self.findings}
        left_out = {kind: len(rows) - MAX_FACTS for kind, rows in lists.items() if len(rows) > MAX_FACTS}
        return {
            "facts": shown,
            "findings": [
                {**finding.as_dict(), **({"accepted": True} if str(finding) in known else {})}
                for finding in self.findings[:MAX_FACTS]
            ],
            **({"left_out": left_out} if left_out else {}),
        }


def facts_of(files: Mapping[str, FileContent]) -> Facts:
    """Collect the facts of a skill from all of its files."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    findings: list[FactFinding] = []
    for path, content in sorted(files.items()):
        text = text_of(content.raw) if content.is_whole else None
        _add_kind_of_file(found, path, content, text)
        if text is not None:
            _add_from_file(found, path, text)
            findings.extend(_findings_in(path, text))
    words = "machine code: it cannot be read"
    for rule, kind in (("bytecode", "bytecode"), ("executable", "executables")):
        findings += [FactFinding(rule, path, None, words) for path in sorted(found[kind])]
    return Facts({kind: sorted(values) for kind, values in found.items()}, tuple(findings))


def listed_facts(facts: Facts) -> dict[str, list[str]]:
    """List facts and findings by kind, each as one line that means the same in every version of a skill."""
    # The host of an address says enough.
    kinds = {kind: values for kind, values in facts.inventory.items() if kind != "urls"}
    return {**kinds, "findings": list(dict.fromkeys(map(str, facts.findings)))}


def new_facts(before: Facts, after: Facts, accepted: Accepted = MappingProxyType({})) -> dict[str, list[str]]:
    """List what a skill can do after a change that it could not do before, by kind, and new findings.

    What the operator accepted is not new.
    """
    known = listed_facts(before)
    new: dict[str, list[str]] = {}
    for kind, values in listed_facts(after).items():
        old = {*known[kind], *accepted.get(kind, ())}
        added = [value for value in values if value not in old]
        if len(added) > MAX_FACTS:
            added[MAX_FACTS:] = [f"… {len(added) - MAX_FACTS} more"]
        if added:
            new[kind] = added
    return new


def _ending(path: str) -> str:
    stem, dot, ending = path.rpartition("/")[2].rpartition(".")
    return ending.lower() if dot and stem else ""


def _add_kind_of_file(found: dict[str, set[str]], path: str, content: FileContent, text: str | None) -> None:
    ending = _ending(path)
    if ending in _BYTECODE_ENDINGS or content.raw.startswith(b"\xca\xfe\xba\xbe"):
        found["bytecode"].add(path)
    elif content.raw.startswith(_EXECUTABLE_MAGIC) or (
        text is None and (content.raw.startswith(b"MZ") or ending in _EXECUTABLE_ENDINGS)
    ):
        found["executables"].add(path)
    elif content.raw.startswith(_ARCHIVE_MAGIC) or content.raw[_TAR_MAGIC] == b"ustar":
        found["unread"].add(f"{path} (an archive)")
    elif not content.is_whole and not media_type(path).startswith(_MEDIA):
        found["unread"].add(f"{path} (too large)")
    interpreter = None
    if text is not None and (shebang := _SHEBANG.match(text)) is not None:
        interpreter = _shown(shebang[1] or shebang[2])
    elif text is not None and not path.endswith(".d.ts"):
        interpreter = _INTERPRETERS.get(ending) or ("unknown" if content.executable and not ending else None)
    if interpreter is not None:
        found["scripts"].add(f"{path} ({interpreter})")


def _add_from_file(found: dict[str, set[str]], path: str, text: str) -> None:
    ending, name = _ending(path), path.rpartition("/")[2]
    is_markdown = ending == "md"
    assigned: set[str] = set()
    if ending in ("sh", "bash", "zsh", "md", ""):
        assigned = {one for piece in _pieces(text) for groups in _ASSIGNED.findall(piece) for one in groups}
    for piece in _pieces(text):
        for url in _urls_in(piece):
            found["urls"].add(_shown(url))
            found["hosts"].add((urlsplit(url).hostname or "").rstrip("."))
        found["environment"].update(_variables_in(piece, assigned, is_prose=ending in _PROSE))
        if is_markdown:
            found["shell_directives"].update(_shown(match[1]) for match in _DIRECTIVE.finditer(piece))
            found["skills"].update(_skills_in(piece))
        if "::" in piece and ending not in _CODE_WITH_COLONS:
            ids = _FUNCTION.findall(_without_foreign_code(piece) if is_markdown else piece)
            theirs = (one for one in ids if one.partition("::")[0] not in _NOT_WORKERS)
            found["functions"].update(map(_shown, theirs))
    if name in OVERVIEWS:
        _add_from_front_matter(found, text)
    elif name == "hooks.json" or (ending == "json" and path.startswith("hooks/")):
        found["hooks"].add(path)


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text between lines: a search in one piece ends within milliseconds."""
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARS
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def _add_from_front_matter(found: dict[str, set[str]], text: str) -> None:
    values, _, _ = of_text(text)
    tools = values.get("allowed-tools")
    listed = tools if is_text_list(tools) else _TOOL.findall(tools) if isinstance(tools, str) else []
    found["allowed_tools"].update(map(_shown, listed))
    hooks = values.get("hooks")
    for event, value in object_of(hooks).items():
        commands = list(_commands_in(value, depth=4)) or [str(value)]
        found["hooks"].update(_shown(f"{event}: {command}") for command in commands)
    named = values.get("functions")
    ids = named if is_text_list(named) else [values.get("function_id")]
    found["functions"].update(_shown(one) for one in ids if isinstance(one, str) and one)


def _commands_in(value: object, depth: int) -> Iterator[str]:
    """Give the commands of a hook, which hosts nest in lists and objects."""
    if not depth:
        return
    for item in items_of(value):
        yield from _commands_in(item, depth - 1)
    if is_object(value):
        if isinstance(value.get("command"), str):
            yield value["command"]
        yield from _commands_in(value.get("hooks"), depth - 1)


def _urls_in(text: str) -> Iterator[str]:
    if "://" not in text:
        return
    for match in _URL.finditer(_NAMESPACES.sub("", text) if "=" in text else text):
        url = match[0].rstrip(".:!?")
        try:
            host = urlsplit(url).hostname or ""
            usable = len(host) <= _HOST_CHARS and (_HOST.fullmatch(host) or ipaddress.ip_address(host))
        except ValueError:
            continue
        if usable:
            yield url


def _variables_in(text: str, assigned: set[str], *, is_prose: bool) -> Iterator[str]:
    if "env" in text or "ENV" in text or "$" in text or "export " in text:
        for match in _ENVIRONMENT.finditer(text):
            name = match[match.lastindex or 0]
            # A shell script's own variables are not the environment's.
            if match.lastindex != _SHELL_VARIABLE or name not in assigned:
                yield _shown(name)
    if is_prose and "_" in text:
        yield from map(_shown, _NAMED_VARIABLE.findall(text))


def _skills_in(text: str) -> Iterator[str]:
    for match in _SKILL.finditer(text):
        name = match[match.lastindex or 0].strip("/")
        if match.lastindex == 1 or skill_name_of(name.rpartition(":")[2]) is not None:
            yield _shown(name)


def _without_foreign_code(text: str) -> str:
    """Take out code blocks in languages that write two colons themselves."""
    parts: list[str] = []
    start = 0
    skipping: str | None = None
    for fence in _FENCE.finditer(text):
        if skipping is None and fence[2].lower() in _FENCED_WITH_COLONS:
            parts.append(text[start : fence.start()])
            skipping = fence[1]
        elif skipping is not None and fence[1].startswith(skipping) and not fence[2]:
            start, skipping = fence.end(), None
    if skipping is None:
        parts.append(text[start:])
    return "".join(parts)


def _findings_in(path: str, text: str) -> Iterator[FactFinding]:
    """Find the first place of each rule in a file."""
    open_rules = list(_RULES)
    key_line: int | None = None
    has_network = False
    line = 1
    for piece in _pieces(text):
        lowered = piece.lower()
        for rule in tuple(open_rules):
            at = _place_of(rule, piece, lowered)
            if at is not None:
                open_rules.remove(rule)
                yield FactFinding(rule.name, path, line + piece.count("\n", 0, at), rule.words)
        key = None if key_line else _KEY_FILE.search(piece)
        key_line = key_line or (key and line + piece.count("\n", 0, key.start()))
        has_network = has_network or _NETWORK.search(piece) is not None
        line += piece.count("\n")
    if key_line and has_network:
        words = "look at this: a key file beside network calls"
        yield FactFinding("keys-near-network", path, key_line, words)


def _place_of(rule: _Rule, piece: str, lowered: str) -> int | None:
    if rule.signs and not any(sign in lowered for sign in rule.signs):
        return None
    for match in rule.pattern.finditer(piece):
        if rule.name != "raw-address":
            return match.start()
        with suppress(ValueError):
            if ipaddress.ip_address(match[1].strip("[]")).is_global:
                return match.start()
    return None


def _shown(value: str) -> str:
    return escaped(cut(one_line(value), MAX_FACT_CHARS))
