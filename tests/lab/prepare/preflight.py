"""Checks of the machine before anything is built: each problem is one line with its remedy. Python's standard library only."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

GIB = 1 << 30
GO = (1, 26, 8)
PYTHON = (3, 11)


class Machine:
    """What the checks look at, read once; tests fill it in themselves."""

    def __init__(self, repository, folders, state):
        self.platform = (sys.platform, os.uname().machine)
        self.root = os.geteuid() == 0
        self.cores = cores(len(os.sched_getaffinity(0)), read("/sys/fs/cgroup/cpu.max"))
        self.memory = memory(read("/proc/meminfo"), cgroup_memory())
        self.disks = {str(folder): free_space(folder) for folder in folders}
        self.rust = version(["cargo", "--version"], repository)
        self.rust_wanted = tuple(map(int, re.search(r'rust-version = "([\d.]+)"', (repository / "Cargo.toml").read_text()).group(1).split(".")))
        self.go = version(["go", "env", "GOVERSION"], repository)
        self.python = tuple(sys.version_info[:3])
        self.lab = lab_user(Path(state))


class Need:
    """Memory and disk in bytes that a build and a run take, measured on two cores: 15.4 GiB of disk from nothing."""

    def __init__(self, memory, disk):
        self.memory = memory
        self.disk = disk


COLD = Need(memory=5 * GIB, disk=17 * GIB)
WARM = Need(memory=4 * GIB, disk=3 * GIB)


def problems(machine, need):
    """What makes the demo impossible, one line each."""
    found = []
    system, processor = machine.platform
    if (system, processor) != ("linux", "x86_64"):
        found.append(f"This machine is {system} on {processor}. The lab needs Linux on x86_64: use a virtual machine.")
    if not machine.root:
        found.append('Root is missing: the lab makes namespaces, mounts and cgroups. Run `sudo --preserve-env env "PATH=$PATH" .ci/just demo`.')
    if machine.memory < need.memory:
        found.append(f"{gib(machine.memory)} of memory are free, {gib(need.memory)} are needed. End other programs, or raise the limit of the container or virtual machine.")
    for folder, (device, free) in first_of_each_disk(machine.disks).items():
        if free < need.disk:
            found.append(f"{gib(free)} are free on the disk of {folder}, {gib(need.disk)} are needed. Make room, or set {variable(folder)} to a new folder on a larger disk.")
    if machine.rust is None or machine.rust < machine.rust_wanted:
        found.append(f"{missing('Rust', machine.rust, machine.rust_wanted)} Install it with rustup, and put cargo into PATH.")
    if machine.go is None or machine.go < GO:
        found.append(f"{missing('Go', machine.go, GO)} Unpack its archive to /usr/local, and put /usr/local/go/bin into PATH.")
    if machine.python < PYTHON:
        found.append(f"{missing('Python', machine.python, PYTHON)} Install Python 3.11 or newer with its venv module.")
    if machine.lab:
        found.append(machine.lab)
    return found


def warnings(machine):
    """What makes it slow or less exact, one line each."""
    if machine.cores < 2:
        return [f"Cores that can be used: {machine.cores:g}. The first build takes twice as long as on two, and measurements are less exact."]
    return []


def missing(name, found, wanted):
    if found is None:
        return f"{name} {dotted(wanted)} or newer is missing."
    return f"{name} {dotted(found)} is too old: {dotted(wanted)} or newer is needed."


def dotted(numbers):
    return ".".join(map(str, numbers))


def gib(size):
    return f"{size / GIB:.3g} GiB"


def variable(folder):
    return "PERFVAL_LAB_DIR" if "perfval-lab" in Path(folder).name and ".cache" not in folder else "XDG_CACHE_HOME"


def first_of_each_disk(disks):
    """Folders on one disk share its space: the first stands for them."""
    seen, chosen = set(), {}
    for folder, (device, free) in disks.items():
        if device not in seen:
            seen.add(device)
            chosen[folder] = (device, free)
    return chosen


# -- what the machine has

def read(path):
    try:
        # Arguments of another process may be any bytes.
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def cores(usable, cpu_max):
    """Cores that this process may use, also under a limit such as `150000 100000`."""
    words = cpu_max.split()
    if len(words) == 2 and words[0] != "max":
        return min(usable, int(words[0]) / int(words[1]))
    return usable


def memory(meminfo, limit):
    """Bytes that can be had: what the kernel calls available, or what a limit leaves."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo, re.MULTILINE)
    available = int(found.group(1)) * 1024 if found else 0
    return available if limit is None else min(available, limit)


def cgroup_memory(mount="/sys/fs/cgroup"):
    """Bytes that the limit of this container leaves; None without a limit. Files in memory that were not read lately count as free, as in MemAvailable."""
    versions = (("", "memory.max", "memory.current", "inactive_file"), ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
    for folder, maximum, current, cache in versions:
        limit, used = (read(Path(mount, folder, name)).strip() for name in (maximum, current))
        if limit.isdigit() and used.isdigit() and int(limit) < 1 << 60:
            cached = re.search(rf"^{cache} (\d+)$", read(Path(mount, folder, "memory.stat")), re.MULTILINE)
            return int(limit) - int(used) + (int(cached.group(1)) if cached else 0)
    return None


def free_space(folder):
    """Device and free bytes of the disk that holds this folder or will hold it."""
    while not folder.exists():
        folder = folder.parent
    return os.stat(folder).st_dev, shutil.disk_usage(folder).free


def version(command, folder):
    """The first version in what a command prints; None if it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "GOTOOLCHAIN": "local"})
    except OSError:
        return None
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    return tuple(int(number or 0) for number in found.groups()) if done.returncode == 0 and found else None


# -- a lab that is up (the lab's own program decides the same in tests/lab/src/holder.rs, but it may not be built yet)

def lab_user(state):
    """A line about the person or process that uses the lab of this folder; None if it is free."""
    holder = read(state / "holder")
    pid = holder.split(" ")[0]
    if pid and record(pid) == holder:
        return f"Process {pid} runs something on the lab of {state}: wait until it ends, or end it."
    if holder or not is_up(state):
        return None
    try:
        minutes = int((time.time() - (state / "plan.json").stat().st_mtime) / 60)
        since = f" for {minutes} min"
    except OSError:
        since = ""
    return f"A lab has been up{since} in {state}. Run `just lab-down` to end it."


def record(pid):
    """The process number and the time of its start, as the lab writes them."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return f"{pid} {fields[19]}" if len(fields) > 19 else None


def is_up(state):
    """Whether process 1 of this lab's namespace is there."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and read(process / "cmdline").split("\0")[1:3] == ["init", str(state)]:
            numbers = re.search(r"^NSpid:(.*)$", read(process / "status"), re.MULTILINE)
            if numbers and numbers.group(1).split()[-1] == "1":
                return True
    return False
