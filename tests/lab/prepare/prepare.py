#!/usr/bin/env python3
"""Builds what the demo or a lab needs, and shows in one line how far it is. Python's standard library only.

Usage: prepare.py --cache DIR --target DIR [FLAGS OF lab up]

First it checks the machine and the network, so that a first build of many minutes does not end at a missing package.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import preflight
from progress import Part, Progress, Screen, now

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
MODULE = REPOSITORY / "tests" / "lab" / "programs" / "cluster"
# One list for every call of cargo: other packages would choose other features, and dependencies would compile again.
PACKAGES = ["perfval-lab", "mock-nvml", "perfval-e2e", "perfval-operator", "perfval-runner", "perfval-cli"]
PROGRAMS = ["lab", "suite", "demo", "perfvalidation-operator", "perfval-runner", "kubectl-perfval"]
RUST = {
    "RUSTC_WORKSPACE_WRAPPER": str(HERE / "static-programs"),
    "CARGO_TERM_PROGRESS_WHEN": "always",
    "CARGO_TERM_PROGRESS_WIDTH": "100",
    "CARGO_TERM_COLOR": "never",
}
GO = {"GOTOOLCHAIN": "local", "GOFLAGS": ""}
NETWORK = "connect this machine to the network, or give {} a mirror in its own settings"


class Step:
    """One command of one part."""

    def __init__(self, part, command, folder=REPOSITORY, environment=None, remedy=None):
        self.part = part
        self.command = command
        self.folder = folder
        self.environment = environment or {}
        self.remedy = remedy


class Failed(Exception):
    """A step failed; its lines. Without an exit code it did not run to its end."""

    def __init__(self, step, code, lines):
        super().__init__(step.part)
        self.step, self.code, self.lines = step, code, lines

    def text(self, log):
        what = " ".join(map(str, self.step.command))
        if self.step.remedy and self.code is not None:
            last = next((line for line in reversed(self.lines) if line.strip()), "no output")
            return f"{self.step.part}: `{what}` failed ({last.strip()}). What to do: {self.step.remedy}."
        code = "" if self.code is None else f" with exit code {self.code}"
        return "\n".join([*self.lines[-40:], f"{self.step.part}: `{what}` failed{code}. All of its output: {log}"])


class Runner:
    """Runs steps, writes their output to the log and shows the progress."""

    def __init__(self, progress, screen, log, quiet):
        self.progress, self.screen, self.log, self.quiet = progress, screen, log, quiet
        self.lock = threading.Lock()
        self.children = set()
        self.failure = None
        self.ended = False

    def start(self, *steps):
        """Starts steps that run one after the other."""
        thread = threading.Thread(target=self.work, args=(steps,), daemon=True)
        thread.start()
        return thread

    def wait(self, *threads):
        """Shows the progress until the threads are through; the first failure ends all."""
        while any(thread.is_alive() for thread in threads) and self.failure is None:
            with self.lock:
                if now() - self.progress.began >= self.quiet:
                    self.screen.show(self.progress, now())
            for thread in threads:
                thread.join(0.5 / len(threads))
        if self.failure:
            raise self.failure

    def work(self, steps):
        try:
            for step in steps:
                self.run(step)
        except Exception as error:
            failure = error if isinstance(error, Failed) else Failed(step, None, [str(error)])
            with self.lock:
                self.failure = self.failure or failure

    def run(self, step):
        # The lab's own lines name their parts.
        part = self.progress.parts.get(step.part)
        with self.lock:
            if self.ended:
                return
            if part:
                part.start(now())
            child = subprocess.Popen(
                step.command, cwd=step.folder, env={**os.environ, **step.environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )
            self.children.add(child)
        lines = []
        with child.stdout:
            for line in lines_of(child.stdout):
                self.hear(step, line, lines)
        code = child.wait()
        with self.lock:
            self.log.flush()
            self.children.discard(child)
            if part:
                part.end(now())
        if code != 0:
            raise Failed(step, code, lines)

    def hear(self, step, line, lines):
        with self.lock:
            self.progress.hear(step.part, line, now())
            if "Building [" not in line:
                lines.append(line)
                self.log.write(line + "\n")

    def end(self):
        """Ends what still runs; no step starts after it."""
        with self.lock:
            self.ended = True
            for child in self.children:
                try:
                    os.killpg(child.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass


def lines_of(stream):
    """Lines of an output, also those that a carriage return ends."""
    rest = ""
    while chunk := os.read(stream.fileno(), 65536):
        *lines, rest = re.split(r"[\r\n]+", rest + chunk.decode(errors="replace"))
        yield from (line for line in lines if line.strip())
    if rest.strip():
        yield rest


def parts():
    """All parts with their CPU seconds on a machine with two cores, in the order of their start: 603 s in all (2026-11-24)."""
    return [
        Part("Debian packages", 15), Part("crates", 3), Part("Go modules", 2),
        Part("lab program", 280, "crates"), Part("operator and demo", 40, "crates"),
        Part("kubernetes", 480, "packages"), Part("etcd", 30, "packages"), Part("containerd", 60, "packages"),
        Part("nvidia-dra", 30, "packages"), Part("coredns", 20, "packages"), Part("kwok", 15, "packages"), Part("images", 130),
    ]


def cargo(programs):
    selected = [word for package in PACKAGES for word in ("-p", package)]
    binaries = [word for program in programs for word in ("--bin", program)]
    # The library is that of the simulated driver.
    return ["cargo", "build", "--locked", *selected, "--lib", *binaries]


def build(runner, options, flags):
    """The order: what needs the network first, then the lab's program, then all else side by side."""
    first = [
        runner.start(Step("Debian packages", ["bash", ".ci/setup", str(options.cache / "tools")])),
        runner.start(Step("crates", ["cargo", "fetch", "--locked", "--target", "x86_64-unknown-linux-gnu"], remedy=NETWORK.format("cargo"))),
    ]
    if not options.built:
        # One module shows whether all can be had. `go build` takes the others while Rust's compiler uses the cores.
        probe = ["go", "mod", "download", "go.etcd.io/etcd/server/v3"]
        first.append(runner.start(Step("Go modules", probe, MODULE, GO, NETWORK.format("Go"))))
    runner.wait(*first)
    runner.wait(runner.start(Step("lab program", cargo(["lab"]), environment=RUST)))
    lab = [str(options.target / "debug" / "lab"), "prepare", *flags]
    rest = runner.start(Step("operator and demo", cargo(PROGRAMS), environment=RUST))
    runner.wait(rest, runner.start(Step("lab", lab)))


