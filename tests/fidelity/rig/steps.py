"""Repeats one decode step on each GPU at once, without an engine: how much do the GPUs of a host differ?

Usage: steps.py FOLDER [--gpus 4] [--spells 40,40] [--pause 6]   (Python with torch; 60 GB of memory on each GPU)

FOLDER/gpuN.json has the time of a step (ms, the mean of 50) through each spell, and what nvidia-smi showed at its end.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

# Qwen3-8B: width, width of the MLP, layers, vocabulary; 64 requests of 1,024 tokens.
WIDTH, INNER, LAYERS, WORDS = 4096, 12288, 36, 151936
REQUESTS, TOKENS = 64, 1024
# Until every GPU has its weights (s).
READY = 22
SHOWN = "uuid,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"


def worker(gpu: int, folder: Path, begin: float, spells: list[int], pause: int) -> None:
    import torch  # only here: the process that starts the others needs none

    torch.cuda.set_device(gpu)
    torch.manual_seed(1)
    kind = {"device": f"cuda:{gpu}", "dtype": torch.bfloat16}
    shapes = [(WIDTH, 6144), (WIDTH, WIDTH), (WIDTH, 2 * INNER), (INNER, WIDTH)]
    layers = [[torch.randn(*shape, **kind) * 0.02 for shape in shapes] for _ in range(LAYERS)]
    keys = torch.randn(LAYERS, REQUESTS, 8, TOKENS, 128, **kind)
    values = torch.randn(LAYERS, REQUESTS, 8, TOKENS, 128, **kind)
    head, first = torch.randn(WIDTH, WORDS, **kind) * 0.02, torch.randn(REQUESTS, WIDTH, **kind)

    def step() -> torch.Tensor:
        x = first
        for layer, (qkv, out, up, down) in enumerate(layers):
            query = (x @ qkv)[:, :WIDTH].reshape(REQUESTS, 8, 4, 128)
            seen = torch.nn.functional.scaled_dot_product_attention(query, keys[layer], values[layer])
            x = x + seen.reshape(REQUESTS, WIDTH) @ out
            inner = x @ up
            x = x + (torch.nn.functional.silu(inner[:, :INNER]) * inner[:, INNER:]) @ down
            x = x / (x.float().pow(2).mean(-1, keepdim=True).sqrt().to(x.dtype) + 1e-3)
        return (x @ head).argmax(-1)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    torch.cuda.synchronize()
    rounds = []
    for length in spells:
        time.sleep(max(0.0, begin - time.time()))
        end, series = begin + length, []
        while time.time() < end:
            began = time.time()
            for _ in range(50):
                graph.replay()
            torch.cuda.synchronize()
            series.append(round((time.time() - began) / 50 * 1e3, 4))
        shown = subprocess.run(["nvidia-smi", "-i", str(gpu), f"--query-gpu={SHOWN}", "--format=csv,noheader"], capture_output=True, text=True, check=False)
        rounds.append({"ms": series, "smi": shown.stdout.strip()})
        begin = end + pause
    (folder / f"gpu{gpu}.json").write_text(json.dumps({"gpu": gpu, "rounds": rounds}))
    means = ", ".join(f"{sum(spell['ms']) / len(spell['ms']):.2f} ms" for spell in rounds)
    print(f"GPU {gpu}: {means}; {rounds[-1]['smi']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpus", type=int, default=4)
    parser.add_argument("--spells", default="40,40", help="lengths (s)")
    parser.add_argument("--pause", type=int, default=6, help="time between spells (s)")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    spells = [int(length) for length in options.spells.split(",")]
    if options.worker is not None:
        worker(options.worker, options.folder, options.begin, spells, options.pause)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    begin = time.time() + READY
    command = [sys.executable, __file__, *sys.argv[1:], "--begin", str(begin), "--worker"]
    started = [subprocess.Popen([*command, str(gpu)]) for gpu in range(options.gpus)]
    if any([process.wait() for process in started]):
        raise SystemExit("a GPU did not finish")


if __name__ == "__main__":
    main()
