"""What a worker is: Dynamo's mocker on a CPU, or vLLM on a GPU."""

import os
from dataclasses import dataclass, field
from pathlib import Path

MODEL = "lab/tiny-qwen3"
# GPUs, addresses and ports that are left to another rig on this machine: the first so many.
SKIP = int(os.environ.get("RIG_SKIP", "0"))
# Of the model that vLLM runs: Qwen3-8B's, with the tiny tokenizer and weights that are never loaded.
DIMENSIONS = {
    "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}
GIB = 1 << 30


@dataclass
class Programs:
    """Where Dynamo, AIPerf, the runner and the model are."""

    python: list[str]
    aiperf: list[str]
    runner: str
    model_home: str
    dynamo_path: str = ""
    aiperf_path: str = ""
    more: dict[str, str] = field(default_factory=dict)

    def environment(self, folder: Path, path: str, **more: str) -> dict[str, str]:
        """Found by files, fed over TCP: neither etcd nor NATS."""
        found = {"PYTHONPATH": path} if path else {}
        return {
            **os.environ, "HF_HOME": self.model_home, "HF_HUB_OFFLINE": "1", "DYN_FILE_KV": str(folder / "kv"),
            "DYN_DISCOVERY_BACKEND": "file", "DYN_REQUEST_PLANE": "tcp", "DYN_EVENT_PLANE": "zmq",
            "DYN_TCP_RPC_HOST": "127.0.0.1", "DYN_SDK_DISABLE_ANSI_LOGGING": "1", **found, **self.more, **more,
        }


@dataclass
class Worker:
    """One worker as it was started last."""

    index: int
    host: str
    # Of the mocker: how much faster than its model it runs.
    speed: float = 1.0
    # Of vLLM: the GPU, and its share of the memory.
    gpu: int = 0
    device: str | None = None
    memory: float = 0.8
    cache_bytes: int = 0
    restarts: int = 0
    pid: int = 0

    @property
    def name(self) -> str:
        return f"worker-{self.index}"

    def row(self) -> dict:
        """As `workerPods` of the operator's state has it."""
        row = {"pod": self.name, "uid": self.name, "restarts": self.restarts, "address": self.host}
        return {**row, "devices": [self.device]} if self.device else row


class Mocker:
    """Dynamo's simulated engine."""

    name = "mocker"
    ready_seconds = 180

    def command(self, worker: Worker) -> list[str]:
        return ["-m", "dynamo.mocker", "--model-path", MODEL, "--speedup-ratio", str(worker.speed), "--max-num-seqs", "64"]

    def environment(self, worker: Worker) -> dict[str, str]:
        return {}


class Vllm:
    """vLLM with real kernels and weights that are random numbers."""

    name = "vllm"
    # Four H200: 200 s from nothing to the first completion, 84 s of it compiling FlashInfer's sampler.
    ready_seconds = 400
    # Work estimates cost nothing that was seen, and show what part of the GPU was used.
    extra = os.environ.get("RIG_VLLM_ARGS", "--enable-mfu-metrics").split()

    def command(self, worker: Worker) -> list[str]:
        words = [
            "-m", "dynamo.vllm", "--model", MODEL, "--load-format", "dummy", "--max-model-len", "4096",
            "--gpu-memory-utilization", f"{worker.memory:.2f}", *self.extra,
        ]
        # Two engines that start on one GPU at once would each count the other's memory as their own while they profile.
        return [*words, "--kv-cache-memory-bytes", str(worker.cache_bytes)] if worker.cache_bytes else words

    def environment(self, worker: Worker) -> dict[str, str]:
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(worker.gpu),
            "DYN_VLLM_KV_EVENT_PORT": str(kv_event_port(worker.index)),
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side_channel_port(worker.index)),
            "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
            # Answers are greedy: nothing is sampled.
            "VLLM_USE_FLASHINFER_SAMPLER": "0",
        }


def kv_event_port(index: int) -> int:
    return 20080 + SKIP + index


def side_channel_port(index: int) -> int:
    return 20196 + SKIP + index


ENGINES = {engine.name: engine for engine in (Mocker(), Vllm())}
