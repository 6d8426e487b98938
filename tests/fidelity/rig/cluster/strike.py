"""Faults of a run on real GPUs: foreign work or memory on a GPU, a worker that stands still or is killed, an operator that dies."""

import argparse
import dataclasses
import math
import os
import signal
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from process import Refused, end, say, spawn

# Seconds from the start of a trial's Job until all requests are in flight: AIPerf starts and warms up for 17 to 20 s.
INTO_THE_TRIAL = 30


@dataclasses.dataclass(frozen=True)
class Fault:
    """Fault of one trial. `burn` is a share of the time, `freeze` is in seconds, `memory` in GiB."""

    gpus: tuple[int, ...] = ()
    burn: float = 0
    freeze: float = 0
    memory: float = 0
    kill: bool = False


def fault(text: str) -> Fault:
    """`healthy`, `slow:SHARE@GPU,GPU` or `frozen:SECONDS@GPU,GPU`, as in `cluster.py run --trials`."""
    if text == "healthy":
        return Fault()
    try:
        kind, _, rest = text.partition(":")
        strength, _, gpus = rest.partition("@")
        field = {"slow": "burn", "frozen": "freeze"}[kind]
        found = Fault(tuple(int(gpu) for gpu in gpus.split(",")), **{field: float(strength)})
    except (KeyError, ValueError):
        found = Fault()
    if min(found.gpus, default=-1) < 0 or not (0 < found.burn <= 1 or found.freeze > 0):
        raise argparse.ArgumentTypeError(f"{text}: write healthy, slow:0.3@1, slow:0.3@0,2 or frozen:10@1")
    return found


class Strikes:
    """What `cluster.py run` was told to do, and the workers that it struck, by trial."""

    def __init__(self, options, folder: Path):
        self.options, self.folder = options, folder
        self.burners: list[int] = []
        self.victims: dict[int, str] = {}
        self.struck = 0

    def fault(self, trial: int) -> Fault:
        """Fault of a trial; the trials after those of a list are healthy."""
        told = self.options
        if told.trials:
            return told.trials[trial - 1] if trial <= len(told.trials) else Fault()
        kill = told.kill_worker and trial == 1
        return Fault((told.gpu,), told.burn or 0, told.freeze or 0, told.memory or 0, kill)

    def start(self) -> None:
        """Work and memory on GPUs, from before the run on."""
        if not self.options.trials:
            self.burn(self.fault(1))

    def burn(self, wanted: Fault) -> None:
        """Ends the processes of the fault before, and starts those of this one."""
        self.stop()
        if not (wanted.burn or wanted.memory):
            return
        for gpu in wanted.gpus:
            words = [sys.executable, str(HERE.parent / "burn.py"), str(wanted.burn), str(self.folder / f"burn-{gpu}.json"), str(wanted.memory)]
            environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(gpu)}
            self.burners.append(spawn(self.folder / "burn.log", words, environment))
            say(f"another process computes on GPU {gpu} for {wanted.burn:.0%} of the time and has {wanted.memory} GiB of its memory")

    def look(self, message: str) -> None:
        """Strikes once in each trial, from a thread of its own: the run is followed meanwhile."""
        words = message.split()
        if words[:1] != ["trial"] or not words[1].isdigit() or int(words[1]) <= self.struck:
            return
        self.struck = int(words[1])
        wanted = self.fault(self.struck)
        if self.options.trials:
            self.burn(wanted)
        if wanted.freeze or wanted.kill or (self.options.kill_operator and self.struck == 1):
            threading.Thread(target=self.strike, args=(self.struck, wanted), daemon=True).start()

    def strike(self, trial: int, wanted: Fault) -> None:
        time.sleep(INTO_THE_TRIAL)
        if self.options.kill_operator:
            operators = [pid for pid in processes() if name(pid) == "perfvalidation-"]
            for pid in operators:
                os.kill(pid, signal.SIGKILL)
            say(f"killed {len(operators)} operator")
        if wanted.freeze or wanted.kill:
            self.hit(trial, wanted)

    def hit(self, trial: int, wanted: Fault) -> None:
        """Kills the engines on GPUs, or stops them."""
        found = [pid for gpu in wanted.gpus for pid in on_gpu(gpu)]
        for pid in found:
            self.victims[trial] = hostname(pid) or self.victims.get(trial, "")
            os.kill(pid, signal.SIGKILL if wanted.kill else signal.SIGSTOP)
        long = "good" if wanted.freeze == math.inf else f"{wanted.freeze} s"
        did = "killed" if wanted.kill else f"for {long} stopped"
        say(f"{did} {found} of {self.victims.get(trial)}")
        if wanted.kill or wanted.freeze == math.inf:
            return
        time.sleep(wanted.freeze)
        for pid in found:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ends the processes on the GPUs."""
        end(self.burners)
        self.burners = []


def processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def name(pid: int) -> str:
    """The first 15 letters of a program's name."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def hostname(pid: int) -> str:
    """The pod of a process. An engine overwrites its own environment with its title, so its parents are asked."""
    while pid > 1:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            return ""
        found = [entry.partition(b"=")[2].decode() for entry in environment if entry.startswith(b"HOSTNAME=pv-")]
        if found:
            return found[0]
        pid = parent
    return ""


def on_gpu(index: int) -> list[int]:
    """Engines that have a GPU open. The ids that nvidia-smi lists are those of another namespace on some machines."""
    found = [pid for pid in processes() if name(pid).startswith("VLLM::") and f"/dev/nvidia{index}" in opened(pid)]
    if not found:
        raise Refused(f"no engine has GPU {index} open")
    return found


def opened(pid: int) -> set[str]:
    """Files that a process has open."""
    found = set()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            found.add(os.readlink(link))
    except OSError:
        pass  # it ended meanwhile
    return found
