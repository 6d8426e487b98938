"""A Hugging Face Hub that has nothing, and says so as the real one does."""
import http.server, json


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if "/lab/gated/" in self.path:
            said = "Access to model lab/gated is restricted. You must have access to it and be authenticated to access it."
            return self.answer(401, {"error": said}, {"X-Error-Code": "GatedRepo", "X-Error-Message": said})
        self.answer(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def answer(self, status, body, headers):
        body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


http.server.ThreadingHTTPServer(("", 5001), Hub).serve_forever()
