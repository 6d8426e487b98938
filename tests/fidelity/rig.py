"""Records every router under every fault of the engines without a cluster: Dynamo's frontend and mockers on loopback
addresses, AIPerf, and the runner that samples the workers as it does in a pod. One JSON line per router and fault.

Usage: rig.py --cache FOLDER --runner PROGRAM [ROUTER ...]

What it needs is installed into the folder once; `recorded.jsonl` in there is written anew.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

MODEL = "lab/tiny-qwen3"
# Kept low: two cores must not be what is measured. About 50 ms a token.
WORKERS, CONCURRENCY, REQUESTS, SPEED = 4, 32, 448, 0.12
ROUTERS = {"LeastLoaded": "least-loaded", "RoundRobin": "round-robin", "Random": "random", "PowerOfTwo": "power-of-two", "KV": "kv"}
# Fault and trials; those that need other engines come last.
FAULTS = {"Healthy": 4, "FrozenTenSeconds": 3, "Dead": 3, "FrozenForGood": 3, "SlowWorker": 3, "AllSlow": 3}
PORT = 18230
READY_SECONDS, TRIAL_SECONDS = 180, 600


def get(url: str, body: dict | None = None, seconds: float = 3) -> str:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        return urllib.request.urlopen(request, timeout=seconds).read().decode()
    except OSError:
        return ""


class Stack:
    """One frontend and its workers."""

    def __init__(self, options, router: str):
        self.options, self.router = options, router
        self.folder = Path(options.work) / router
        shutil.rmtree(self.folder, ignore_errors=True)
        self.restarts = [0] * WORKERS
        self.workers: list[subprocess.Popen] = []
        self.frontend = None

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "HF_HOME": self.options.model_cache, "HF_HUB_OFFLINE": "1", "TMPDIR": str(self.folder),
            "DYN_FILE_KV": str(self.folder / "kv"), "DYN_DISCOVERY_BACKEND": "file", "DYN_REQUEST_PLANE": "tcp",
            "DYN_EVENT_PLANE": "zmq", "DYN_TCP_RPC_HOST": "127.0.0.1", "DYN_SDK_DISABLE_ANSI_LOGGING": "1",
            "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]', **more,
        }

    def python(self, log: str, *words: str, **environment: str) -> subprocess.Popen:
        program = [f"{self.options.dynamo}/bin/python", "-m", *words]
        with open(self.folder / log, "a") as out:
            return subprocess.Popen(program, env=self.environment(**environment), stdout=out, stderr=subprocess.STDOUT)

    def start_worker(self, index: int, speed: float) -> subprocess.Popen:
        words = ["dynamo.mocker", "--model-path", MODEL, "--speedup-ratio", str(speed), "--max-num-seqs", "64"]
        host = f"127.0.30.{index + 1}"
        return self.python(f"worker-{index}.log", *words, DYN_SYSTEM_HOST=host, DYN_SYSTEM_PORT="9090")

    def start(self, speeds: list[float]) -> None:
        # Discovery by files forgets no dead worker.
        shutil.rmtree(self.folder / "kv", ignore_errors=True)
        (self.folder / "kv").mkdir(parents=True)
        self.workers = [self.start_worker(index, speed) for index, speed in enumerate(speeds)]
        words = ["dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", str(PORT), "--router-mode", ROUTERS[self.router]]
        self.frontend = self.python("frontend.log", *words)
        self.wait()

    def wait(self) -> None:
        """Until every worker is registered and a real completion came back."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
        deadline = time.time() + READY_SECONDS
        while time.time() < deadline:
            if get(f"http://127.0.0.1:{PORT}/health").count('"generate"') >= WORKERS and "content" in get(
                f"http://127.0.0.1:{PORT}/v1/chat/completions", body, 30
            ):
                return
            time.sleep(0.5)
        raise SystemExit(f"{self.router}: not ready within {READY_SECONDS} s, see {self.folder}")

    def stop(self) -> None:
        for process in [*self.workers, self.frontend]:
            if process and process.poll() is None:
                process.kill()
        for process in [*self.workers, self.frontend]:
            if process:
                process.wait()

    def finished(self) -> int:
        """Requests that all workers together have finished."""
        total = 0
        for index in range(WORKERS):
            for line in get(f"http://127.0.30.{index + 1}:9090/metrics").splitlines():
                if line.startswith("dynamo_component_request_duration_seconds_count") and '"generate"' in line:
                    total += int(float(line.rsplit(" ", 1)[1]))
        return total

    def pods(self) -> list[dict]:
        return [
            {"pod": f"worker-{i}", "uid": f"worker-{i}", "restarts": count, "address": f"127.0.30.{i + 1}"}
            for i, count in enumerate(self.restarts)
        ]

    def restart(self, index: int) -> None:
        """What the kubelet does with a container that ended."""
        self.workers[index].kill()
        self.workers[index].wait()
        self.workers[index] = self.start_worker(index, SPEED)
        self.restarts[index] += 1

    def strike(self, fault: str, victim: int, began: int, over) -> None:
        while self.finished() - began < CONCURRENCY + REQUESTS // 5:
            if over():
                return
            time.sleep(0.3)
        if fault == "Dead":
            self.restart(victim)
            return
        self.workers[victim].send_signal(signal.SIGSTOP)
        if fault == "FrozenTenSeconds":
            time.sleep(10)
            self.workers[victim].send_signal(signal.SIGCONT)

    def trial(self, fault: str, number: int) -> dict | None:
        before, began, victim = self.pods(), self.finished(), number % WORKERS
        artifacts = self.folder / "artifacts"
        hosts = [word for i in range(WORKERS) for word in ("--workers-host", f"127.0.30.{i + 1}")]
        timeout = "20" if fault in ("Dead", "FrozenForGood") else "60"
        command = [
            self.options.runner, "run", "--nonce", "rig", "--artifact-dir", str(artifacts), "--termination-log",
            str(self.folder / "message"), *hosts, "--", f"{self.options.aiperf}/bin/aiperf", "profile", "--model", MODEL,
            "--url", f"http://127.0.0.1:{PORT}", "--endpoint-type", "chat", "--streaming", "--concurrency", str(CONCURRENCY),
            "--request-count", str(REQUESTS), "--warmup-request-count", str(CONCURRENCY), "--prompt-input-tokens-mean", "64",
            "--prompt-input-tokens-stddev", "0", "--prompt-output-tokens-mean", "16", "--prompt-output-tokens-stddev", "0",
            "--num-dataset-entries", "100", "--random-seed", "100", "--extra-inputs", "temperature:0", "--extra-inputs",
            "ignore_eos:true", "--request-timeout-seconds", timeout, "--ui", "none", "--output-artifact-dir", str(artifacts),
            "--export-level", "records", "--use-server-token-count", "--no-gpu-telemetry", "--tokenizer", MODEL,
        ]
        log = self.folder / "runner.log"
        with open(log, "w") as out:
            runner = subprocess.Popen(command, env=self.environment(), stdout=out, stderr=subprocess.STDOUT)
        if fault in ("FrozenTenSeconds", "Dead", "FrozenForGood"):
            self.strike(fault, victim, began, lambda: runner.poll() is not None)
        runner.wait(TRIAL_SECONDS)
        after = self.pods()
        if fault in ("FrozenTenSeconds", "Dead", "FrozenForGood"):
            # A worker that was silent for long is not found again in files; in a cluster it is.
            self.stop()
            self.start([SPEED] * WORKERS)
        payloads = [line for line in log.read_text().splitlines() if line.startswith('{"record"')]
        if not payloads:
            return None
        payload = json.loads(payloads[-1])
        return {"record": payload["record"], "series": payload.get("workers", []), "before": before, "after": after}


