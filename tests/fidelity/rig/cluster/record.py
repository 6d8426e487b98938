"""A run of the product as a record of tests/fidelity: what the results ConfigMap and the object hold."""

import base64
import gzip
import json
import math
import os
from datetime import datetime

# Faults by the name that tests/fidelity/src/fault.rs gives them.
HEALTHY, SLOW_GPU, FROZEN, FROZEN_FOR_GOOD, DEAD = "Healthy", "SlowGpu", "FrozenTenSeconds", "FrozenForGood", "Dead"

PLAIN = str.maketrans("", "", "-:Z")


def state(status: dict) -> dict:
    """The operator's state with its packed tables."""
    found = dict(status.get("operatorState", {}))
    packed = found.pop("tables", None)
    return found | (json.loads(gzip.decompress(base64.b64decode(packed))) if packed else {})


def payloads(results: dict) -> dict[int, dict]:
    """What the runner handed over, by trial."""
    found = {}
    for key, text in results.get("binaryData", {}).items():
        number = key.removeprefix("trial-").removesuffix(".json.gz")
        if number.isdigit():
            found[int(number)] = json.loads(gzip.decompress(base64.b64decode(text)))
    return found


def seconds(run: dict) -> int:
    began, ended = (datetime.fromisoformat(run[name]) for name in ("startedAt", "completedAt"))
    return round((ended - began).total_seconds())


def injected(fault) -> tuple[str, dict]:
    """The fault of a trial and how strong it was."""
    if fault.kill:
        return DEAD, {}
    if fault.freeze:
        return (FROZEN_FOR_GOOD, {}) if fault.freeze == math.inf else (FROZEN, {"seconds": fault.freeze})
    return (SLOW_GPU, {"share": fault.burn}) if fault.burn else (HEALTHY, {})


def records(found: dict, results: dict, strikes) -> list[dict]:
    """Lines of records.jsonl, one for the trials of each fault. A record names one worker, so a trial with several is left out."""
    own = state(found["status"])
    by_fault: dict = {}
    for trial in own.get("trials", []):
        fault = strikes.fault(trial["number"])
        if len(fault.gpus) < 2:
            by_fault.setdefault(fault, []).append(trial)
    lines = [record(found, results, strikes.victims, fault, trials) for fault, trials in by_fault.items()]
    # The causes of a run are not those of each of its faults.
    for line in lines if len(by_fault) > 1 else []:
        line["live"]["causes"] = sorted({cause for _, causes in line["live"]["trials"] for cause in causes})
    return lines


def record(found: dict, results: dict, victims: dict[int, str], fault, recorded: list[dict]) -> dict:
    """One line of records.jsonl; `victims` are the workers that were struck, by trial."""
    status = found["status"]
    own, placement = state(status), status["placement"]
    devices = own.get("plan", {}).get("deviceIds", [])
    kind, conditions = injected(fault)
    pods, known = own.get("workerPods", []), payloads(results)
    # Devices are sorted by their name here, as GPUs are by their number on the bus.
    names = sorted(f"{device['pool']}/{device['name']}" for device in devices)
    held = [pod["pod"] for pod in pods if fault.burn and names[fault.gpus[0]] in pod.get("devices", [])]
    trials = []
    for trial in recorded:
        if trial["number"] in known:
            payload = known[trial["number"]]
            entry = {"record": payload["record"], "series": payload.get("workers", []), "before": pods, "after": pods}
            victim = victims.get(trial["number"]) or next(iter(held), None)
            trials.append(entry | ({"victim": victim} if victim else {}))
    return {
        "place": "silicon", "recorded": status["run"]["startedAt"], "deployment": f"{status['run']['startedAt'].translate(PLAIN)}, whole product",
        "hardware": {
            "product": placement.get("product", ""), "gpus": placement["gpus"], "driver": placement.get("driverVersion", ""),
            "cpus": os.cpu_count(), "devices": devices,
        },
        "conditions": conditions, "router": "LeastLoaded", "fault": kind, "spec": found["spec"], "gpus": [placement["gpus"], placement["nodeGPUs"]],
        "live": {
            "verdict": status["verdict"], "reason": status.get("reason", ""), "message": status.get("message", ""),
            "causes": [finding["cause"] for finding in status.get("diagnosis", [])],
            "trials": [[trial.get("outcome", "Invalid"), trial.get("causes", [])] for trial in recorded],
        },
        "trials": trials, "seconds": seconds(status["run"]),
    }
