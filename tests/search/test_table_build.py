"""The table of word vectors is the same whenever it is built from the same texts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A small table by every step of the script, with a made-up encoder in the place of the downloaded one.
BUILD = """
import hashlib, sys
from pathlib import Path
from types import SimpleNamespace
import numpy as np
from tools import word_vectors as tool

def encode(texts):
    seeds = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts)
    rows = np.array([np.random.default_rng(seed).standard_normal(384) for seed in seeds], np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)

names = "send mail resize picture table row folder file branch commit server cache queue page".split()
sentences = [f"{a} a {b} and {c}" for a in names for b in names for c in names[:4]]
pairs = {"made up": [tool.Pair(one, other) for one, other in zip(sentences, sentences[7:])]}
tool._npm = lambda *_: None
tool.common_words = lambda _: ["unheard"]
tokenizer = SimpleNamespace(get_vocab=lambda: set(names) | {"##s", "##ing", "a", "b"})
work = Path(sys.argv[1])
table = tool.built(work, SimpleNamespace(encode=encode, tokenizer=tokenizer), pairs)
(work / "table").write_bytes(table)
"""


@pytest.mark.skipif(
    not all(map(find_spec, ("numpy", "scipy", "tokenizers"))),
    reason="the script's packages are not installed",
)
def test_two_builds_of_the_table_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    tables: list[bytes] = []
    for seed in ("1", "2"):
        work = tmp_path / seed
        work.mkdir()
        # Another seed of hashes gives sets another order, which must not show.
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", BUILD, str(work)], cwd=ROOT, env=environment, check=True)
        tables.append((work / "table").read_bytes())

    assert tables[0] == tables[1]
    assert len(tables[0]) > 1000
