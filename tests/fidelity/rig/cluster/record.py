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
    trials = state(found["status"]).get("trials", [])
    if not strikes.options.trials:
        return [record(found, results, strikes, strikes.fault(1), trials)]
    by_fault: dict = {}
    for trial in trials:
        fault = strikes.fault(trial["number"])
        if len(fault.gpus) < 2:
            by_fault.setdefault(json.dumps(injected(fault)), (fault, []))[1].append(trial)
    lines = [record(found, results, strikes, fault, of_fault) for fault, of_fault in by_fault.values()]
    # The causes of a run are not those of each of its faults.
    for line in lines:
        line["live"]["causes"] = sorted({cause for _, causes in line["live"]["trials"] for cause in causes})
    return lines


def record(found: dict, results: dict, strikes, fault, recorded: list[dict]) -> dict:
    """One line of records.jsonl."""
    status = found["status"]
    own, placement = state(status), status["placement"]
    devices = own.get("plan", {}).get("deviceIds", [])
    kind, conditions = injected(fault)
    pods, known = own.get("workerPods", []), payloads(results)
    # Devices are sorted by their name here, as GPUs are by their number on the bus.
    names = sorted(f"{device['pool']}/{device['name']}" for device in devices)
    trials = []
    for trial in recorded:
        if trial["number"] in known:
            payload = known[trial["number"]]
            entry = {"record": payload["record"], "series": payload.get("workers", []), "before": pods, "after": pods}
            struck = strikes.fault(trial["number"])
            held = [pod["pod"] for pod in pods if struck.burn and names[struck.gpus[0]] in pod.get("devices", [])]
            victim = strikes.victims.get(trial["number"]) or next(iter(held), None)
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
