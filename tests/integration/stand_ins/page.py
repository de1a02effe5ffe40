"""Serves one page, as the stand-ins do for the servers that they stand for."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


def serve_page(port: int, page: Path) -> None:
    """Answer every request with the page, until killed."""
    content = page.read_bytes()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Print nothing."""

    ThreadingHTTPServer(("127.0.0.1", port), Answering).serve_forever()