def run(options, router: str, fault: str, stack: Stack) -> None:
    began = time.time()
    trials = [trial for trial in (stack.trial(fault, number) for number in range(FAULTS[fault])) if trial]
    spec = {
        "model": {"name": MODEL}, "workload": {"image": "localhost/dynamo-lab:1.4.2", "routerMode": router},
        "benchmark": {"concurrencyPerGPU": CONCURRENCY // WORKERS, "minRequests": REQUESTS},
    }
    line = {"router": router, "fault": fault, "spec": spec, "gpus": [WORKERS, WORKERS], "trials": trials, "seconds": int(time.time() - began), "load": os.getloadavg()[1]}
    with open(options.record, "a") as record:
        record.write(json.dumps(line) + "\n")
    print(f"{router} {fault}: {len(trials)} trials, {line['seconds']} s", flush=True)


def install(cache: Path) -> dict[str, str]:
    """Dynamo, AIPerf and a model in the cache; what is there already stays."""
    repository = Path(__file__).parent.parent.parent
    images = repository / "tests" / "lab" / "images"
    lists = [images / "dynamo-1.4.2.txt", repository / "deploy" / "images" / "aiperf-0.13.0.txt"]
    environments = {path.stem.split("-")[0]: cache / path.stem for path in lists}
    for environment, requirements in zip(environments.values(), lists, strict=True):
        if (environment / "installed").exists():
            continue
        subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", "3.11", str(environment)], check=True)
        python = str(environment / "bin" / "python")
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, "-r", str(requirements)], check=True)
        (environment / "installed").touch()
    model = cache / "model"
    if not model.is_dir():
        [corpus] = environments["aiperf"].glob("lib/python*/site-packages/aiperf/dataset/generator/assets/shakespeare.txt")
        python = environments["dynamo"] / "bin" / "python"
        subprocess.run([str(python), str(images / "tiny_qwen3.py"), str(corpus), str(model)], check=True)
    return {**{name: str(path) for name, path in environments.items()}, "model_cache": str(model)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--runner", required=True)
    parser.add_argument("routers", nargs="*", default=list(ROUTERS))
    options = parser.parse_args()
    for name, path in install(options.cache).items():
        setattr(options, name, path)
    options.work, options.record = str(options.cache / "work"), str(options.cache / "recorded.jsonl")
    Path(options.record).unlink(missing_ok=True)
    for router in options.routers:
        for speeds, faults in (
            ([SPEED] * WORKERS, ("Healthy", "FrozenTenSeconds", "Dead", "FrozenForGood")),
            ([SPEED / 10] + [SPEED] * (WORKERS - 1), ("SlowWorker",)),
            ([SPEED / 3] * WORKERS, ("AllSlow",)),
        ):
            stack = Stack(options, router)
            try:
                stack.start(speeds)
                for fault in faults:
                    run(options, router, fault, stack)
            finally:
                stack.stop()


if __name__ == "__main__":
    main()
