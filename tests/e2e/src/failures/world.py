"""A registry and a Hugging Face Hub that have nothing, and say so as the real ones do."""
import http.server, json, threading


class World(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/v2/":
            return self.answer(200, {}, {})
        if self.path.startswith("/v2/private/"):
            denied = {"errors": [{"code": "DENIED", "message": "requested access to the resource is denied"}]}
            return self.answer(403, denied, {})
        if self.path.startswith("/v2/"):
            return self.answer(404, {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}, {})
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


# The container runtime speaks plain HTTP to a registry on localhost at its usual port only.
for port in (80, 5001):
    threading.Thread(target=http.server.ThreadingHTTPServer(("", port), World).serve_forever).start()
