"""What the lab needs on a machine without packages: its programs from the cache, and Debian's tools with their libraries.

Used by `pack.py --cluster`, on a machine where the lab has been up once. Needs patchelf and strip.
"""

import lzma
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from_cache = Path.home() / ".cache" / "perfval-lab"
# What tests/lab/src/packages.rs asks for, and what these programs and the container runtime call in turn.
TOOLS = ["ip", "runc", "iptables", "conntrack", "ethtool", "socat", "modprobe", "busybox"]
# The names by which kube-proxy and the CNI plugins call one program.
IPTABLES = ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"]
CNI = Path("/usr/lib/cni")
EXTENSIONS = Path("/usr/lib/x86_64-linux-gnu/xtables")
LIBRARIES = "usr/local/lib/perfval-lab"
# Each machine has its own of these.
OF_LIBC = ("linux-vdso", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "ld-linux")


def run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def tools(to: Path) -> Path:
    """Debian's programs, that find their libraries beside them: never over those of another distribution."""
    root = to / "tools"
    shutil.rmtree(root, ignore_errors=True)
    (root / LIBRARIES).mkdir(parents=True)
    for name in TOOLS:
        program = shutil.which(name)
        if program is None:
            raise SystemExit(f"{name} is not installed: `just setup`")
        place(Path(program).resolve(), root / "usr/local/sbin" / name, root)
    for name in IPTABLES[1:]:
        (root / "usr/local/sbin" / name).symlink_to("iptables")
    for plugin in CNI.iterdir():
        place(plugin.resolve(), root / "usr/lib/cni" / plugin.name, root)
    for extension in EXTENSIONS.iterdir():
        place(extension, root / str(EXTENSIONS).lstrip("/") / extension.name, root)
    return root


def place(program: Path, to: Path, root: Path) -> None:
    """Copies a program, and the libraries that it names."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, to)
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return  # a static one
    for line in listed.stdout.splitlines():
        name, _, rest = line.strip().partition(" => ")
        library = root / LIBRARIES / name
        if rest.startswith("/") and not name.startswith(OF_LIBC) and not library.exists():
            shutil.copy(Path(rest.split(" ")[0]).resolve(), library)
            run("patchelf", "--set-rpath", f"/{LIBRARIES}", str(library))
    run("patchelf", "--set-rpath", f"/{LIBRARIES}", str(to))


def archive(folder: Path, names: list[str], to: Path) -> Path:
    """Owners, modes and links as they are: a container runtime's store is among them."""
    part = to.with_suffix(".part")
    with lzma.open(part, "wb", preset=3) as out, tarfile.open(fileobj=out, mode="w|") as packed:
        for name in names:
            packed.add(folder / name, name)
    return part.rename(to)


def newest(pattern: str) -> str:
    found = sorted(from_cache.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(f"{from_cache}/{pattern} is not there: `lab up --without-dynamo-image` makes it")
    return str(found[-1].relative_to(from_cache))


def contents(to: Path, programs: Path, operator: Path) -> dict[str, Path]:
    """What travels, by its name over there. An archive of what the cache names by a key is made once: minutes for all."""
    to.mkdir(parents=True, exist_ok=True)
    lab = to / "lab"
    run("strip", "-o", str(lab), str(programs / "lab"))
    images = [newest(f"images/{name}@*") for name in ("pause-lab", "busybox-lab", "store-pause-lab+busybox-lab")]
    # Built programs of one family may lie there in several versions: the lab takes the one of its own key.
    families = sorted(path.name for path in (from_cache / "programs").iterdir() if path.is_dir())
    wanted = [(f"program-{name}", from_cache, [f"programs/{name}"]) for name in families]
    wanted += [(f"images-{images[-1].rpartition('@')[2]}", from_cache, images)]
    root = tools(to)
    (to / "tools.tar.xz").unlink(missing_ok=True)
    wanted += [("tools", root, [path.name for path in root.iterdir()])]

    def made(job: tuple[str, Path, list[str]]) -> Path:
        target = to / f"{job[0]}.tar.xz"
        return target if target.exists() else archive(job[1], job[2], target)

    with ThreadPoolExecutor(2) as pool:
        archives = list(pool.map(made, wanted))
    files = {f"cluster/{path.name}": path for path in archives}
    files |= {"cluster/lab": lab, "cluster/perfvalidation-operator": operator}
    here = Path(__file__).resolve().parent
    files |= {f"rig/cluster/{path.name}": path for path in here.iterdir() if path.is_file()}
    config = here.parents[3] / "config"
    return files | {f"config/{path.relative_to(config)}": path for path in config.rglob("*") if path.is_file()}
