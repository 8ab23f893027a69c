"""A registry of one's own: the API of the public one over a folder of published workers."""

from __future__ import annotations

import errno
import io
import json
import logging
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Final, Self, cast
from urllib.parse import parse_qs, unquote, urlsplit

from iii_directory import limits
from iii_directory.access.policy import Access
from iii_directory.registry_server.ranking import BadCursorError, page_of, search_rows
from iii_directory.registry_server.store import RegistryStore

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_NO_MORE_FILES: Final = (errno.EMFILE, errno.ENFILE)
_PAUSE_SECONDS: Final = 0.1
_log: Final = logging.getLogger(__name__)


class _AnswerError(Exception):
    """An answer that is not 200, with its reason."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class RegistryServer:
    """Serves a folder until it is closed; as a context manager it does so in a thread of its own."""

    def __init__(self, folder: Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        store = RegistryStore(folder)

        class Handler(_Handler):
            registry = store

        class Server(_Server):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, port), Handler)
        Handler.access = Access(host, self._server.server_address[1])
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, port = str(self._server.server_address[0]), self._server.server_address[1]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def serve_forever(self) -> None:
        """Serve in this thread until `stop` is called from another or an exception (Ctrl-C) ends it."""
        self._server.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        self._server.shutdown()

    def close(self) -> None:
        self._server.server_close()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, name="registry", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._rooms = threading.BoundedSemaphore(limits.MAX_REGISTRY_CONNECTIONS)
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _NO_MORE_FILES:
                # Whoever waits is still there at the next look, which else would come at once, for ever.
                time.sleep(_PAUSE_SECONDS)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._rooms.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._rooms.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's
        # Nearly always somebody who left before the answer was written.
        _log.warning("a request failed: %r", sys.exception())

    def server_bind(self) -> None:
        # The inherited one asks the name service who this host is, which can take seconds.
        TCPServer.server_bind(self)


class _Timed(io.RawIOBase):
    """What a socket brings until a moment; a byte now and then does not put it off."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.start()

    def start(self) -> None:
        self._end = time.monotonic() + limits.REGISTRY_REQUEST_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    registry: RegistryStore
    access: Access
    protocol_version = "HTTP/1.1"
    server_version = "iii-directory-registry"
    sys_version = ""
    # Small answers go out in one packet with their headers instead of waiting for an acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self._incoming = _Timed(cast("socket.socket", self.connection))
        self.rfile = io.BufferedReader(self._incoming)

    def handle_one_request(self) -> None:
        self._incoming.start()
        super().handle_one_request()

    def do_GET(self) -> None:
        try:
            status, answer = HTTPStatus.OK, self._answer()
        except _AnswerError as error:
            status, answer = error.status, {"error": str(error)}
        body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-cache")
        self.send_header("x-content-type-options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def _answer(self) -> dict[str, Any]:
        # A body is never read, so what follows it on this connection is not a request.
        self.close_connection = self.close_connection or "content-length" in self.headers
        try:
            address = urlsplit(self.path)
            query = parse_qs(address.query, max_num_fields=8)
        except ValueError:
            raise _AnswerError(HTTPStatus.BAD_REQUEST, "this address cannot be read") from None
        # A page of another site, or one that points its own name at loopback, gets nothing.
        headers = {name.lower(): self.headers.get_all(name, []) for name in self.headers}
        refused = self.access.refusal(headers)
        if refused is not None:
            raise _AnswerError(HTTPStatus(refused.status), refused.text.strip())
        fields = {name: values[-1] for name, values in query.items()}
        match [unquote(part) for part in address.path.strip("/").split("/")]:
            case ["w"]:
                return self._page(fields)
            case ["w", worker]:
                return self.registry.detail(worker, self._resolved(worker, fields))
            case ["w", worker, "skills"]:
                return self._bundle(worker, self._resolved(worker, fields))
            case _:
                raise _AnswerError(HTTPStatus.NOT_FOUND, "no such address")

    def _page(self, fields: dict[str, str]) -> dict[str, Any]:
        search = fields.get("search", "").strip()[: limits.MAX_REGISTRY_QUERY_CHARS] or None
        try:
            return page_of(search_rows(self.registry.rows(), search), fields.get("cursor"))
        except BadCursorError:
            raise _AnswerError(HTTPStatus.BAD_REQUEST, "the cursor is none of this registry") from None

    def _resolved(self, worker: str, fields: dict[str, str]) -> str:
        # The public registry once took tags in a field of their own.
        asked = fields.get("version") or fields.get("tag") or "latest"
        version = self.registry.resolve(worker, asked)
        if version is None:
            raise _AnswerError(HTTPStatus.NOT_FOUND, "no such worker or version")
        return version

    def _bundle(self, worker: str, version: str) -> dict[str, Any]:
        bundle = self.registry.bundle(worker, version)
        if bundle is None:
            raise _AnswerError(HTTPStatus.NOT_FOUND, "this worker has no skills")
        self.registry.count_download(worker)
        return bundle

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        _log.debug(format, *args)
