"""Processes that outlive the command that started them: known by their id, each with its descendants in a group."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

BEGAN = time.time()
# What this command started: Python warns of a process that it loses sight of.
STARTED: list[subprocess.Popen] = []


class Refused(Exception):
    """What stands in the way, and what to do about it."""


def say(*words: object) -> None:
    print(f"[{time.time() - BEGAN:6.1f} s]", *words, flush=True)


def get(url: str, body: dict | None = None, seconds: float = 3) -> str:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        return urllib.request.urlopen(request, timeout=seconds).read().decode()
    except OSError:
        return ""


def spawn(log: Path, words: list[str], environment: dict[str, str]) -> int:
    """Starts a process in a session of its own, so that it lives on after this command; its id."""
    with open(log, "a") as out:
        process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    STARTED.append(process)
    return process.pid


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except OSError:
        pass  # not a child of this command
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def members(group: int) -> list[int]:
    """The processes of a group that run."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split() if folder.name.isdigit() else []
        except OSError:
            continue
        if fields and fields[0] != "Z" and int(fields[2]) == group:
            found.append(int(folder.name))
    return found


def send(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def end(groups: list[int], seconds: float = 30) -> None:
    """Kills groups, and waits until none of their processes is left: a GPU's memory is free only then."""
    for group in groups:
        send(group, signal.SIGKILL)
    deadline = time.time() + seconds
    for group in groups:
        while members(group) and time.time() < deadline:
            alive(group)
            time.sleep(0.2)
        if members(group):
            raise Refused(f"process group {group} does not end after SIGKILL; see `ps -o pid,stat,wchan,cmd -g {group}`")


def tail(log: Path, lines: int = 25) -> str:
    text = log.read_bytes()[-20000:].decode(errors="replace") if log.exists() else "(no log)"
    return "\n".join(text.splitlines()[-lines:])
