"""What a session leaves behind, and how it is brought back."""

import gzip
import json
import shutil
import tarfile
from pathlib import Path

# A file of what is brought back.
LARGEST = 16 << 20
LOG_BYTES = 200_000


class Results:
    """Records, telemetry, pages of metrics and the ends of the logs."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.records, self.telemetry, self.pages = folder / "records.jsonl", folder / "telemetry.csv", folder / "pages"

    def add(self, record: dict) -> None:
        with open(self.records, "a") as out:
            out.write(json.dumps(record, separators=(",", ":")) + "\n")

    def pack(self, out: Path) -> list[Path]:
        """Writes everything up to now, no file over 16 MiB: a session that is cut off has left what it had."""
        out.mkdir(parents=True, exist_ok=True)
        packed = []
        for file in (self.records, self.telemetry):
            if file.exists():
                packed.append(out / f"{file.name}.gz")
                with open(file, "rb") as source, gzip.open(packed[-1], "wb") as target:
                    shutil.copyfileobj(source, target)
        packed.append(out / "logs.txt.gz")
        with gzip.open(packed[-1], "wt") as target:
            for log in sorted(self.folder.glob("*.log")):
                target.write(f"==> {log.name}\n{log.read_bytes()[-LOG_BYTES:].decode(errors='replace')}\n")
        packed += self.pack_pages(out)
        too_large = [file.name for file in packed if file.stat().st_size > LARGEST]
        if too_large:
            raise OSError(f"{', '.join(too_large)}: over {LARGEST >> 20} MiB")
        return packed

    def pack_pages(self, out: Path) -> list[Path]:
        """The pages in as few archives as their size allows."""
        archives: list[Path] = []
        size, archive = 0, None
        for page in sorted(self.pages.glob("*.xz")) if self.pages.is_dir() else []:
            if archive is None or size + page.stat().st_size > LARGEST - (1 << 20):
                if archive:
                    archive.close()
                archives.append(out / f"pages-{len(archives)}.tar")
                archive, size = tarfile.open(archives[-1], "w"), 0
            archive.add(page, page.name)
            size += page.stat().st_size
        if archive:
            archive.close()
        return archives
