"""Takes one portion of a packed rig; with the last one it checks all sums and puts the session together.

Usage: python3 PORTION/unpack.py FOLDER   (in any order, on the machine with the GPUs; needs nothing but Python)
"""

import hashlib
import json
import shutil
import sys
import tarfile
from pathlib import Path


def digest(file: Path) -> str:
    with open(file, "rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def check(file: Path, wanted: str) -> None:
    found = digest(file)
    if found != wanted:
        raise SystemExit(f"{file} is damaged: its SHA-256 is {found[:12]}…, not {wanted[:12]}…; carry it again")


def main(portion: Path, folder: Path) -> None:
    manifest = json.loads((portion / "manifest.json").read_text())
    wanted, here = manifest["portions"], folder / "portions"
    here.mkdir(parents=True, exist_ok=True)
    series = here / "archive"
    if series.exists() and series.read_text() != manifest["archive"]["sha256"]:
        raise SystemExit(f"{here} holds portions of another archive: remove it first")
    series.write_text(manifest["archive"]["sha256"])
    name = next((name for name in wanted if (portion / f"{name}.bin").exists()), None)
    if name is None:
        raise SystemExit(f"{portion} holds no portion of this archive")
    check(portion / f"{name}.bin", wanted[name])
    shutil.copyfile(portion / f"{name}.bin", here / f"{name}.new")
    (here / f"{name}.new").rename(here / name)

    lacking = [name for name in wanted if not (here / name).exists()]
    if lacking:
        print(f"{len(wanted) - len(lacking)} of {len(wanted)} portions are here; missing: {', '.join(lacking)}")
        return
    together(manifest, here, folder / "session")
    print(f"{len(manifest['files'])} files are in {folder / 'session'}, all sums are right (revision {manifest['revision']})")


def together(manifest: dict, here: Path, session: Path) -> None:
    archive = here / "archive.tar"
    with open(archive, "wb") as out:
        for name, wanted in manifest["portions"].items():
            check(here / name, wanted)
            with open(here / name, "rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
    check(archive, manifest["archive"]["sha256"])
    shutil.rmtree(session, ignore_errors=True)
    made = session.with_name("session.new")
    shutil.rmtree(made, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(made, filter="data")
    for name, wanted in manifest["files"].items():
        check(made / name, wanted)
    made.rename(session)
    archive.unlink()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(__file__).resolve().parent, Path(sys.argv[1]))
