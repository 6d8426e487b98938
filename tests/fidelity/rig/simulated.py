"""Records routers under every fault of the engines without a cluster and without GPUs: Dynamo's mocker on loopback addresses.

Usage: simulated.py --cache FOLDER --runner PROGRAM [ROUTER …] [--trials TRIAL …] [--request-seconds 300]

What it needs is installed into the folder once; `work/records.jsonl` in there is written anew.
"""

import argparse
import os
import shutil
from dataclasses import replace
from pathlib import Path

import programs
import trials
from load import Load
from process import Refused
from session import Session
from stack import ROUTERS

WORKERS = 4
# Two cores must not be what is measured: 32 requests in flight, about 50 ms a token.
LOAD = Load(WORKERS, per_gpu=8, requests_per=14, input_tokens=64, output_tokens=16, limit_seconds=600)
# What changes the engines comes last.
FAULTS = ["healthy:4", "frozen:10x3", "killedx3", "frozen-for-goodx3", "slowed:10x3", "all-slow:3x3"]
MILD = ["slowed:1.1x3", "slowed:1.2x3", "slowed:1.5x3", "slowed:1.8x3"]
# Routers whose every degree of slowness is recorded.
BY_DEGREES = ("LeastLoaded", "RoundRobin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--runner", required=True)
    parser.add_argument("--trials", nargs="+", metavar="TRIAL", help=trials.NAMES)
    parser.add_argument("--request-seconds", type=int, default=0, help="time-out of a request; 0: 300, or 20 where a worker dies")
    parser.add_argument("routers", nargs="*", default=list(ROUTERS))
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    work = options.cache / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    hardware = {"product": "simulated", "gpus": WORKERS, "driver": "", "cpus": os.cpu_count() or 0, "devices": []}
    session = Session(work, programs.from_index(options.cache, options.runner), "rig", hardware, [], WORKERS)
    for router in options.routers:
        wishes = trials.parse(options.trials or [*FAULTS, *(MILD if router in BY_DEGREES else [])])
        try:
            session.start("mocker", router)
            load = replace(LOAD, request_seconds=options.request_seconds)
            trials.run(session, wishes, trials.Plan(load, within=float("inf"), out=None))
        except Refused as refusal:
            raise SystemExit(f"{router}: {refusal}") from None
        finally:
            session.stop()


if __name__ == "__main__":
    main()
