"""The whole product on a machine with NVIDIA GPUs and no network: the lab on the real driver, the operator, vLLM in pods.

    cluster.py up                 unpacks what was carried, brings the lab up, installs the operator
    cluster.py up --mocker /opt/CACHE    the same with simulated engines and GPUs: to try this out
    cluster.py run NAME           applies validation.yaml under this name and follows it until it ends
    cluster.py run NAME --burn 0.3 --gpu 1     the same while another process computes on a GPU for a share of the time
    cluster.py run NAME --memory 70 --gpu 1    … or holds so many GiB of its memory
    cluster.py run NAME --freeze 10 --gpu 1    the worker on a GPU stands still for so many seconds in each trial; inf: for good
    cluster.py run NAME --kill-worker --gpu 1  its engine is killed in the first trial
    cluster.py run NAME --kill-operator        the operator is killed in the first trial
    cluster.py run NAME --trials healthy slow:0.3@1 slow:0.3@0,2 frozen:10@1   one trial for each, in one deployment
    cluster.py run NAME --manifest tensor-parallel.yaml --worker-gpus 4        each worker over so many GPUs
    cluster.py run NAME --manifest one-gpu.yaml --soak 10m     another manifest, a soak after its trials
    cluster.py run NAME          again: a rerun of what is there
    cluster.py policy --manifest two-gpus.yaml healthy healthy slow:0.3@1      a policy measures the node once for each; confirmations have the same fault
    cluster.py down

Beside it lie what `pack.py --cluster` carries. No setting of a GPU is changed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
# Behind the rig's own modules: a package there has the name of this file.
sys.path.append(str(HERE))

import programs
from engines import Programs
from policy import Passes
from process import Refused, say
from record import records
from strike import Strikes, fault

# Pods see the machine's /usr and /opt, so what they run lies there.
FOLDER = Path("/opt/silicon")
CACHE = Path.home() / ".cache" / "perfval-lab"
NAMESPACE = "perf"
# Longest that a run without a soak may take here: engines start in 130 s, each trial takes 50.
LIMIT = 570


def call(*words: str, **options) -> str:
    """What a command prints; a refusal with what it said where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Refused(f"{' '.join(words)}: {(done.stdout + done.stderr).strip()[-1500:]}")
    return done.stdout


def lab(*words: str) -> str:
    return call(str(FOLDER / "session" / "cluster" / "lab"), *words)


def kubectl(*words: str) -> str:
    return lab("exec", "--", "kubectl", *words)


# -- up

def unpack(carried: Path) -> None:
    """Programs of the lab into its cache, Debian's tools where the lab looks for them."""
    def extract(archive: Path) -> None:
        with tarfile.open(archive) as packed:
            packed.extractall("/" if archive.name.startswith("tools") else CACHE, filter="fully_trusted")

    # Made before the threads start: two archives of one folder would both make it.
    for folder in ("programs", "images"):
        (CACHE / folder).mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        list(pool.map(extract, sorted(carried.glob("*.tar.xz"))))


def driver() -> Path:
    """The folder of the driver's libraries."""
    listed = call("ldconfig", "-p").splitlines()
    found = [line.rsplit(" ", 1)[1] for line in listed if "libnvidia-ml.so.1 " in line and "x86-64" in line]
    found += [str(path) for path in Path("/usr/local").glob("nvidia*/lib64/libnvidia-ml.so.1")]
    if not found:
        raise Refused("no libnvidia-ml.so.1: this machine has no driver of NVIDIA's")
    folder = Path(found[0]).parent
    # nvidia-smi lies next to such a folder.
    return folder.parent if folder.name.startswith("lib") and "nvidia" in folder.parent.name else folder


