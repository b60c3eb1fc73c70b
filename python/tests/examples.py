"""Runs the examples of pages in documents, with a scripted model at the address that they use."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scripted import CALL, completion_of, stream_of

ROOT = Path(__file__).parents[2]
ADDRESS = "http://localhost:8000"
FENCE = re.compile(r"^```(python[a-z0-9 ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class _Handler(BaseHTTPRequestHandler):
    """Calls the tool once, then answers."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.path == "/v1/chat/completions" and "tools" not in request
        reply = "It is mild." if "Result 1 of" in json.dumps(request["messages"][1:]) else CALL
        body = b"".join(stream_of(reply)) if request.get("stream") else completion_of(reply)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if request.get("stream") else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def model_server() -> Iterator[str]:
    """Yields the address of a scripted model."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run_examples(page: str, language: str = "python", given: dict[str, Any] | None = None) -> int:
    """Runs the examples of a page one after another, in one module with `given` names. Returns their number."""
    text = (ROOT / page).read_text("utf-8")
    blocks = [match for match in FENCE.finditer(text) if match[1] == language]
    names: dict[str, Any] = {"__name__": "example", **(given or {})}
    with model_server() as address:
        for match in blocks:
            line = text.count("\n", 0, match.start()) + 1
            source = "\n" * line + match[2].replace(ADDRESS, address)
            exec(compile(source, page, "exec"), names)
    return len(blocks)
