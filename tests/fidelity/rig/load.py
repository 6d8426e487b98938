"""One trial: AIPerf through the runner that samples the workers, as in the benchmark's pod."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engines import MODEL
from process import tail
from stack import METRICS_PORT, URL, Stack

# Page of an exporter with DCGM's names, such as tests/gpu-exporter; without one the GPUs are not asked.
GPU_METRICS = os.environ.get("RIG_GPU_METRICS", "")


@dataclass(frozen=True)
class Load:
    """What is asked of a deployment."""

    gpus: int
    per_gpu: int = 256
    requests_per: int = 16
    input_tokens: int = 128
    output_tokens: int = 128
    # Seconds after the warm-up, instead of a number of requests.
    duration: int = 0
    entries: int = 100
    seed: int = 100
    # Time-out of a request; 0: long enough for any that is answered.
    request_seconds: int = 0
    limit_seconds: int = 240

    @property
    def concurrency(self) -> int:
        return self.per_gpu * self.gpus

    @property
    def requests(self) -> int:
        return self.concurrency * self.requests_per

    @property
    def patience(self) -> int:
        return self.request_seconds or 300

    def strikes_after(self) -> int:
        """Finished requests after which a fault strikes: the warm-up is one wave, then a fifth of the trial."""
        return self.concurrency + (self.concurrency if self.duration else self.requests // 5)

    def spec(self, router: str, image: str) -> dict:
        benchmark = {
            "concurrencyPerGPU": self.per_gpu, "inputTokens": self.input_tokens, "outputTokens": self.output_tokens,
            "datasetEntries": self.entries, "randomSeed": self.seed, "requestTimeout": f"{self.patience}s",
        }
        length = {"duration": f"{self.duration}s"} if self.duration else {"requestsPerConcurrency": self.requests_per, "minRequests": self.requests}
        return {"model": {"name": MODEL}, "workload": {"dynamo": {"image": image, "routerMode": router}}, "benchmark": {**benchmark, **length}}

    def command(self, stack: Stack, artifacts: Path) -> list[str]:
        hosts = [word for worker in stack.workers for word in ("--workers-host", worker.host)]
        gpus = ["--gpu-metrics", GPU_METRICS] if GPU_METRICS else []
        length = ["--benchmark-duration", str(self.duration)] if self.duration else ["--request-count", str(self.requests)]
        return [
            stack.programs.runner, "run", "--nonce", "rig", "--artifact-dir", str(artifacts), "--termination-log",
            str(stack.folder / "message"), "--workers-port", str(METRICS_PORT), "--timeout", str(self.limit_seconds), *hosts, *gpus,
            "--", *stack.programs.aiperf, "profile", "--model", MODEL, "--url", URL, "--endpoint-type", "chat", "--streaming",
            "--concurrency", str(self.concurrency), *length, "--warmup-request-count", str(self.concurrency),
            "--prompt-input-tokens-mean", str(self.input_tokens), "--prompt-input-tokens-stddev", "0",
            "--prompt-output-tokens-mean", str(self.output_tokens), "--prompt-output-tokens-stddev", "0",
            "--num-dataset-entries", str(self.entries), "--random-seed", str(self.seed), "--extra-inputs", "temperature:0",
            "--extra-inputs", "ignore_eos:true", "--request-timeout-seconds", str(self.patience), "--ui", "none",
            "--output-artifact-dir", str(artifacts), "--export-level", "records", "--use-server-token-count",
            "--no-gpu-telemetry", "--tokenizer", MODEL,
        ]


def trial(stack: Stack, load: Load, during: Callable[[subprocess.Popen], None] | None = None) -> tuple[dict | None, str]:
    """Runs a trial, and meanwhile `during`: the trial as the corpus has it, or the end of the log."""
    artifacts, log = stack.folder / "artifacts", stack.folder / "runner.log"
    shutil.rmtree(artifacts, ignore_errors=True)
    environment = stack.programs.environment(stack.folder, stack.programs.aiperf_path)
    before = stack.rows()
    with open(log, "w") as out:
        runner = subprocess.Popen(load.command(stack, artifacts), env=environment, stdout=out, stderr=subprocess.STDOUT)
    try:
        if during:
            during(runner)
        # The runner's own limit ends AIPerf and leaves a record.
        runner.wait(load.limit_seconds + 60)
    finally:
        if runner.poll() is None:
            runner.terminate()
            runner.wait()
    payloads = [line for line in log.read_text(errors="replace").splitlines() if line.startswith('{"record"')]
    if not payloads:
        return None, tail(log)
    payload = json.loads(payloads[-1])
    return {"record": payload["record"], "series": payload.get("workers", []), "before": before, "after": stack.rows()}, ""


def short(trial: dict) -> str:
    """Throughput and TTFT p99, or why there are none."""
    outcome = trial["record"]["outcome"]
    if "report" not in outcome:
        return f"no result: {json.dumps(outcome)[:300]}"
    metrics = outcome["report"]["metrics"]
    value = lambda metric, statistic: float(metrics.get(metric, {}).get(statistic, "nan"))
    failed = outcome["report"].get("failed", 0)
    numbers = f"{value('OutputTokenThroughput', 'Avg'):10,.1f} tok/s  TTFT p99 {value('TimeToFirstToken', 'P99'):9,.1f} ms"
    return f"{numbers}  {failed} failed" if failed else numbers


def descendants(root: int) -> list[int]:
    """A process and all that it started."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        try:
            stat = (folder / "stat").read_text() if folder.name.isdigit() else ""
        except OSError:
            continue
        if stat:
            parents.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(folder.name))
    found = [root]
    for pid in found:
        found.extend(parents.get(pid, []))
    return found


def confine(pids: list[int], cpus: set[int]) -> None:
    """Leaves processes, with all their threads, these CPUs only."""
    for pid in pids:
        try:
            threads = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue
        for thread in threads:
            try:
                os.sched_setaffinity(int(thread.name), cpus)
            except OSError:
                pass  # it has ended
