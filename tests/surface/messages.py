"""The Messages API on loopback, as far as a tool runner uses it: what Claude says is given."""

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

Turn = Sequence[dict[str, Any]]
"""What the tool is called with in one reply: one call, or several."""


class Messages:
    """`with Messages(turns) as api:` answers with one turn a request, then with "Done." `api.url`
    is where it listens, `api.requests` what it was sent.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._turns = list(turns)
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                reply = json.dumps(api._reply(json.loads(body))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Tests are quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def results(self) -> list[tuple[str, bool]]:
        """The tool's answers in order: (text, whether it is an error)."""
        sent = [request["messages"][-1]["content"] for request in self.requests[1:]]
        return [
            (block["content"], block.get("is_error", False)) for blocks in sent for block in blocks
        ]

    def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        turn = self._turns.pop(0) if self._turns else ()
        content: list[dict[str, Any]] = [
            {
                "type": "tool_use",
                "id": f"toolu_{len(self.requests)}_{number}",
                "name": "memory",
                "input": given,
            }
            for number, given in enumerate(turn)
        ]
        return {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content or [{"type": "text", "text": "Done."}],
            "stop_reason": "tool_use" if content else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
