"""The trials by name, and what each does to the deployment."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from gpus import BURN
from load import Load, confine, descendants
from pages import Pages
from process import Refused, say, tail
from session import Session
from stack import ROUTERS, Stack

NAMES = """healthy:COUNT  slow:SHARE  slowed:FACTOR  all-slow:FACTOR  frozen:SECONDS  frozen-for-good  killed  starved-generator
crowded-frontend:RIVALS  frontend-cpus:COUNT  long-prompt  per-gpu:REQUESTS  two-on-one-gpu  fresh  route:ROUTER; each but the last two may end in xTIMES, as slow:0.15x4"""


# Trials that one engine alone can show.
ENGINES_OF = {"slow": "vllm", "slowed": "mocker", "all-slow": "mocker"}


@dataclass(frozen=True)
class Wish:
    """One trial, or what happens between two."""

    kind: str
    amount: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.amount}" if self.amount else self.kind

    def number(self) -> float:
        try:
            return float(self.amount)
        except ValueError:
            raise Refused(f"{self}: {self.amount or 'nothing'} is no number; trials are\n{NAMES}") from None


def parse(words: list[str]) -> list[Wish]:
    wishes = []
    for word in words:
        found = re.fullmatch(r"([a-z-]+?)(?::([^x]+))?(?:x(\d+))?", word)
        if not found or found[1] not in ACTIONS:
            raise Refused(f"{word} is no trial; trials are\n{NAMES}")
        kind, amount, times = found[1], found[2] or "", int(found[3] or 1)
        if kind == "healthy":
            amount, times = "", int(amount or 1) * times
        if kind in ("slow", "slowed", "all-slow", "frozen", "per-gpu", "crowded-frontend", "frontend-cpus"):
            Wish(kind, amount).number()
        if kind == "route" and amount not in ROUTERS.values():
            raise Refused(f"{word}: routers are {', '.join(ROUTERS.values())}")
        wishes += [Wish(kind, amount)] * times
    return wishes


@dataclass
class Plan:
    """How trials are run."""

    load: Load
    within: float
    out: Path | None
    pages: bool = False


def run(session: Session, wishes: list[Wish], plan: Plan) -> None:
    """One after the other, as long as the time allows."""
    began, engine = time.time(), session.stack.engine.name
    for wish in wishes:
        if ENGINES_OF.get(wish.kind, engine) != engine:
            raise Refused(f"{wish} needs the engine {ENGINES_OF[wish.kind]}, and {engine} runs")
    for number, wish in enumerate(wishes):
        left = plan.within - (time.time() - began)
        expected = expect(session, wish)
        if expected * 1.1 > left:
            say(f"{left:.0f} s are left, {wish} takes about {expected:.0f}; left out:", *wishes[number:])
            break
        started, restarting = time.time(), session.restarting
        try:
            perform(session, wish, plan)
        except Refused as refusal:
            say(f"{wish}: {refusal}")
            session.stale = True
        took = time.time() - started - (session.restarting - restarting)
        if wish.kind != "fresh":
            session.longest[wish.kind] = max(session.longest.get(wish.kind, 0), took)
        session.save()
        if plan.out:
            session.results.pack(plan.out)


def expect(session: Session, wish: Wish) -> float:
    """Seconds, from what such trials took before, or else those of other kinds; nothing is known of the very first."""
    others = [took for kind, took in session.longest.items() if kind not in ("fresh", "route")]
    trial = 0 if wish.kind == "fresh" else session.longest.get(wish.kind, median(others or [0]))
    shared = session.shape.startswith("shared:") != (wish.kind == "two-on-one-gpu")
    restarts = wish.kind == "fresh" or session.stale or (shared and wish.kind != "route")
    return trial + (session.longest.get("fresh", session.stack.engine.ready_seconds / 2) if restarts else 0)


def perform(session: Session, wish: Wish, plan: Plan) -> None:
    pages = Pages(session, f"{time.strftime('%H%M%S', time.gmtime())}-{wish.kind}") if plan.pages else None
    try:
        ACTIONS[wish.kind](session, wish, plan.load)
    finally:
        if pages:
            pages.stop()


def healthy(session: Session, wish: Wish, load: Load) -> None:
    session.shaped("plain")
    session.trial(str(wish), "Healthy", load)


def long_prompt(session: Session, wish: Wish, load: Load) -> None:
    healthy(session, wish, replace(load, per_gpu=min(load.per_gpu, 64), input_tokens=2000, output_tokens=64))


def per_gpu(session: Session, wish: Wish, load: Load) -> None:
    healthy(session, wish, replace(load, per_gpu=int(wish.number())))


def slow(session: Session, wish: Wish, load: Load) -> None:
    """Another process computes on the GPU of one worker for a share of the time."""
    session.shaped("plain")
    victim, share, file = session.victim("slow"), wish.number(), session.folder / "burn.json"
    file.unlink(missing_ok=True)
    finished = session.stack.finished()

    def started(runner: subprocess.Popen) -> None:
        # AIPerf takes longer to start than the burner: no time is lost, if that holds.
        while not file.exists() and runner.poll() is None:
            time.sleep(0.2)
        if session.stack.finished() > finished:
            raise Refused(f"the foreign load came after the first requests; its log:\n{tail(session.folder / 'burn.log')}")

    words = [sys.executable, str(BURN), str(share), str(file)]
    with session.guest("burn.log", words, CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES=str(victim.gpu)):
        session.trial(str(wish), "SlowGpu", load, victim, started, share=share, burner=lambda: json.loads(file.read_text()))


def slowed(session: Session, wish: Wish, load: Load) -> None:
    """One worker is slower by a factor (mocker)."""
    turn = session.turns.get(f"slowed {wish.amount}", 0) % session.count
    session.shaped(f"slow:{turn}:{wish.number()}")
    victim = session.victim(f"slowed {wish.amount}")
    session.trial(str(wish), "SlowWorker" if wish.number() >= 10 else "SlowerWorker", load, victim, factor=wish.number())


def all_slow(session: Session, wish: Wish, load: Load) -> None:
    session.shaped(f"all-slow:{wish.number()}")
    session.trial(str(wish), "AllSlow", load, factor=wish.number())


def struck(session: Session, wish: Wish, load: Load, fault: str, strike: Callable, **conditions) -> None:
    """A fault that strikes one worker under load."""
    session.shaped("plain")
    victim = session.victim(wish.kind)
    finished = session.stack.finished()

    def during(runner: subprocess.Popen) -> None:
        if under_load(session.stack, runner, finished + load.strikes_after()):
            strike(session.stack, victim)

    session.trial(str(wish), fault, load, victim, during, **conditions)


def under_load(stack: Stack, runner: subprocess.Popen, finished: int) -> bool:
    """Waits until so many requests are finished; whether the trial still runs then."""
    while runner.poll() is None:
        if stack.finished() >= finished:
            return True
        time.sleep(0.5)
    return False


def frozen(session: Session, wish: Wish, load: Load) -> None:
    seconds = wish.number()
    struck(session, wish, load, "FrozenTenSeconds", lambda stack, victim: stack.freeze(victim, seconds), seconds=seconds)
    session.mend()


def frozen_for_good(session: Session, wish: Wish, load: Load) -> None:
    struck(session, wish, impatient(load), "FrozenForGood", lambda stack, victim: stack.freeze(victim, None))
    session.stale = True


def killed(session: Session, wish: Wish, load: Load) -> None:
    struck(session, wish, impatient(load), "Dead", lambda stack, victim: stack.kill(victim))
    session.stale = True


def impatient(load: Load) -> Load:
    """A request on a worker that never answers must not take the whole trial, unless a time-out was asked for."""
    return load if load.request_seconds else replace(load, request_seconds=20)


def starved(session: Session, wish: Wish, load: Load) -> None:
    """AIPerf shares one CPU with a process that never rests, from its first request on: it starts as fast as ever."""
    session.shaped("plain")
    cpu = max(os.sched_getaffinity(0))
    finished = session.stack.finished()

    def during(runner: subprocess.Popen) -> None:
        if under_load(session.stack, runner, finished + 1):
            # Not the runner itself: it goes on sampling as before.
            confine(descendants(runner.pid)[1:], {cpu})

    # A fraction of the speed: a quarter of the requests take as long.
    fewer = replace(load, requests_per=max(load.requests_per // 4, 2))
    with session.guest("rival.log", rival(cpu)):
        session.trial(str(wish), "StarvedGenerator", fewer, None, during, cpus=1)


def rival(cpu: int) -> list[str]:
    """A process that never rests."""
    return [sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"]


def crowded_frontend(session: Session, wish: Wish, load: Load) -> None:
    """The frontend shares one CPU with this many processes that never rest, once the trial is under load."""
    session.shaped("plain")
    every, cpu, rivals = os.sched_getaffinity(0), max(os.sched_getaffinity(0)), int(wish.number())
    finished, frontend = session.stack.finished(), descendants(session.stack.frontend)

    def during(runner: subprocess.Popen) -> None:
        if under_load(session.stack, runner, finished + load.strikes_after()):
            confine(frontend, {cpu})

    with ExitStack() as guests:
        for number in range(rivals):
            guests.enter_context(session.guest(f"rival-{number}.log", rival(cpu)))
        try:
            session.trial(str(wish), "CrowdedFrontend", impatient(load), None, during, rivals=rivals)
        finally:
            confine(frontend, every)


def frontend_cpus(session: Session, wish: Wish, load: Load) -> None:
    """The frontend has this many CPUs, which others may use too. The corpus has no such fault."""
    session.shaped("plain")
    every, frontend = os.sched_getaffinity(0), descendants(session.stack.frontend)
    confine(frontend, set(sorted(every)[: int(wish.number())]))
    try:
        session.trial(str(wish), "CrowdedFrontend", load, corpus=False)
    finally:
        confine(frontend, every)


def two_on_one(session: Session, wish: Wish, load: Load) -> None:
    """One worker more than GPUs: two of them share one."""
    if not session.shape.startswith("shared:") or session.stale:
        shared = session.turns.get(wish.kind, 0) % session.count
        session.turns[wish.kind] = shared + 1
        session.shaped(f"shared:{shared}")
    owner = session.stack.workers[int(session.shape.split(":")[1])]
    session.trial(str(wish), "TwoOnOneGpu", load, owner, workers=len(session.stack.workers))


def fresh(session: Session, wish: Wish, load: Load) -> None:
    session.again("plain")


def route(session: Session, wish: Wish, load: Load) -> None:
    router = next(name for name, flag in ROUTERS.items() if flag == wish.amount)
    if session.stale:
        session.stack.router = router  # with the start that comes before the next trial
    else:
        session.stack.route(router)
    say(f"the router is {wish.amount}")


ACTIONS: dict[str, Callable[[Session, Wish, Load], None]] = {
    "healthy": healthy, "slow": slow, "slowed": slowed, "all-slow": all_slow, "frozen": frozen, "frozen-for-good": frozen_for_good,
    "killed": killed, "starved-generator": starved, "crowded-frontend": crowded_frontend, "frontend-cpus": frontend_cpus,
    "long-prompt": long_prompt, "per-gpu": per_gpu, "two-on-one-gpu": two_on_one,
    "fresh": fresh, "route": route,
}
