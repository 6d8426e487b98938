"""The machine's GPUs by nvidia-smi, which is only ever asked: no setting of a GPU is changed."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from process import Refused, spawn

# Asked for twice a second; the second list is left out name by name where a driver does not know it.
FIELDS = [
    "timestamp", "index", "uuid", "clocks.sm", "clocks.mem", "power.draw.instant", "temperature.gpu", "utilization.gpu", "memory.used",
    "pcie.link.gen.current",
]
OPTIONAL = [
    "clocks_event_reasons.active", "pcie.link.width.current", "enforced.power.limit", "temperature.memory", "utilization.memory",
    "ecc.errors.corrected.volatile.total", "ecc.errors.uncorrected.volatile.total",
]
BURN = Path(__file__).with_name("burn.py")


@dataclass
class Gpu:
    """One GPU as the driver lists it."""

    index: int
    uuid: str
    product: str
    driver: str
    memory_mib: int
    free_mib: int
    mig: str


def ask(fields: list[str], extra: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", *extra]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def number(word: str) -> int:
    """Zero for what the driver does not say."""
    return int(word) if word.isdigit() else 0


def gpus() -> list[Gpu]:
    """Every GPU of the machine."""
    if not shutil.which("nvidia-smi"):
        raise Refused("nvidia-smi is not on the PATH: this is no machine with NVIDIA's driver")
    answer = ask(["index", "uuid", "name", "driver_version", "memory.total", "memory.free", "mig.mode.current"])
    if answer.returncode != 0:
        raise Refused(f"nvidia-smi fails: {(answer.stdout + answer.stderr).strip()[:400]}")
    found = []
    for line in answer.stdout.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == 7:
            index, uuid, product, driver, total, free, mig = words
            found.append(Gpu(int(index), uuid, product, driver, number(total), number(free), mig))
    if not found:
        raise Refused("nvidia-smi lists no GPU")
    return found


def hardware(devices: list[Gpu]) -> dict:
    """What a record says of the machine."""
    return {
        "product": devices[0].product, "gpus": len(devices), "driver": devices[0].driver, "cpus": os.cpu_count() or 0,
        "devices": [{"pool": "silicon", "name": f"gpu-{device.index}", "uuid": device.uuid} for device in devices],
    }


def record_telemetry(csv: Path) -> int:
    """Starts nvidia-smi writing to a file, in UTC; its process."""
    fields = list(FIELDS)
    for field in OPTIONAL:
        if ask([*fields, field]).returncode == 0:
            fields.append(field)
    if not csv.exists():
        csv.write_text(",".join(fields) + "\n")
    words = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", "-lms", "500"]
    return spawn(csv, words, {**os.environ, "TZ": "UTC"})
