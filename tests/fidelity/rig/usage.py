"""CPU and memory of processes, while a trial runs."""

import os
import threading
import time
from pathlib import Path

TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
# Seconds over which CPU is averaged: a peak of one second is no reason to reserve a CPU.
WINDOW = 10


class Usage:
    """Reads these processes once a second until it is stopped."""

    def __init__(self, pids: list[int]):
        self.pids, self.readings, self.over = pids, [], threading.Event()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        while True:
            self.readings.append((time.time(), *total(self.pids)))
            if self.over.wait(1):
                return

    def stop(self) -> tuple[float, int]:
        """Most CPUs used over WINDOW seconds, and most memory (MiB)."""
        self.over.set()
        self.thread.join()
        # A shorter trial is one window.
        window = min(WINDOW, len(self.readings) - 1) or 1
        pairs = zip(self.readings, self.readings[window:])
        cpus = [(later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in pairs]
        return max(cpus, default=0.0), max(memory for *_, memory in self.readings) >> 20


def total(pids: list[int]) -> tuple[float, int]:
    """CPU seconds so far and resident bytes; a process that has ended has none."""
    seconds, memory = 0.0, 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        seconds += (int(fields[11]) + int(fields[12])) / TICKS
        memory += int(fields[21]) * PAGE
    return seconds, memory
