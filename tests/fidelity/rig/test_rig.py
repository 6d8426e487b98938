"""The rig where no GPU is: refusals, plans, portions, records. Run by tests/fidelity/tests/rig.rs.

`test_rig.py record` prints a record as the rig writes one.
"""

import argparse
import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import random
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import checks
import gpus
import load
import pack
import programs
import trials
import usage
from cluster import carry, cluster, policy, record, strike
from engines import Programs
from process import Refused, alive, end, members, spawn
from session import Session
from stack import Stack

SMI = """#!/bin/sh
case "$1" in *power.limit*) exit 2;; esac
cat "$(dirname "$0")/answer"
"""
GPU = "{index}, GPU-{index}, NVIDIA H200, 580.159.04, 143771, {free}, {mig}\n"


class Cluster(unittest.TestCase):
    """What is carried for the whole product."""

    def test_the_image_holds_names_only_and_its_layer_has_the_digest_that_it_says(self):
        with tempfile.TemporaryDirectory() as folder:
            ready = Programs(["python3"], ["aiperf"], "runner", "/opt/silicon/hf", dynamo_path="/opt/silicon/site")
            archive = cluster.image(Path(folder), ready)
            with tarfile.open(archive) as packed:
                config = json.load(packed.extractfile("config.json"))
                layer = packed.extractfile("layer.tar").read()
            self.assertEqual(config["rootfs"]["diff_ids"], [f"sha256:{hashlib.sha256(layer).hexdigest()}"])
            self.assertIn("PYTHONPATH=/opt/silicon/site", config["config"]["Env"])
            with tarfile.open(fileobj=io.BytesIO(layer)) as root:
                names = root.getnames()
                self.assertIn("./usr", names)
                self.assertFalse([name for name in names if name.startswith(("./usr/", "./opt/"))], "these are the machine's")

    def test_archives_of_one_folder_are_unpacked_side_by_side(self):
        with tempfile.TemporaryDirectory() as folder:
            carried, cache = Path(folder, "carried"), Path(folder, "cache")
            carried.mkdir()
            for number in range(2):
                with tarfile.open(carried / f"program-{number}.tar.xz", "w:xz") as packed:
                    entry = tarfile.TarInfo(f"programs/{number}")
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    packed.addfile(entry)
            make, both = os.makedirs, threading.Barrier(2)

            def make_at_the_same_time(path, *rest, **options):
                both.wait(10)
                make(path, *rest, **options)

            with mock.patch.object(cluster, "CACHE", cache), mock.patch("os.makedirs", make_at_the_same_time):
                cluster.unpack(carried)
            self.assertEqual(len(list(cache.glob("programs/*"))), 2)

    def test_a_driver_is_found_where_its_libraries_are(self):
        listed = "\tlibnvidia-ml.so.1 (libc6,x86-64) => {}/libnvidia-ml.so.1\n"
        for libraries, folder in (("/usr/local/nvidia/lib64", "/usr/local/nvidia"), ("/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu")):
            with mock.patch.object(cluster, "call", return_value=listed.format(libraries)):
                self.assertEqual(cluster.driver(), Path(folder))
        with mock.patch.object(cluster, "call", return_value=""), self.assertRaises(Refused):
            cluster.driver()

    def test_an_archive_keeps_links_and_modes(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            (root / "usr").mkdir(parents=True)
            (root / "usr" / "program").write_text("x")
            (root / "usr" / "program").chmod(0o755)
            (root / "usr" / "other").symlink_to("program")
            archive = carry.archive(root, ["usr"], Path(folder, "tools.tar.xz"))
            with tarfile.open(archive) as packed:
                self.assertEqual(packed.getmember("usr/program").mode & 0o777, 0o755)
                self.assertEqual(packed.getmember("usr/other").linkname, "program")


class Folder(unittest.TestCase):
    """A folder that is gone afterwards."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def refused(self, text: str, call, *arguments):
        with self.assertRaisesRegex(Refused, text):
            call(*arguments)

    def nvidia_smi(self, answer: str):
        smi = self.folder / "nvidia-smi"
        smi.write_text(SMI)
        smi.chmod(0o755)
        (self.folder / "answer").write_text(answer)
        path = f"{self.folder}:{os.environ['PATH']}"
        self.enterContext(mock.patch.dict(os.environ, {"PATH": path}))

    def two_gpus(self, free: int = 143000, mig: str = "Disabled"):
        self.nvidia_smi("".join(GPU.format(index=index, free=free, mig=mig) for index in range(2)))


class Machine(Folder):
    def test_a_machine_without_a_driver_or_a_gpu(self):
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.refused("nvidia-smi is not on the PATH", checks.devices, None)
        self.nvidia_smi("")
        self.refused("lists no GPU", checks.devices, None)

    def test_gpus_that_cannot_be_used(self):
        self.two_gpus()
        self.assertEqual([device.uuid for device in checks.devices(None)], ["GPU-0", "GPU-1"])
        self.refused("3 GPUs are asked for, and nvidia-smi lists 2", checks.devices, 3)
        self.two_gpus(free=40000)
        self.refused("GPU-0.*39 of 140 GiB are free, 112 are needed", checks.devices, None)
        self.two_gpus(mig="Enabled")
        self.refused("partitioned", checks.devices, 1)
        self.nvidia_smi(GPU.format(index=0, free=143000, mig="[N/A]") + "1, GPU-1, NVIDIA L4, 580, 143771, 143000, [N/A]\n")
        self.refused("several products", checks.devices, None)

    def test_python_and_torch(self):
        self.refused("the wheels are for 3.12", checks.machine, 1) if sys.version_info[:2] != (3, 12) else None
        with mock.patch.object(checks, "PYTHON", sys.version_info[:2]):
            for version, seen, text in (("2.10.1", 2, "needs 2.11"), ("2.11.0+cu130", 1, "sees 1 GPUs")):
                stub = f"class cuda:\n    is_available = staticmethod(lambda: True)\n    device_count = staticmethod(lambda: {seen})\n__version__ = '{version}'\n"
                (self.folder / "torch.py").write_text(stub)
                with mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}):
                    self.refused(text, checks.machine, 2)
            (self.folder / "torch.py").write_text("raise ImportError('no torch here')\n")
            with mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}):
                self.refused("cannot import torch", checks.machine, 2)

    def test_a_port_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with mock.patch.object(checks, "PORT", taken.getsockname()[1]):
                self.refused(f"port {checks.PORT} of 127.0.0.1 is taken", checks.ports, 0)

    def test_wheels_that_are_missing_or_of_another_version(self):
        for name, version in (("ai_dynamo", "1.4.2"), ("vllm", "0.25.0")):
            info = self.folder / f"{name}-{version}.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        pinned = self.folder / "wheels.txt"
        pinned.write_text("ai-dynamo==1.4.2\nvllm==0.26.0\nxgrammar==0.2.7\n")
        self.refused("2 of 3 wheels .*vllm==0.26.0, xgrammar==0.2.7", programs.missing, pinned, self.folder)
        self.refused("carry every portion here", programs.carried, self.folder)

    def test_a_runner_that_does_not_run(self):
        self.refused("it is not there", checks.programs, Programs([], [], str(self.folder / "runner"), ""))

    def test_fields_that_a_driver_does_not_know_are_left_out(self):
        self.two_gpus()
        csv = self.folder / "telemetry.csv"
        end([gpus.record_telemetry(csv)])
        self.assertIn("clocks_event_reasons.active", csv.read_text().splitlines()[0])
        self.assertNotIn("power.limit", csv.read_text().splitlines()[0])


class Plans(Folder):
    def session(self, engine: str = "vllm") -> Session:
        devices = [gpus.Gpu(index, f"GPU-{index}", "NVIDIA H200", "580", 143771, 143000, "") for index in range(2)]
        session = Session(self.folder, Programs([], [], "", ""), "silicon", gpus.hardware(devices), devices, 2)
        session.stack = Stack(session.programs, engine, "LeastLoaded", self.folder)
        session.stack.workers = session.workers("plain")
        session.stack.deployment = "20261122T120000Z"
        return session

    def test_names_of_trials(self):
        names = "healthy:2 slow:0.15x2 frozen:10 two-on-one-gpux2 per-gpu:64 fresh route:kv"
        parsed = [str(wish) for wish in trials.parse(names.split())]
        self.assertEqual(parsed, ["healthy", "healthy", "slow:0.15", "slow:0.15", "frozen:10", "two-on-one-gpu", "two-on-one-gpu", "per-gpu:64", "fresh", "route:kv"])
        for name, text in (("healty", "is no trial"), ("slow", "is no number"), ("slow:fast", "is no number"), ("route:best", "routers are")):
            self.refused(text, trials.parse, [name])

    def test_a_trial_that_the_engine_cannot_show(self):
        plan = trials.Plan(load.Load(2), 100, None)
        self.refused("slowed:1.5 needs the engine mocker", trials.run, self.session("vllm"), trials.parse(["slowed:1.5"]), plan)
        self.refused("slow:0.1 needs the engine vllm", trials.run, self.session("mocker"), trials.parse(["slow:0.1"]), plan)

    def test_every_worker_is_struck_in_turn(self):
        session = self.session()
        self.assertEqual([session.victim(kind).name for kind in ("slow", "slow", "frozen", "slow")], ["worker-0", "worker-1", "worker-0", "worker-0"])

    def test_two_workers_share_one_gpu(self):
        workers = self.session().workers("shared:1")
        self.assertEqual([worker.gpu for worker in workers], [0, 1, 1])
        self.assertEqual([worker.memory for worker in workers], [0.8, 0.4, 0.4])
        self.assertEqual(workers[1].row()["devices"], workers[2].row()["devices"])

    def test_a_session_is_found_again(self):
        session = self.session()
        session.victim("slow")
        session.background.append(1)
        session.save()
        found = Session.found(self.folder, session.programs)
        self.assertEqual((found.stack.saved(), found.turns, found.background), (session.stack.saved(), {"slow": 1}, [1]))
        self.refused("nothing is started", Session.found, self.folder / "work", session.programs)

    def test_no_trial_starts_that_would_end_too_late(self):
        session, done = self.session(), []
        session.longest = {"healthy": 40.0, "fresh": 200.0}
        actions = {"healthy": lambda session, wish, load: done.append(str(wish)), "fresh": None}
        printed = io.StringIO()
        with mock.patch.object(trials, "ACTIONS", actions), contextlib.redirect_stdout(printed):
            trials.run(session, [trials.Wish("healthy"), trials.Wish("fresh")], trials.Plan(load.Load(2), 100, None))
        self.assertEqual(done, ["healthy"])
        self.assertIn("left out: fresh", printed.getvalue())

    def test_a_refusal_ends_one_trial_and_the_deployment(self):
        session = self.session()

        def refuse(*_):
            raise Refused("worker-0 ended")

        with mock.patch.object(trials, "ACTIONS", {"healthy": refuse}), contextlib.redirect_stdout(io.StringIO()):
            trials.run(session, [trials.Wish("healthy")], trials.Plan(load.Load(2), 100, None))
        self.assertTrue(session.stale)

    def record(self) -> dict:
        """One trial that is not run."""
        session = self.session()
        trial = {"record": {"nonce": "rig", "exitCode": 1, "outcome": {"failure": {"kind": "Exited", "tail": ""}}, "workers": []}, "series": [], "before": session.stack.rows(), "after": session.stack.rows()}
        with mock.patch.object(load, "trial", lambda *_: (trial, "")), contextlib.redirect_stdout(io.StringIO()):
            session.trial("slow:0.15", "SlowGpu", load.Load(2), session.victim("slow"), share=0.15, burner=lambda: {"began": 1.5, "busy": 0.15, "products": 7})
        out = self.folder / "out"
        session.results.pack(out)
        self.assertEqual(sorted(file.name for file in out.iterdir()), ["logs.txt.gz", "records.jsonl.gz"])
        return json.loads(session.results.records.read_text())

    def test_a_record_says_what_was_struck_and_on_what(self):
        record = self.record()
        self.assertEqual(record["trials"][0]["victim"], "worker-0")
        self.assertEqual(record["trials"][0]["before"][1]["devices"], ["silicon/GPU-1"])
        self.assertEqual(record["conditions"]["burner"]["products"], 7)
        self.assertEqual(record["spec"]["benchmark"]["minRequests"], 8192)


class Usages(unittest.TestCase):
    def test_a_busy_process_and_one_that_sleeps(self):
        used = {}
        with mock.patch.object(usage, "WINDOW", 1):
            for name, words in (("busy", "while True: pass"), ("asleep", "import time; time.sleep(60)")):
                with subprocess.Popen([sys.executable, "-c", words]) as process:
                    try:
                        watch = usage.Usage([process.pid])
                        time.sleep(2.5)
                        used[name] = watch.stop()
                    finally:
                        process.kill()
        self.assertGreater(used["busy"][0], 2 * used["asleep"][0] + 0.1)
        self.assertGreater(used["asleep"][1], 1)


class Portions(Folder):
    def packed(self, seed: int) -> Path:
        wheels = self.folder / f"wheels-{seed}"
        for name, pinned in pack.LISTS.items():
            (wheels / name).mkdir(parents=True)
            for line in pinned.read_text().split():
                wheel = line.replace("-", "_").replace("==", "-")
                (wheels / name / f"{wheel}-py3-none-any.whl").write_bytes(b"wheel")
        (wheels / "aiperf" / "aiperf-0.13.0-py3-none-any.whl").write_bytes(random.Random(seed).randbytes(2_500_000))
        runner = self.folder / "runner"
        runner.write_bytes(b"\x7fELF static")
        out = self.folder / f"packed-{seed}"
        with mock.patch.object(sys, "argv", ["pack.py", str(out), "--runner", str(runner), "--wheels", str(wheels), "--megabytes", "1"]), contextlib.redirect_stdout(io.StringIO()):
            pack.main()
        return out

    def unpack(self, portion: Path) -> subprocess.CompletedProcess:
        command = [sys.executable, str(portion / "unpack.py"), str(self.folder / "there")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_portions_come_in_any_order_and_are_checked(self):
        portions = sorted(self.packed(1).glob("part-*"), reverse=True)
        self.assertGreater(len(portions), 2)
        self.assertLess(max(sum(file.stat().st_size for file in portion.iterdir()) for portion in portions), 1_000_000)
        answers = [self.unpack(portion).stdout for portion in portions]
        self.assertIn("missing: part-000", answers[0])
        self.assertIn("all sums are right", answers[-1])
        session = self.folder / "there" / "session"
        self.assertEqual((session / "rig" / "silicon.py").read_bytes(), (pack.HERE / "silicon.py").read_bytes())
        self.assertTrue(os.access(session / "perfval-runner", os.X_OK))

    def test_a_damaged_portion_and_one_of_another_archive(self):
        portions, others = sorted(self.packed(1).glob("part-*")), sorted(self.packed(2).glob("part-*"))
        self.unpack(portions[0])
        damaged = portions[1] / "part-001.bin"
        damaged.write_bytes(b"X" + damaged.read_bytes()[1:])
        self.assertIn("is damaged", self.unpack(portions[1]).stderr)
        self.assertIn("of another archive", self.unpack(others[1]).stderr)

    def test_a_runner_that_another_machine_cannot_start(self):
        runner = self.folder / "runner"
        runner.write_bytes(b"\x7fELF /lib64/ld-linux-x86-64.so.2\0")
        with self.assertRaisesRegex(SystemExit, "linked dynamically"):
            pack.refuse_dynamic(runner)


class Clusters(Folder):
    def strikes(self, *faults: str) -> strike.Strikes:
        told = argparse.Namespace(trials=[strike.fault(text) for text in faults], kill_worker=False, kill_operator=False)
        return strike.Strikes(told, self.folder)

    def test_each_trial_has_its_own_fault(self):
        strikes, began, ended = self.strikes("healthy", "slow:0.3@1", "slow:0.2@0,2"), [], []
        with (
            mock.patch.object(strike, "spawn", lambda log, words, environment: began.append((environment["CUDA_VISIBLE_DEVICES"], words[2])) or len(began)),
            mock.patch.object(strike, "end", lambda groups: ended.extend(groups)),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            strikes.start()
            for message in ("waiting for 4 workers", "trial 1 of 3", "trial 2 of 3", "trial 2 of 3, 20 s", "trial 3 of 3", "trial 4"):
                strikes.look(message)
        self.assertEqual(began, [("1", "0.3"), ("0", "0.2"), ("2", "0.2")])
        self.assertEqual(ended, [1, 2, 3])

    def test_a_fault_that_nobody_knows(self):
        for text in ("slow:0.3", "slow@1", "lost:1@1", "slow:a@1", "frozen:10@b", "slow:30@1", "slow:0.3@-1", "frozen:0@1"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "write healthy, slow:0.3@1"):
                strike.fault(text)

    def test_a_record_for_each_fault_of_a_run(self):
        strikes = self.strikes("healthy", "slow:0.3@1", "slow:0.2@0,1", "healthy", "slow:0.3@0")
        devices = [{"pool": "node", "name": f"gpu-{gpu}"} for gpu in range(2)]
        own = {
            "plan": {"deviceIds": devices},
            "workerPods": [{"pod": f"worker-{gpu}", "devices": [f"node/gpu-{gpu}"]} for gpu in range(2)],
            "trials": [{"number": number, "outcome": "Pass", "causes": [f"cause {number}"]} for number in range(1, 6)],
        }
        run = {"startedAt": "2026-11-26T10:00:00Z", "completedAt": "2026-11-26T10:05:00Z"}
        found = {"spec": {}, "status": {"operatorState": own, "placement": {"gpus": 2, "nodeGPUs": 2}, "run": run, "verdict": "Passed"}}
        results = {
            f"trial-{number}.json.gz": base64.b64encode(gzip.compress(json.dumps({"record": number}).encode())).decode() for number in range(1, 6)
        }
        lines = record.records(found, {"binaryData": results}, strikes)
        self.assertEqual([line["fault"] for line in lines], ["Healthy", "SlowGpu"])
        self.assertEqual([[trial["record"] for trial in line["trials"]] for line in lines], [[1, 4], [2, 5]])
        self.assertEqual([trial["victim"] for trial in lines[1]["trials"]], ["worker-1", "worker-0"])
        self.assertEqual(lines[1]["live"]["trials"], [["Pass", ["cause 2"]], ["Pass", ["cause 5"]]])
        self.assertEqual([line["live"]["causes"] for line in lines], [["cause 1", "cause 4"], ["cause 2", "cause 5"]])
        self.assertEqual(lines[1]["conditions"], {"share": 0.3})


class Policies(Folder):
    AFTER = datetime(2026, 11, 26, 10, 0, 1, tzinfo=UTC)

    def test_a_pass_ends_with_its_confirmation(self):
        def over(phases: str, measured: str | None, confidence: str | None, quiet: float) -> bool:
            owned = [{"status": {"phase": phase}} for phase in phases.split()]
            nodes = [{"status": {"measuredAt": measured}}] if measured else [{}]
            return policy.is_over(owned, nodes, [{"confidence": confidence}] if confidence else [], self.AFTER, quiet)

        now = "2026-11-26T10:02:00Z"
        self.assertTrue(over("Completed Completed", now, None, 15))
        self.assertTrue(over("Completed", now, "Confirmed", 15))
        self.assertFalse(over("Completed", now, None, 14), "the policy did not look yet")
        self.assertFalse(over("Completed", now, "Suspected", 60), "its confirmation has not begun")
        self.assertFalse(over("Completed Benchmarking", now, None, 60))
        self.assertFalse(over("Completed", "2026-11-26T10:00:00Z", None, 60), "the verdict of the pass before")
        self.assertTrue(over("Completed", now, "Suspected", 90), "none came")
        self.assertFalse(over("", now, None, 60), "an earlier validation ended")

    def test_a_validation_of_the_pass_is_struck_and_written_down(self):
        owner = [{"name": policy.NAME}]
        looks = iter(["", "trial 1 of 1 is running", "trial 1 of 1: 20 s", "throughput 9 (≥ 8)"])
        applied, struck, written = [], [], []

        def kubectl(*words: str) -> str:
            if words[0] == "create":
                return json.dumps({"spec": {"gates": []}})
            if words[0] == "apply":
                applied.append(json.loads(Path(words[2]).read_text()))
                return ""
            if words[1] == "perfvalidations":
                message = next(looks, "throughput 9 (≥ 8)")
                earlier = {"metadata": {"name": "earlier", "ownerReferences": owner}, "status": {"phase": "Completed", "message": "throughput 7 (≥ 8)"}}
                if not message:
                    return json.dumps({"items": [earlier]})
                status = {"phase": "Completed" if message.startswith("throughput") else "Benchmarking", "message": message}
                theirs = {"metadata": {"name": "theirs", "ownerReferences": [{"name": "other"}]}, "status": {"phase": "Benchmarking"}}
                return json.dumps({"items": [{"metadata": {"name": "mine", "ownerReferences": owner}, "status": status}, theirs, earlier]})
            items = [{"metadata": {"name": "node"}, "status": {"measuredAt": "2999-01-01T00:00:00Z"}}] if words[1] == "nodeperformances" else []
            return json.dumps({"items": items})

        clock = iter(range(0, 1000, 5))
        with (
            mock.patch.object(policy.time, "sleep"), mock.patch.object(policy.time, "time", lambda: next(clock)),
            mock.patch("strike.spawn", lambda log, words, environment: struck.append(environment["CUDA_VISIBLE_DEVICES"]) or 1),
            mock.patch("strike.end", lambda groups: None), contextlib.redirect_stdout(io.StringIO()),
        ):
            passes = policy.Passes(kubectl, self.folder, "perf", lambda name, strikes: written.append((name, strikes.struck)))
            passes.run(Path("any.yaml"), [strike.fault("slow:0.1@1")], 600)
        self.assertEqual(struck, ["1"])
        self.assertEqual(written, [("mine", 1)])
        self.assertEqual(applied[0]["spec"]["validationTemplate"], {"metadata": {"namespace": "perf"}, "spec": {"gates": []}})


class Processes(Folder):
    def until(self, condition):
        deadline = time.time() + 20
        while not condition():
            self.assertLess(time.time(), deadline, "it never came")
            time.sleep(0.01)

    def test_a_group_ends_with_all_that_it_started(self):
        group = spawn(self.folder / "log", ["sh", "-c", "sleep 600 & sleep 600"], dict(os.environ))
        self.until(lambda: len(members(group)) == 3)
        end([group])
        self.assertEqual(members(group), [])
        self.assertFalse(alive(group))

    def test_a_process_that_ended_does_not_run_though_its_parent_never_asked(self):
        group = spawn(self.folder / "log", ["sh", "-c", "true & exec sleep 600"], dict(os.environ))
        self.until(lambda: len(load.descendants(group)) == 2)
        child = load.descendants(group)[1]
        self.until(lambda: not alive(child))
        self.assertTrue(Path(f"/proc/{child}").exists())
        end([group])


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        plans = Plans()
        plans.setUp()
        print(json.dumps(plans.record()))
        plans.doCleanups()
    else:
        unittest.main()