def is_built(folder):
    """Whether a folder of the cache is a finished build: an interrupted one has an extension, as in `etcd-0123.building`."""
    return folder.is_dir() and not folder.suffix


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True, help="cargo's target folder")
    options, flags = parser.parse_known_args()
    began = now()
    state = os.environ.get("PERFVAL_LAB_DIR") or "/var/lib/perfval-lab"
    built = options.cache.with_name("perfval-lab") / "programs"
    options.built = [found.name.rpartition("-")[0] for found in built.glob("*-*") if is_built(found)]
    machine = preflight.Machine(REPOSITORY, [options.cache, Path(state)], state)
    for warning in preflight.warnings(machine):
        print(warning)
    problems = preflight.problems(machine, preflight.WARM if options.built else preflight.COLD)
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1

    options.cache.mkdir(parents=True, exist_ok=True)
    log = options.cache / "prepare.log"
    progress = Progress(parts(), machine.cores, began)
    unused = {"kwok"} if "--control-plane" not in flags else {"containerd", "nvidia-dra", "coredns", "images"}
    for name in {*unused, *options.built, *(["Go modules"] if options.built else [])} & progress.parts.keys():
        progress.parts[name].skip()
    width = (lambda: os.get_terminal_size(sys.stdout.fileno()).columns) if sys.stdout.isatty() else None
    screen = Screen(sys.stdout, width)
    if not options.built:
        screen.say(f"Building the lab and the product. All output: {log}")
    with open(log, "w") as file:
        runner = Runner(progress, screen, file, quiet=1 if options.built else 0)
        try:
            build(runner, options, flags)
        except Failed as failure:
            screen.say(failure.text(log))
            return 1
        except KeyboardInterrupt:
            screen.say("interrupted")
            return 130
        finally:
            runner.end()
    product = options.cache / "product"
    product.unlink(missing_ok=True)
    product.symlink_to(options.target / "debug")
    screen.say(f"Everything is built ({now() - began:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
