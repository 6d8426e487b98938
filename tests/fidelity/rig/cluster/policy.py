"""A policy for the machine's node: each pass measures the node again, and the policy confirms what it suspects in a new deployment."""

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from process import say
from strike import Fault, Strikes

NAME = "silicon"
# The policy looks every 10 s and after each change, so a pass without news for so many seconds is over.
QUIET = 15
# Longest wait (seconds) for the confirmation of a suspected node.
SUSPECTED = 90
# Most trials of a validation.
TRIALS = 20


def policy(spec: dict, namespace: str, after: datetime) -> dict:
    """A policy whose nodes are due if their verdict is older than `after`. All its validations stay."""
    return {
        "apiVersion": "perfvalidation.dev/v1alpha1", "kind": "PerfValidationPolicy", "metadata": {"name": NAME},
        "spec": {
            "nodeSelector": {}, "freshness": {"maxAge": "168h", "measuredAfter": f"{after:%Y-%m-%dT%H:%M:%SZ}"},
            "budgets": [{"nodes": 1}], "validationHistory": {"failed": 20, "passed": 20},
            "validationTemplate": {"metadata": {"namespace": namespace}, "spec": spec},
        },
    }


def is_over(owned: list[dict], nodes: list[dict], outliers: list[dict], after: datetime, quiet: float) -> bool:
    """Whether the pass that began at `after` has a verdict, and its confirmation if it led to a suspicion. `owned` are its validations."""
    measured = [node["status"]["measuredAt"] for node in nodes if node.get("status")]
    if not owned or any(phase(found) != "Completed" for found in owned) or not any(datetime.fromisoformat(at) >= after for at in measured):
        return False
    return quiet >= (SUSPECTED if any(outlier.get("confidence") == "Suspected" for outlier in outliers) else QUIET)


def phase(validation: dict) -> str:
    return validation.get("status", {}).get("phase", "")


class Passes:
    """Passes of one call. `report` writes down a validation that is over, with the faults of its trials."""

    def __init__(self, kubectl: Callable[..., str], folder: Path, namespace: str, report: Callable[[str, Strikes], None]):
        self.kubectl, self.folder, self.namespace, self.report = kubectl, folder, namespace, report
        self.before: set[str] = set()
        self.shown: dict[str, tuple[str, str]] = {}
        self.strikes: dict[str, Strikes] = {}

    def listed(self, *words: str) -> list[dict]:
        return json.loads(self.kubectl("get", *words, "-o", "json"))["items"]

    def owned(self) -> list[dict]:
        """The validations of the policy."""
        found = self.listed("perfvalidations", "-n", self.namespace)
        return [one for one in found if any(owner["name"] == NAME for owner in one["metadata"].get("ownerReferences", []))]

    def run(self, manifest: Path, faults: list[Fault], within: float) -> None:
        spec = json.loads(self.kubectl("create", "--dry-run=client", "-o", "json", "-f", str(manifest)))["spec"]
        for number, fault in enumerate(faults, 1):
            # Those of an earlier pass had another fault.
            self.before = {found["metadata"]["name"] for found in self.owned()}
            say(f"pass {number} of {len(faults)}: {fault}")
            # A second later, because the API server keeps whole seconds.
            after = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
            file = self.folder / "policy.json"
            file.write_text(json.dumps(policy(spec, self.namespace, after)))
            self.kubectl("apply", "-f", str(file))
            try:
                self.follow(after, fault, within)
            finally:
                for strikes in self.strikes.values():
                    strikes.stop()
                self.show()

    def follow(self, after: datetime, fault: Fault, within: float) -> None:
        began = since = time.time()
        while time.time() - began < within:
            owned = [found for found in self.owned() if found["metadata"]["name"] not in self.before]
            # A list, because each validation is looked at.
            if any([self.look(one, fault) for one in owned]):
                since = time.time()
            if is_over(owned, self.listed("nodeperformances"), self.outliers(), after, time.time() - since):
                return
            time.sleep(0.5)
        say(f"not over after {within:.0f} s")

    def look(self, validation: dict, fault: Fault) -> bool:
        """Shows a validation's phase and message, and strikes in its trials; whether there was news."""
        name = validation["metadata"]["name"]
        line = (phase(validation), validation.get("status", {}).get("message", ""))
        if self.shown.get(name) == line:
            return False
        why = validation["metadata"].get("annotations", {}).get("perfvalidation.dev/due-reason", "")
        say(f"{name} ({why})  {line[0]:<16} {line[1]}")
        self.shown[name] = line
        told = argparse.Namespace(trials=[fault] * TRIALS, kill_worker=False, kill_operator=False)
        strikes = self.strikes.setdefault(name, Strikes(told, self.folder))
        strikes.look(line[1])
        if line[0] == "Completed":
            strikes.stop()
            self.report(name, strikes)
        return True

    def outliers(self) -> list[dict]:
        policies = [found for found in self.listed("perfvalidationpolicies") if found["metadata"]["name"] == NAME]
        return [outlier for found in policies for outlier in found.get("status", {}).get("outliers", [])]

    def show(self) -> None:
        """The tables that people look at, the GPUs and the outliers."""
        for kind in ("nodeperformances", "perfvalidationpolicies", "perfbaselines"):
            print(self.kubectl("get", kind, "-o", "wide"))
        for node in self.listed("nodeperformances"):
            for gpu in node.get("status", {}).get("gpus", []):
                say(f"{node['metadata']['name']}: {gpu}")
        for outlier in self.outliers():
            say(f"outlier: {outlier}")
