"""One deployment on loopback: a frontend and its workers, each with the metrics port of an address of its own."""

import os
import shutil
import signal
import time
from dataclasses import asdict
from pathlib import Path

from engines import ENGINES, MODEL, SKIP, Programs, Worker
from process import Refused, alive, end, get, send, spawn, tail

ROUTERS = {"LeastLoaded": "least-loaded", "RoundRobin": "round-robin", "Random": "random", "PowerOfTwo": "power-of-two", "KV": "kv"}
PORT, METRICS_PORT = 18230 + SKIP, 9090
URL = f"http://127.0.0.1:{PORT}"


def host(index: int) -> str:
    return f"127.0.30.{SKIP + index + 1}"


class Stack:
    """What runs now. It can be written down and found again by a later command."""

    def __init__(self, programs: Programs, engine: str, router: str, folder: Path):
        self.programs, self.engine, self.router, self.folder = programs, ENGINES[engine], router, folder
        self.workers: list[Worker] = []
        self.frontend = 0
        self.deployment = ""

    def saved(self) -> dict:
        workers = [asdict(worker) for worker in self.workers]
        return {"engine": self.engine.name, "router": self.router, "workers": workers, "frontend": self.frontend, "deployment": self.deployment}

    @classmethod
    def found(cls, programs: Programs, folder: Path, saved: dict) -> "Stack":
        stack = cls(programs, saved["engine"], saved["router"], folder)
        stack.workers = [Worker(**worker) for worker in saved["workers"]]
        stack.frontend, stack.deployment = saved["frontend"], saved["deployment"]
        return stack

    def environment(self, **more: str) -> dict[str, str]:
        return self.programs.environment(self.folder, self.programs.dynamo_path, **more)

    def start_worker(self, worker: Worker) -> None:
        """Starts a worker, again perhaps."""
        more = {**self.engine.environment(worker), "DYN_SYSTEM_HOST": worker.host, "DYN_SYSTEM_PORT": str(METRICS_PORT)}
        words = [*self.programs.python, *self.engine.command(worker)]
        worker.pid = spawn(self.log(worker.name), words, self.environment(**more))

    def start_frontend(self) -> None:
        words = ["-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", str(PORT), "--router-mode", ROUTERS[self.router]]
        self.frontend = spawn(self.log("frontend"), [*self.programs.python, *words], self.environment())

    def start(self, workers: list[Worker]) -> None:
        """Starts everything anew, and waits until it serves."""
        # Discovery by files forgets no dead worker.
        shutil.rmtree(self.folder / "kv", ignore_errors=True)
        (self.folder / "kv").mkdir(parents=True)
        self.workers = workers
        self.deployment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        for worker in workers:
            self.log(worker.name).unlink(missing_ok=True)
            self.start_worker(worker)
        self.start_frontend()
        self.wait(self.engine.ready_seconds)

    def route(self, router: str) -> None:
        """Puts a frontend with another router before the same workers."""
        end([self.frontend])
        self.router = router
        self.start_frontend()
        self.wait(60)

    def wait(self, seconds: float) -> None:
        """Until every worker is registered and a real completion came back."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
        began = time.time()
        while time.time() - began < seconds:
            for name, pid in [*((worker.name, worker.pid) for worker in self.workers), ("frontend", self.frontend)]:
                if not alive(pid):
                    raise Refused(f"{name} ended while it started; the end of its log:\n{tail(self.log(name))}")
            if self.registered() >= len(self.workers) and "content" in get(f"{URL}/v1/chat/completions", body, 60):
                return
            time.sleep(0.5)
        logs = "\n".join(f"--- {name}\n{tail(self.log(name), 12)}" for name in ("frontend", *(worker.name for worker in self.workers)))
        raise Refused(f"{self.registered()} of {len(self.workers)} workers are ready after {seconds:.0f} s; the ends of the logs:\n{logs}")

    def registered(self) -> int:
        """Workers that the frontend knows."""
        return get(f"{URL}/health").count('"generate"')

    def stop(self) -> None:
        end([pid for pid in (*(worker.pid for worker in self.workers), self.frontend) if pid])

    def kill(self, worker: Worker) -> None:
        """Kills a worker and starts it again, as the kubelet does with a container that ended."""
        end([worker.pid])
        worker.restarts += 1
        self.start_worker(worker)

    def freeze(self, worker: Worker, seconds: float | None) -> None:
        """Stops all processes of a worker, for good without a number of seconds."""
        send(worker.pid, signal.SIGSTOP)
        if seconds is None:
            return
        until = time.time() + seconds
        while (left := until - time.time()) > 0:
            self.remember()
            time.sleep(min(left, 1))
        send(worker.pid, signal.SIGCONT)

    def remember(self) -> None:
        """Discovery by files forgets for good who was silent for ten seconds; a cluster does not."""
        for file in (self.folder / "kv").rglob("*"):
            try:
                os.utime(file)
            except OSError:
                pass  # taken back meanwhile

    def finished(self) -> int:
        """Requests that all workers together have finished."""
        total = 0
        for worker in self.workers:
            for line in self.page(worker).splitlines():
                if line.startswith("dynamo_component_request_duration_seconds_count") and '"generate"' in line:
                    total += int(float(line.rsplit(" ", 1)[1]))
        return total

    def page(self, worker: Worker) -> str:
        """A worker's metrics."""
        return get(f"http://{worker.host}:{METRICS_PORT}/metrics")

    def rows(self) -> list[dict]:
        return [worker.row() for worker in self.workers]

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"
