"""Faults of a run on real GPUs: foreign work or memory on a GPU, a worker that stands still or is killed, an operator that dies."""

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


class Strikes:
    """What `cluster.py run` was told to do, and the workers that it struck, by trial."""

    def __init__(self, options, folder: Path):
        self.options, self.folder = options, folder
        self.burner = 0
        self.victims: dict[int, str] = {}
        self.struck = 0

    def start(self) -> None:
        """Work and memory on a GPU, from before the run on."""
        share, memory = self.options.burn or 0, self.options.memory or 0
        if not (share or memory):
            return
        words = [sys.executable, str(HERE.parent / "burn.py"), str(share), str(self.folder / "burn.json"), str(memory)]
        environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(self.options.gpu)}
        self.burner = spawn(self.folder / "burn.log", words, environment)
        say(f"another process computes on GPU {self.options.gpu} for {share:.0%} of the time and has {memory} GiB of its memory")

    def look(self, message: str) -> None:
        """Strikes once in each trial, from a thread of its own: the run is followed meanwhile."""
        words = message.split()
        if words[:1] != ["trial"] or not words[1].isdigit() or int(words[1]) <= self.struck:
            return
        self.struck = int(words[1])
        first_only = self.options.kill_operator or self.options.kill_worker
        if self.options.freeze or (first_only and self.struck == 1):
            threading.Thread(target=self.strike, args=(self.struck,), daemon=True).start()

    def strike(self, trial: int) -> None:
        time.sleep(INTO_THE_TRIAL)
        if self.options.kill_operator:
            operators = [pid for pid in processes() if name(pid) == "perfvalidation-"]
            for pid in operators:
                os.kill(pid, signal.SIGKILL)
            say(f"killed {len(operators)} operator")
        if self.options.freeze or self.options.kill_worker:
            self.hit(trial)

    def hit(self, trial: int) -> None:
        """Kills the engine on a GPU, or stops it."""
        found = on_gpu(self.options.gpu)
        for pid in found:
            self.victims[trial] = hostname(pid) or self.victims.get(trial, "")
            os.kill(pid, signal.SIGKILL if self.options.kill_worker else signal.SIGSTOP)
        long = "good" if self.options.freeze == math.inf else f"{self.options.freeze} s"
        did = "killed" if self.options.kill_worker else f"for {long} stopped"
        say(f"{did} {found} of {self.victims.get(trial)}")
        if self.options.kill_worker or self.options.freeze == math.inf:
            return
        time.sleep(self.options.freeze)
        for pid in found:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        if self.burner:
            end([self.burner])


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