def image(to: Path, ready: Programs) -> Path:
    """An image of nothing but the names of a root folder: its programs are the machine's own (pods.yaml)."""
    root = to / "root"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("usr", "opt", "proc", "sys", "dev", "etc", "tmp", "run", "var", "home/dynamo", "root"):
        (root / folder).mkdir(parents=True)
    for link in ("bin", "sbin", "lib", "lib64"):
        if Path("/", link).is_symlink():
            (root / link).symlink_to(os.readlink(f"/{link}"))
    for kept in ("ld.so.cache", "ld.so.conf", "alternatives", "ssl", "nsswitch.conf"):
        source = Path("/etc", kept)
        if source.is_dir():
            shutil.copytree(source, root / "etc" / kept, symlinks=True)
        elif source.exists():
            shutil.copy(source, root / "etc" / kept)
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65532:65532::/tmp:/bin/false\n")
    (root / "etc" / "group").write_text("root:x:0:\nnobody:x:65532:\n")
    (root / "tmp").chmod(0o1777)
    layer = to / "layer.tar"
    call("tar", "-C", str(root), "-cf", str(layer), ".")
    digest = call("sha256sum", str(layer)).split()[0]
    environment = {
        "PATH": f"{FOLDER}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "USER": "root", "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": ready.dynamo_path, "HF_HOME": ready.model_home, "HF_HUB_OFFLINE": "1",
        # Shared by all workers of all runs: the second start compiles nothing.
        "VLLM_CACHE_ROOT": str(FOLDER / "cache" / "vllm"), "TRITON_CACHE_DIR": str(FOLDER / "cache" / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(FOLDER / "cache" / "inductor"), "CC": "/usr/bin/gcc",
    }
    config = {
        "architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "config": {"Env": [f"{name}={value}" for name, value in environment.items()], "WorkingDir": "/tmp", "Cmd": ["python3"]},
    }
    (to / "config.json").write_text(json.dumps(config))
    (to / "manifest.json").write_text(json.dumps([{"Config": "config.json", "RepoTags": ["localhost/machine:1.4.2"], "Layers": ["layer.tar"]}]))
    archive = to / "machine.tar"
    call("tar", "-C", str(to), "-cf", str(archive), "manifest.json", "config.json", "layer.tar")
    return archive


def programs_of_pods(ready: Programs) -> None:
    """`python3` and `aiperf` as the pods call them."""
    folder = FOLDER / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    aiperf = f"export PYTHONPATH={ready.aiperf_path}\n" if ready.aiperf_path else ""
    for name, text in (("python3", f'exec {ready.python[0]} "$@"'), ("aiperf", f'{aiperf}exec {" ".join(ready.aiperf)} "$@"')):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def up(options: argparse.Namespace) -> None:
    carried = FOLDER / "session" / "cluster"
    if options.mocker:
        ready, gpus = programs.from_index(options.mocker, str(FOLDER / "session" / "perfval-runner")), ["--gpus", "2"]
    else:
        ready = programs.carried(FOLDER)
        unpack(carried)
        call("ldconfig")
        found = driver()
        say(f"the driver's libraries are in {found}")
        gpus = ["--driver-root", str(found)]
    programs_of_pods(ready)
    lab("up", "--without-dynamo-image", *gpus)
    say("the lab is up")
    work = FOLDER / "image"
    work.mkdir(exist_ok=True)
    lab("load-image", str(image(work, ready)))
    operator = lab("image", "operator", str(carried / "perfvalidation-operator"), str(FOLDER / "session" / "perfval-runner")).strip()
    lab("load-image", operator)
    kubectl("apply", "--server-side", "-f", str(HERE / "pods.yaml"))
    kubectl("apply", "--server-side", "--force-conflicts", "-k", str(FOLDER / "session" / "config" / "lab"))
    kubectl("rollout", "status", "-n", "perfvalidation-system", "deployment/perfvalidation-operator", "--timeout=120s")
    kubectl("create", "namespace", NAMESPACE)
    kubectl("create", "rolebinding", "perfvalidation", "-n", NAMESPACE, "--clusterrole", "perfvalidation-operator-runs",
            "--serviceaccount", "perfvalidation-system:perfvalidation-operator")
    slices = json.loads(kubectl("get", "resourceslices", "-o", "json"))["items"]
    for device in [device for found in slices for device in found["spec"]["devices"]]:
        words = {name: next(iter(value.values())) for name, value in device["attributes"].items()}
        say(f"{device['name']}: {words.get('productName')}, {words.get('uuid')}, driver {words.get('driverVersion')}")


# -- run

def run(options: argparse.Namespace) -> None:
    there = kubectl("get", "perfval", options.name, "-n", NAMESPACE, "--ignore-not-found", "-o", "name")
    kubectl("apply", "-f", str(manifest(options)))
    token = rerun(options.name) if there else None
    strikes = Strikes(options, FOLDER)
    try:
        strikes.start()
        follow(options.name, token, options.within, strikes)
    finally:
        strikes.stop()
        report(options.name, options.out, strikes)


def measure(options: argparse.Namespace) -> None:
    passes = Passes(kubectl, FOLDER, NAMESPACE, lambda name, strikes: report(name, options.out, strikes))
    passes.run(options.manifest, options.passes, options.within)


def manifest(options: argparse.Namespace) -> Path:
    text = replaced(options.manifest.read_text(), "name: silicon\n", f"name: {options.name}\n")
    if options.soak:
        text = replaced(text, "  benchmark:\n", f"  benchmark:\n    soak: {options.soak}\n")
    if options.trials:
        text = replaced(text, "    rule: Single\n", f"    rule: Single\n    min: {len(options.trials)}\n")
    if options.worker_gpus:
        text = replaced(text, "        gpus: 2\n", f"        gpus: {options.worker_gpus}\n")
    file = FOLDER / f"{options.name}.yaml"
    file.write_text(text)
    return file


def replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise Refused(f"the manifest has no line {old.strip()!r}")
    return text.replace(old, new, 1)


def rerun(name: str) -> str:
    token = f"{time.time():.0f}"
    kubectl("annotate", "perfval", name, "-n", NAMESPACE, f"perfvalidation.dev/rerun={token}", "--overwrite")
    return token


def follow(name: str, token: str | None, within: float, strikes: Strikes) -> None:
    """One line for each phase and message, until the run that this token asked for is over."""
    began, shown = time.time(), ("", "")
    while time.time() - began < within:
        status = json.loads(kubectl("get", "perfval", name, "-n", NAMESPACE, "-o", "json")).get("status", {})
        line = (status.get("phase", ""), status.get("message", ""))
        if line != shown:
            say(f"{time.time() - began:6.1f} s  {line[0]:<16} {line[1]}")
            shown = line
            strikes.look(line[1])
        if line[0] == "Completed" and status.get("run", {}).get("rerunToken") == token:
            return
        time.sleep(0.5)
    say(f"not over after {within:.0f} s")


def report(name: str, out: Path | None, strikes: Strikes) -> None:
    """What the status says, and everything into a folder."""
    print(kubectl("get", "perfvalidations", "-n", NAMESPACE, "-o", "wide"))
    found = json.loads(kubectl("get", "perfval", name, "-n", NAMESPACE, "-o", "json"))
    for finding in found.get("status", {}).get("diagnosis", []):
        say(f"{finding['severity']} {finding['cause']}: {finding['evidence']}\n   → {finding['remedy']}")
    if out is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(found, indent=1))
    if saved := found.get("status", {}).get("resultsRef"):
        results = json.loads(kubectl("get", "configmap", saved["name"], "-n", NAMESPACE, "-o", "json"))
        with open(out / "records.jsonl", "a") as written:
            for line in records(found, results, strikes):
                written.write(json.dumps(line, separators=(",", ":")) + "\n")
    dumps = {
        "events": ["get", "events", "-A", "--sort-by=.lastTimestamp"], "pods": ["get", "pods", "-A", "-o", "wide"],
        "results": ["get", "configmaps", "-n", NAMESPACE, "-o", "json"], "slices": ["get", "resourceslices", "-o", "yaml"],
        "operator": ["logs", "-n", "perfvalidation-system", "deployment/perfvalidation-operator", "--tail=400"],
    }
    for file, words in dumps.items():
        try:
            (out / f"{name}-{file}.txt").write_text(kubectl(*words)[-12_000_000:])
        except Refused as refusal:
            say(str(refusal))
    for pod in kubectl("get", "pods", "-n", NAMESPACE, "-o", "name").split():
        try:
            (out / f"{name}-{pod.removeprefix('pod/')}.log").write_text(kubectl("logs", "-n", NAMESPACE, pod, "--all-containers", "--tail=400"))
        except Refused as refusal:
            say(str(refusal))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("up")
    command.add_argument("--mocker", type=Path, metavar="CACHE", help="simulated engines and GPUs, installed there (below /opt) from a package index")
    command = commands.add_parser("run")
    command.add_argument("name")
    command.add_argument("--manifest", type=Path, default=HERE / "validation.yaml")
    command.add_argument("--burn", type=float, help="share of the time that another process computes")
    command.add_argument("--memory", type=float, help="memory that another process holds (GiB)")
    command.add_argument("--freeze", type=float, help="seconds for which a worker stands still in each trial; inf: for good")
    command.add_argument("--kill-worker", action="store_true")
    command.add_argument("--kill-operator", action="store_true")
    command.add_argument("--gpu", type=int, default=1, help="where")
    command.add_argument("--trials", type=fault, nargs="+", metavar="FAULT", help="faults of single trials: healthy, slow:0.3@1, frozen:10@0,2")
    command.add_argument("--worker-gpus", type=int, help="GPUs of each worker")
    command.add_argument("--soak", help="one more trial of this length after those that passed, such as 10m")
    command.add_argument("--within", type=float, default=LIMIT, help="seconds")
    command.add_argument("--out", type=Path, default=os.environ.get("OUT"))
    command = commands.add_parser("policy")
    command.add_argument("passes", type=fault, nargs="+", metavar="FAULT", help="as of --trials, for each pass")
    command.add_argument("--manifest", type=Path, default=HERE / "two-gpus.yaml")
    command.add_argument("--within", type=float, default=LIMIT, help="seconds for each pass")
    command.add_argument("--out", type=Path, default=os.environ.get("OUT"))
    commands.add_parser("down")
    options = parser.parse_args()
    began = time.time()
    try:
        if options.command == "down":
            lab("down")
        else:
            {"up": up, "run": run, "policy": measure}[options.command](options)
    except Refused as refusal:
        print(f"cluster: {refusal}", file=sys.stderr)
        return 1
    say(f"{options.command}: {time.time() - began:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
