"""Packs the rig for a machine without a network: wheels, runner, scripts and tokenizer maker, in portions of a bounded size.

Usage: pack.py FOLDER --runner PROGRAM [--wheels FOLDER] [--megabytes 60] [--cluster PROGRAMS]

FOLDER/part-000, part-001, … are carried one by one; `unpack.py` in each takes it over there.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from cluster import carry
from unpack import digest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
LISTS = {"dynamo-vllm": HERE / "wheels-dynamo-vllm.txt", "aiperf": HERE / "wheels-aiperf.txt"}
PROGRAMS = {"perfval-runner", "cluster/lab", "cluster/perfvalidation-operator"}
# pip matches a platform's version exactly, so each that a wheel may name is listed.
GLIBC = [*range(39, 23, -1), 17, 12, 5]
PLATFORMS = [*(f"manylinux_2_{minor}_x86_64" for minor in GLIBC), "manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]


def download(pinned: Path, wheels: Path) -> None:
    """Every wheel of a list, for Python 3.12 on x86-64; those that are there already stay."""
    wheels.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    for abi in ("cp312", "abi3", "none"):
        command += ["--abi", abi]
    subprocess.run([*command, "--dest", str(wheels), "--requirement", str(pinned)], check=True)


def chosen(pinned: Path, wheels: Path) -> list[Path]:
    """The wheels of a list, exactly one for each line."""
    found = []
    for line in pinned.read_text().splitlines():
        name, _, version = line.strip().partition("==")
        if not version:
            continue
        plain = name.lower().replace("-", "_").replace(".", "_")
        of_name = [wheel for wheel in wheels.glob("*.whl") if wheel.name.lower().replace(".", "_").startswith(f"{plain}-{version}-".replace(".", "_"))]
        if len(of_name) != 1:
            raise SystemExit(f"{line.strip()}: {len(of_name)} wheels in {wheels}")
        found += of_name
    return found


def contents(runner: Path, wheels: Path) -> dict[str, Path]:
    """What travels, by its name over there."""
    files = {"perfval-runner": runner, "tiny_qwen3.py": REPOSITORY / "tests" / "lab" / "images" / "tiny_qwen3.py"}
    files |= {f"rig/{script.name}": script for script in HERE.glob("*.py")}
    for name, pinned in LISTS.items():
        files[f"wheels-{name}.txt"] = pinned
        files |= {f"wheels/{name}/{wheel.name}": wheel for wheel in chosen(pinned, wheels / name)}
    return dict(sorted(files.items()))


def archive(files: dict[str, Path], to: Path) -> None:
    """Equal files give equal bytes."""
    with tarfile.open(to, "w") as packed:
        for name, file in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = file.stat().st_size
            entry.mode = 0o755 if name in PROGRAMS else 0o644
            with open(file, "rb") as source:
                packed.addfile(entry, source)


def split(packed: Path, folder: Path, size: int) -> dict[str, str]:
    """Cuts the archive into portions; their sums by name."""
    portions = {}
    with open(packed, "rb") as source:
        while chunk := source.read(size):
            name = f"part-{len(portions):03}"
            (folder / name).mkdir(parents=True)
            (folder / name / f"{name}.bin").write_bytes(chunk)
            portions[name] = hashlib.sha256(chunk).hexdigest()
    return portions


def refuse_dynamic(runner: Path) -> None:
    """The other machine may have an older libc."""
    program = runner.read_bytes()
    if not program.startswith(b"\x7fELF"):
        raise SystemExit(f"{runner} is no program")
    if b"/ld-linux-x86-64.so.2\0" in program:
        raise SystemExit(f"{runner} is linked dynamically; `just binaries` builds a static one")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runner", type=Path, required=True)
    parser.add_argument("--wheels", type=Path, help="folder with dynamo-vllm/ and aiperf/; downloaded there if missing")
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--cluster", type=Path, metavar="PROGRAMS", help="folder of the lab's program: carries the lab and the operator next to --runner too")
    options = parser.parse_args()
    wheels = options.wheels or options.folder / "wheels"
    refuse_dynamic(options.runner)
    for name, pinned in LISTS.items():
        try:
            chosen(pinned, wheels / name)
        except SystemExit:
            download(pinned, wheels / name)
    files = contents(options.runner, wheels)
    if options.cluster:
        files |= carry.contents(options.folder / "cluster", options.cluster, options.runner.with_name("perfvalidation-operator"))
    for old in options.folder.glob("part-*"):
        shutil.rmtree(old)
    options.folder.mkdir(parents=True, exist_ok=True)
    packed = options.folder / "archive.tar"
    archive(files, packed)
    sums = {name: digest(file) for name, file in files.items()}
    manifest = {"revision": revision(), "archive": {"sha256": digest(packed), "bytes": packed.stat().st_size}, "files": sums}
    # Room for the manifest and the script in each.
    manifest["portions"] = split(packed, options.folder, options.megabytes * 1_000_000 - 100_000)
    packed.unlink()
    for name in manifest["portions"]:
        (options.folder / name / "manifest.json").write_text(json.dumps(manifest, indent=1))
        shutil.copyfile(HERE / "unpack.py", options.folder / name / "unpack.py")
    print(f"{len(files)} files, {manifest['archive']['bytes'] / 1e6:.0f} MB, in {len(manifest['portions'])} portions: {options.folder}/part-000 …")


def revision() -> str:
    done = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    main()
