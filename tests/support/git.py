"""Git repositories for tests, plain ones and ones that git itself would not make."""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}


def git(folder: Path, *arguments: str, sent: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, input=sent, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def make_repo(folder: Path, files: Mapping[str, bytes], *, branch: str = "main") -> str:
    """A repository with one commit; its id."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", f"--initial-branch={branch}")
    return commit(folder, files)


def commit(folder: Path, files: Mapping[str, bytes]) -> str:
    """Write files and commit all there is; the commit's id."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    git(folder, "add", "--all", "--force")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=x")
    return git(folder, "rev-parse", "HEAD")


def make_odd_repo(folder: Path, entries: list[tuple[str, bytes, bytes]]) -> None:
    """A bare repository whose folder ``skills/x`` holds exactly these (mode, name, content) entries.

    The trees are written byte by byte, so that they can be what no git would write. The content of a
    folder (mode 40000) is that of one file in it, that of a submodule (160000) is a commit id.
    """
    folder.mkdir(parents=True)
    git(folder, "init", "--bare", "--quiet", "--initial-branch=main")
    inner = _tree(folder, [(mode, name, _object(folder, mode, content)) for mode, name, content in entries])
    skills = _tree(folder, [("40000", b"x", inner)])
    top = _tree(folder, [("40000", b"skills", skills)])
    made = git(folder, "commit-tree", top, "-m", "x")
    git(folder, "update-ref", "refs/heads/main", made)


def _object(folder: Path, mode: str, content: bytes) -> str:
    if mode == "160000":
        return content.decode()
    blob = git(folder, "hash-object", "-w", "--stdin", sent=content)
    return _tree(folder, [("100644", b"a.md", blob)]) if mode == "40000" else blob


def _tree(folder: Path, entries: list[tuple[str, bytes, str]]) -> str:
    content = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries
    )
    return git(folder, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", sent=content)


class GitHttpServer:
    """Serves the repositories below a folder over smart HTTP; a context manager."""

    def __init__(self, folder: Path) -> None:
        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                path, _, query = self.path.partition("?")
                length = int(self.headers.get("content-length") or 0)
                environment = {
                    **_ENVIRONMENT,
                    "GIT_PROJECT_ROOT": str(folder),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_PROTOCOL": self.headers.get("git-protocol", ""),
                    "PATH_INFO": path,
                    "QUERY_STRING": query,
                    "REQUEST_METHOD": self.command,
                    "CONTENT_TYPE": self.headers.get("content-type", ""),
                    "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding", ""),
                    "CONTENT_LENGTH": str(length),
                }
                done = subprocess.run(
                    ["git", "http-backend"],
                    env=environment,
                    input=self.rfile.read(length),
                    capture_output=True,
                    check=False,
                )
                head, _, body = done.stdout.partition(b"\r\n\r\n")
                fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
                self.send_response(int(fields.pop("Status", "200").split()[0]))
                for name, value in fields.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = _serve  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
