"""What the machine must have, said before anything is started."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from engines import GIB, SKIP, Programs, kv_event_port, side_channel_port
from gpus import Gpu, gpus
from process import Refused
from stack import METRICS_PORT, PORT, host

PYTHON = (3, 12)
# vLLM 0.26.0 is built for this one; another fails at import with undefined symbols.
TORCH = "2.11."
MEMORY_SHARE = 0.8
# 13 GiB of weights, and a cache for one GPU's requests.
LEAST_MEMORY_GIB, LEAST_HOST_GIB, LEAST_DISK_GIB = 24, 6, 4
SEEN = """
import json, torch
print(json.dumps([torch.__version__, torch.cuda.is_available(), torch.cuda.device_count()]))
"""


def devices(wanted: int | None) -> list[Gpu]:
    """The GPUs that are used; refuses those that cannot be."""
    found = gpus()[SKIP:]
    if wanted and wanted > len(found):
        raise Refused(f"{wanted} GPUs are asked for, and nvidia-smi lists {len(found)}{' more' if SKIP else ''}")
    found = found[: wanted or 8]
    products = sorted({device.product for device in found})
    if len(products) > 1:
        raise Refused(f"GPUs of several products ({', '.join(products)}): they are no peers; ask for fewer by --gpus")
    for device in found:
        name = f"GPU {device.index} ({device.uuid})"
        if device.mig == "Enabled":
            raise Refused(f"{name} is partitioned (MIG): this rig takes whole GPUs, and changes no setting")
        total, free = device.memory_mib / 1024, device.free_mib / 1024
        if device.memory_mib and total < LEAST_MEMORY_GIB:
            raise Refused(f"{name} has {total:.0f} GiB of memory, {LEAST_MEMORY_GIB} are needed")
        if device.memory_mib and free < MEMORY_SHARE * total:
            raise Refused(f"{name}: {free:.0f} of {total:.0f} GiB are free, {MEMORY_SHARE * total:.0f} are needed: another process holds the rest (nvidia-smi)")
    return found


def machine(count: int) -> None:
    """Python, torch, memory and disk."""
    if sys.version_info[:2] != PYTHON:
        raise Refused(f"Python {sys.version.split()[0]} at {sys.executable}; the wheels are for {PYTHON[0]}.{PYTHON[1]}")
    done = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"{sys.executable} cannot import torch: run this with the Python that has it; {done.stderr.strip().splitlines()[-1:]}")
    version, cuda, seen = json.loads(done.stdout.splitlines()[-1])
    if not version.startswith(TORCH):
        raise Refused(f"torch {version}; vLLM's wheel needs {TORCH}x")
    if not cuda or seen < count:
        raise Refused(f"torch {version} sees {seen} GPUs (CUDA available: {cuda}), {count} are needed")


def room(folder: Path, count: int) -> None:
    """Memory and disk of the host. All memory counts, free or not: on some machines it grows as it is used."""
    disk = shutil.disk_usage(folder).free / GIB
    if disk < LEAST_DISK_GIB:
        raise Refused(f"{folder} has {disk:.1f} GiB free, {LEAST_DISK_GIB} are needed")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    if memory < LEAST_HOST_GIB * count:
        raise Refused(f"{memory:.0f} GiB of memory for {count} workers; {LEAST_HOST_GIB} for each are needed")


def ports(count: int) -> None:
    """Refuses where something listens where the rig will."""
    wanted = [("127.0.0.1", PORT), *((host(index), METRICS_PORT) for index in range(count))]
    wanted += [("127.0.0.1", port(index)) for index in range(count) for port in (kv_event_port, side_channel_port)]
    for address, port in wanted:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((address, port))
            except OSError as error:
                raise Refused(f"port {port} of {address} is taken ({error.strerror}): end what listens there, or type `stop`") from None


def programs(found: Programs) -> None:
    """The runner is there and runs."""
    runner = subprocess.run([found.runner, "--version"], capture_output=True, text=True, check=False) if Path(found.runner).exists() else None
    if runner is None or runner.returncode != 0:
        raise Refused(f"{found.runner} does not run: {runner.stderr.strip() if runner else 'it is not there'}")
