"""The workers' whole metrics pages, once a second: what a later sampler would have seen of this trial."""

import json
import lzma
import threading
import time

from session import Session


class Pages:
    """A thread that asks every worker of a trial, and packs what it hears."""

    def __init__(self, session: Session, name: str):
        self.stack = session.stack
        folder = session.results.pages
        folder.mkdir(exist_ok=True)
        self.file = folder / f"{name}.jsonl.xz"
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.record, daemon=True)
        self.thread.start()

    def record(self) -> None:
        # One page is much like the one before it, but a dictionary of a megabyte is needed to see that.
        with lzma.open(self.file, "wt", preset=1) as out:
            while not self.over.is_set():
                began = time.time()
                for worker in list(self.stack.workers):
                    page = self.stack.page(worker)
                    out.write(json.dumps({"time": round(began, 3), "worker": worker.name, "page": page}) + "\n")
                self.over.wait(max(0.0, began + 1 - time.time()))

    def stop(self) -> None:
        self.over.set()
        self.thread.join()
