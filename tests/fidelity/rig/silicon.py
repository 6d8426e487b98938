"""Trials on a machine with 1 to 8 NVIDIA GPUs and no network: real vLLM workers under Dynamo's frontend, AIPerf through the runner.

    silicon.py check                                 says what is missing here
    silicon.py start --router least-loaded           once: about 200 s until the first completion
    silicon.py trials healthy:3 slow:0.15 frozen:10  as often as wanted: the engines live on between commands
    silicon.py stop

Two rigs on one machine: `--gpus 2` for the first, RIG_SKIP=2 and a --folder of its own for the second; taskset keeps them apart.

Every trial prints one line and adds one record; with --out FOLDER (or $OUT) everything up to then is packed there after each.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import checks
import gpus
import programs
import trials
from load import Load
from process import Refused, alive, say
from results import Results
from session import Session
from stack import ROUTERS

HERE = Path(__file__).resolve()
# Where unpack.py put this file, or else where `just silicon` looks for what it put there.
FOLDER = HERE.parents[2] if HERE.parents[1].name == "session" else Path("/tmp/silicon")


LOAD = {
    "per_gpu": "requests in flight for each GPU", "requests_per": "requests for each of these", "input_tokens": "of a prompt",
    "output_tokens": "of an answer", "duration": "seconds after the warm-up instead of a number of requests", "entries": "different prompts",
    "seed": "of the prompts", "request_seconds": "time-out of a request; 0: 300, or 20 where a worker dies",
}


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="what unpack.py was given")
    parser.add_argument("--mocker", type=Path, metavar="CACHE", help="simulated engines, installed there from a package index: to try this rig out")
    parser.add_argument("--runner", help="the runner for --mocker")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "start"):
        command = commands.add_parser(name)
        command.add_argument("--gpus", type=int, help="how many; all, up to 8")
        command.add_argument("--router", choices=ROUTERS.values(), default="least-loaded")
    command = commands.add_parser("trials", epilog=trials.NAMES, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("names", nargs="+", metavar="TRIAL")
    defaults = Load(1)
    for name, meaning in LOAD.items():
        command.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name), help=f"{meaning}; {getattr(defaults, name)}")
    command.add_argument("--within", type=float, default=570, metavar="SECONDS", help="no trial starts that would end later")
    command.add_argument("--pages", action="store_true", help="keep the workers' metrics pages, once a second")
    commands.add_parser("stop")
    for each in commands.choices.values():
        each.add_argument("--out", type=Path, default=os.environ.get("OUT"), help="where results are packed")
    return parser


def found(options: argparse.Namespace) -> tuple[list[gpus.Gpu], programs.Programs]:
    """Everything that is needed, or a refusal."""
    devices = checks.devices(options.gpus)
    say(f"{len(devices)} × {devices[0].product}, driver {devices[0].driver}")
    if not options.mocker:
        checks.machine(len(devices))
    checks.room(options.folder, len(devices))
    # Two workers on one GPU are one worker more.
    checks.ports(len(devices) + 1)
    ready = prepared(options)
    checks.programs(ready)
    return devices, ready


def prepared(options: argparse.Namespace) -> programs.Programs:
    if options.mocker:
        return programs.from_index(options.mocker, options.runner)
    return programs.carried(options.folder)


def start(options: argparse.Namespace, work: Path) -> None:
    if (work / "state.json").exists():
        stack = Session.found(work, prepared(options)).stack
        if stack and any(alive(worker.pid) for worker in stack.workers):
            raise Refused("engines run already: type `trials`, or `stop` first")
    devices, ready = found(options)
    work.mkdir(parents=True, exist_ok=True)
    session = Session(work, ready, "silicon", gpus.hardware(devices), devices, len(devices))
    session.background.append(gpus.record_telemetry(session.results.telemetry))
    router = next(name for name, flag in ROUTERS.items() if flag == options.router)
    session.start("mocker" if options.mocker else "vllm", router)


def run(options: argparse.Namespace) -> None:
    work = options.folder / "work"
    if options.command == "check":
        found(options)
        say("everything is here")
    elif options.command == "start":
        start(options, work)
    elif options.command == "trials":
        wishes = trials.parse(options.names)
        session = Session.found(work, prepared(options))
        load = Load(
            session.count, **{name: getattr(options, name) for name in LOAD},
            limit_seconds=max(240, options.duration + 150, options.request_seconds + 150),
        )
        trials.run(session, wishes, trials.Plan(load, options.within, options.out, options.pages))
    else:
        Session.found(work, prepared(options)).stop()


def main() -> int:
    options = arguments().parse_args()
    began = time.time()
    try:
        run(options)
    except Refused as refusal:
        print(f"silicon: {refusal}", file=sys.stderr)
        return 1
    finally:
        if options.out and (options.folder / "work").is_dir():
            Results(options.folder / "work").pack(options.out)
    say(f"{options.command}: {time.time() - began:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
