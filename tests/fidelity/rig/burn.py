"""Foreign work on a GPU: multiplies matrices for a share of the time, holds memory, and writes down what it did.

Usage: burn.py SHARE FILE [GIB]
"""

import json
import sys
import time
from pathlib import Path

import torch

SIZE = 8192


def main(share: float, file: Path, gib: float) -> None:
    _held = torch.zeros(int(gib * (1 << 30)), device="cuda", dtype=torch.uint8)
    if not share:
        torch.cuda.synchronize()
        while True:
            time.sleep(60)
    left, right = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    left @ right
    torch.cuda.synchronize()
    began = written = time.time()
    busy, products = 0.0, 0
    while True:
        started = time.time()
        left @ right
        torch.cuda.synchronize()
        took = time.time() - started
        busy, products = busy + took, products + 1
        if share < 1:
            time.sleep(took * (1 - share) / share)
        if products == 1 or time.time() - written > 0.5:
            written = time.time()
            file.write_text(json.dumps({"began": began, "busy": round(busy / (written - began), 4), "products": products}))


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
