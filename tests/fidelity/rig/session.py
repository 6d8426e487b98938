"""Engines that live on between commands, and the records of their trials."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import load as loads
from engines import GIB, SKIP, Programs, Worker
from gpus import Gpu, gpus
from load import Load
from process import Refused, alive, end, say, send, spawn
from results import Results
from stack import ROUTERS, Stack, host
from usage import Usage

IMAGES = {"mocker": "localhost/dynamo-lab:1.4.2", "vllm": "localhost/dynamo-vllm:1.4.2"}
# About 50 ms a token on the mocker: two cores must not be what is measured.
SPEED = 0.12


class Session:
    """A deployment, how it is shaped, and where its trials are written."""

    def __init__(self, folder: Path, programs: Programs, place: str, hardware: dict, devices: list[Gpu], workers: int):
        self.folder, self.programs, self.place = folder, programs, place
        self.hardware, self.devices, self.count = hardware, devices, workers
        self.shape, self.stale = "plain", False
        self.turns: dict[str, int] = {}
        self.longest: dict[str, float] = {}
        self.background: list[int] = []
        # What a trial started in addition to the engines; a command that is killed leaves it behind.
        self.guests: list[int] = []
        # Of this command: time that engines needed to start again.
        self.restarting = 0.0
        self.stack: Stack | None = None
        self.results = Results(folder)

    # -- what a later command finds again

    def save(self) -> None:
        state = {
            "place": self.place, "hardware": self.hardware, "devices": [vars(device) for device in self.devices], "count": self.count,
            "shape": self.shape, "stale": self.stale, "turns": self.turns, "longest": self.longest, "background": self.background, "guests": self.guests,
            "stack": self.stack.saved() if self.stack else None,
        }
        (self.folder / "state.json").write_text(json.dumps(state))

    @classmethod
    def found(cls, folder: Path, programs: Programs) -> "Session":
        file = folder / "state.json"
        if not file.exists():
            raise Refused(f"nothing is started in {folder}: type `start` first")
        state = json.loads(file.read_text())
        devices = [Gpu(**device) for device in state["devices"]]
        session = cls(folder, programs, state["place"], state["hardware"], devices, state["count"])
        for name in ("shape", "stale", "turns", "longest", "background", "guests"):
            setattr(session, name, state[name])
        if state["stack"]:
            session.stack = Stack.found(programs, folder, state["stack"])
        session.tidy()
        return session

    def tidy(self) -> None:
        """Undoes what a trial left that was cut off."""
        if self.guests:
            say("the last command was cut off: what it left is ended")
            end(self.guests)
            self.guests = []
        for worker in self.stack.workers if self.stack else []:
            send(worker.pid, signal.SIGCONT)

    @contextmanager
    def guest(self, log: str, words: list[str], **environment: str) -> Iterator[None]:
        """A process in addition to the engines, for as long as a trial lasts."""
        pid = spawn(self.folder / log, words, {**os.environ, **environment})
        self.guests.append(pid)
        self.save()
        try:
            yield
        finally:
            end([pid])
            self.guests.remove(pid)

    # -- the deployment

    def workers(self, shape: str) -> list[Worker]:
        """The workers of a shape: `plain`, `slow:WORKER:FACTOR`, `all-slow:FACTOR`, `shared:GPU`."""
        kind, *arguments = shape.split(":")
        workers = [Worker(index, host(index), speed=SPEED) for index in range(self.count)]
        for worker, device in zip(workers, self.devices, strict=False):
            worker.gpu, worker.device = device.index, f"{self.place}/{device.uuid}"
        if kind == "slow":
            workers[int(arguments[0])].speed /= float(arguments[1])
        elif kind == "all-slow":
            for worker in workers:
                worker.speed /= float(arguments[0])
        elif kind == "shared":
            return self.with_guest(workers, int(arguments[0]))
        return workers

    def with_guest(self, workers: list[Worker], shared: int) -> list[Worker]:
        """One worker more, on a GPU that another has already."""
        owner = workers[shared]
        guest = Worker(self.count, host(self.count), speed=owner.speed / 2, gpu=owner.gpu, device=owner.device)
        owner.speed /= 2
        for worker in (owner, guest):
            worker.memory = 0.4
            if self.devices:
                # Weights are 13 GiB; graphs and activations must fit too.
                worker.cache_bytes = max(4 * GIB, int(0.4 * self.devices[shared].memory_mib * (1 << 20)) - 20 * GIB)
        return [*workers, guest]

    def start(self, engine: str, router: str, shape: str = "plain") -> None:
        self.stack = Stack(self.programs, engine, router, self.folder)
        self.begin(shape)

    def begin(self, shape: str) -> None:
        """Starts the engines anew in this shape."""
        self.shape, self.stale = shape, False
        began = time.time()
        try:
            self.stack.start(self.workers(shape))
        finally:
            self.save()
        self.longest["fresh"] = max(self.longest.get("fresh", 0), time.time() - began)
        say(f"{len(self.stack.workers)} workers serve after {time.time() - began:.0f} s ({ROUTERS[self.stack.router]}, {shape})")

    def again(self, shape: str) -> None:
        began = time.time()
        try:
            self.stack.stop()
            self.wait_for_memory()
            self.begin(shape)
        finally:
            self.restarting += time.time() - began

    def wait_for_memory(self) -> None:
        """A driver gives memory back a moment after its process is gone."""
        for _ in range(60 if self.devices else 0):
            if all(device.free_mib >= 0.85 * device.memory_mib for device in gpus()[SKIP : SKIP + self.count]):
                return
            time.sleep(0.5)

    def shaped(self, shape: str) -> None:
        """Sees to it that the deployment has this shape and is whole."""
        dead = [worker.name for worker in self.stack.workers if not alive(worker.pid)]
        if dead:
            say(f"{', '.join(dead)} ended: everything is started anew")
        elif self.shape == shape and not self.stale:
            return
        self.again(shape)

    def mend(self) -> None:
        """After a standstill: who is not known any more is started anew, but only if another trial follows."""
        known, all_of_them = self.stack.registered(), len(self.stack.workers)
        if known < all_of_them:
            say(f"the frontend knows {known} of {all_of_them} workers: started anew before the next trial")
            self.stale = True

    def victim(self, kind: str) -> Worker:
        """Every worker in turn, so that its place says nothing."""
        turn = self.turns.get(kind, 0)
        self.turns[kind] = turn + 1
        return self.stack.workers[turn % self.count]

    def stop(self) -> None:
        end([*self.background, *self.guests])
        if self.stack:
            self.stack.stop()
        (self.folder / "state.json").unlink(missing_ok=True)

    # -- trials

    def trial(self, name: str, fault: str, load: Load, victim: Worker | None = None, during=None, corpus: bool = True, **conditions) -> bool:
        """Runs one trial, prints one line and adds one record; whether there is one. A condition that can be called is known afterwards."""
        began, frontend = time.time(), Usage(loads.descendants(self.stack.frontend))
        try:
            trial, log = loads.trial(self.stack, load, during)
        finally:
            cpus, memory = frontend.stop()
        seconds = time.time() - began
        at, router = f"  on {victim.name}" if victim else "", ROUTERS[self.stack.router]
        if trial is None:
            say(f"{name:<18} {router:<12} no record after {seconds:.0f} s{at}; the end of the log:\n{log}")
            return False
        if victim:
            trial["victim"] = victim.name
        say(f"{name:<18} {router:<12} {loads.short(trial)}  {seconds:4.0f} s{at}  frontend {cpus:.2f} CPUs, {memory} MiB")
        if not corpus:
            return True
        self.results.add({
            "router": self.stack.router, "fault": fault,
            "spec": load.spec(self.stack.router, IMAGES[self.stack.engine.name]),
            "gpus": [load.gpus, load.gpus], "trials": [trial], "seconds": int(seconds), "load": os.getloadavg()[1],
            "place": self.place, "deployment": self.stack.deployment, "hardware": self.hardware,
            "recorded": datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "conditions": {key: value() if callable(value) else value for key, value in conditions.items()},
        })
        return True
