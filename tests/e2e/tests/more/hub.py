"""A Hugging Face Hub with one model: the one that the image holds."""
import glob, hashlib, http.server, json, os

[folder] = glob.glob(os.environ["HF_HOME"] + "/hub/models--*/snapshots/*")
commit = os.path.basename(folder)
model = os.path.basename(os.path.dirname(os.path.dirname(folder))).removeprefix("models--").replace("--", "/")


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        names = sorted(os.listdir(folder))
        if self.path.startswith(f"/api/models/{model}/revision/"):
            siblings = [{"rfilename": name} for name in names]
            return self.answer(json.dumps({"id": model, "sha": commit, "siblings": siblings}).encode())
        if self.path.startswith(f"/api/models/{model}/tree/"):
            size = lambda name: os.path.getsize(os.path.join(folder, name))
            files = [{"type": "file", "path": name, "size": size(name), "oid": name} for name in names]
            return self.answer(json.dumps(files).encode())
        name = os.path.basename(self.path)
        if self.path.startswith(f"/{model}/resolve/") and name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                return self.answer(file.read())
        self.send_error(404)

    do_HEAD = do_GET

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", commit)
        self.send_header("ETag", '"' + hashlib.sha256(body).hexdigest() + '"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


http.server.ThreadingHTTPServer(("", 8000), Hub).serve_forever()
