"""Where the programs come from: a package index, or portions that were carried here."""

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from engines import DIMENSIONS, Programs
from process import Refused, say

REPOSITORY = Path(__file__).resolve().parents[3]
CORPUS = "aiperf/dataset/generator/assets/shakespeare.txt"


def from_index(cache: Path, runner: str) -> Programs:
    """Dynamo and AIPerf by uv, and a model, in the cache; what is there already stays."""
    images = REPOSITORY / "tests" / "lab" / "images"
    lists = [images / "dynamo-1.4.2.txt", REPOSITORY / "deploy" / "images" / "aiperf-0.13.0.txt"]
    dynamo, aiperf = (cache / path.stem for path in lists)
    for environment, requirements in zip((dynamo, aiperf), lists, strict=True):
        if (environment / "installed").exists():
            continue
        python = str(environment / "bin" / "python")
        subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", "3.11", str(environment)], check=True)
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, "-r", str(requirements)], check=True)
        (environment / "installed").touch()
    python, model = str(dynamo / "bin" / "python"), cache / "model"
    if not model.is_dir():
        [corpus] = aiperf.glob(f"lib/python*/site-packages/{CORPUS}")
        subprocess.run([python, str(images / "tiny_qwen3.py"), str(corpus), str(model)], check=True)
    # A ready worker says so by its endpoint, not by its process.
    temporary = cache / "tmp"
    temporary.mkdir(exist_ok=True)
    more = {"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]', "TMPDIR": str(temporary)}
    return Programs([python], [str(aiperf / "bin" / "aiperf")], runner, str(model), more=more)


def carried(folder: Path) -> Programs:
    """What `unpack.py` put together, installed once next to the machine's own Python."""
    session, dynamo, aiperf = folder / "session", folder / "site", folder / "aisite"
    if not session.is_dir():
        raise Refused(f"{session} is not there: carry every portion here, and type `unpack.py {folder}` for each")
    for site, wheels in ((dynamo, "dynamo-vllm"), (aiperf, "aiperf")):
        install(session / "wheels" / wheels, site)
        missing(session / f"wheels-{wheels}.txt", site)
    path = f"{aiperf}:{dynamo}"
    programs = Programs(
        [sys.executable], [sys.executable, "-m", "aiperf"], str(session / "perfval-runner"), str(folder / "hf"),
        dynamo_path=str(dynamo), aiperf_path=path,
    )
    if not (folder / "hf").is_dir():
        model(session, aiperf, dynamo, folder / "hf")
    return programs


def install(wheels: Path, site: Path) -> None:
    if (site / "installed").exists():
        return
    shutil.rmtree(site, ignore_errors=True)
    files = sorted(str(wheel) for wheel in wheels.glob("*.whl"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--target", str(site)]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"pip cannot install {wheels}: {(done.stdout + done.stderr).strip()[-1500:]}")
    (site / "installed").touch()
    say(f"{len(files)} wheels are installed in {site}")


def missing(pinned: Path, site: Path) -> None:
    """Refuses where a pinned wheel is not installed in its version."""
    found = {plain(found.metadata["Name"]): found.version for found in metadata.distributions(path=[str(site)])}
    wanted = [line.strip().split("==") for line in pinned.read_text().splitlines() if line.strip() and not line.startswith("#")]
    lacking = [f"{name}=={version}" for name, version in wanted if found.get(plain(name)) != version]
    if lacking:
        raise Refused(f"{len(lacking)} of {len(wanted)} wheels of {pinned.name} are not in {site}: {', '.join(lacking[:8])}; remove {site} and type `check`, which installs them again")


def plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def model(session: Path, aiperf: Path, dynamo: Path, home: Path) -> None:
    """The tiny tokenizer with the dimensions of a real model."""
    made = home.with_name(f"{home.name}.new")
    shutil.rmtree(made, ignore_errors=True)
    script = session / "tiny_qwen3.py"
    done = subprocess.run(
        [sys.executable, str(script), str(aiperf / CORPUS), str(made)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(dynamo)},
    )
    if done.returncode != 0:
        raise Refused(f"the model cannot be made: {done.stderr.strip()[-800:]}")
    [config] = made.rglob("config.json")
    config.write_text(json.dumps({**json.loads(config.read_text()), **DIMENSIONS}, indent=2))
    made.rename(home)
