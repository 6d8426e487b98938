"""The line that shows the current step, how far it is and what remains. Python's standard library only."""

import re
import time

CARGO = re.compile(r"Building \[[=> ]*\] (\d+)/(\d+)")
GO = re.compile(r"(\S+): (\d+) of about (\d+) packages")
IMAGES = re.compile(r"images: (.+)")


class Part:
    """One part of the work. `seconds`: CPU time of its first build on a machine with two cores."""

    def __init__(self, name, seconds, unit=None):
        self.name = name
        self.seconds = seconds
        self.unit = unit
        self.state = "waiting"
        self.skipped = False
        self.first = self.done = self.total = 0
        self.text = ""
        self.began = 0.0

    def start(self, now):
        self.state, self.skipped, self.began = "running", False, now

    def end(self, now):
        if now - self.began < 2:
            self.skip()
        self.state = "finished"

    def skip(self):
        """It was there already: it says nothing about the speed."""
        self.state, self.skipped = "finished", True

    def cost(self):
        """CPU seconds of what has to be built."""
        if self.skipped:
            return 0
        return self.seconds * (self.total - self.first) / self.total if self.total else self.seconds

    def count(self, done, total):
        """Takes a count. What was there before the first one costs nothing."""
        if not self.total:
            self.first = done
        self.done, self.total = done, total

    def share(self, now):
        """The finished share, from 0 to 1."""
        if self.state != "running":
            return float(self.state == "finished")
        if self.total:
            return (self.done - self.first) / max(self.total - self.first, 1)
        # Without a count: the usual time on one core.
        return min((now - self.began) / max(self.seconds, 1), 0.95)

    def shown(self):
        if self.total:
            return f"{self.name} {self.done:,}/{self.total:,} {self.unit}"
        return f"{self.name}: {self.text}" if self.text else self.name


class Progress:
    """All parts, and the line about them."""

    def __init__(self, parts, cores, now):
        self.parts = {part.name: part for part in parts}
        self.cores = cores
        self.began = now

    def hear(self, name, line, now):
        """Takes one line that a step printed."""
        if found := CARGO.search(line):
            self.parts[name].count(int(found.group(1)), int(found.group(2)))
        elif found := GO.search(line):
            self.parts[found.group(1)].count(int(found.group(2)), int(found.group(3)))
        elif found := re.search(r"building (\S+) from source", line):
            self.parts[found.group(1)].start(now)
        elif found := re.search(r"built (\S+) in \d+ s", line):
            self.parts[found.group(1)].end(now)
        elif found := re.search(r"(\S+) is built$", line):
            self.parts[found.group(1)].skip()
        elif found := IMAGES.search(line):
            self.hear_images(self.parts["images"], found.group(1), now)

    def hear_images(self, images, text, now):
        if text == "made":
            # Without a step before, all of them were there.
            images.end(now) if images.state == "running" else images.skip()
            return
        if images.state != "running":
            images.start(now)
        images.text = text

    def seconds_left(self, now):
        """The estimate: what is left in CPU seconds, by the speed so far."""
        left = sum(part.cost() * (1 - part.share(now)) for part in self.parts.values())
        done = sum(part.cost() * part.share(now) for part in self.parts.values())
        elapsed = now - self.began
        # The first minute says little, so it counts next to one minute at the usual speed.
        speed = (done + 60 * self.cores) / (elapsed + 60)
        return left / max(speed, 0.1)

    def line(self, now, width=None):
        """`[ 3:20] Rust 210/420 crates · then: images · about 6 min left`, at most this wide."""
        running = [part.shown() for part in self.parts.values() if part.state == "running"]
        waiting = [part.name for part in self.parts.values() if part.state == "waiting"]
        left = about(self.seconds_left(now))
        begin = f"[{clock(now - self.began)}] "
        then = [f"then: {', '.join(waiting)}"] if waiting else []
        texts = [[*running, *then, left], [*running, left], [*running[:1], left], [left]]
        lines = [begin + " · ".join(text) for text in texts]
        return next((line for line in lines if width is None or len(line) <= width), lines[-1])


def clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes:2}:{seconds:02}"


def about(seconds):
    if seconds >= 90:
        return f"about {round(seconds / 60)} min left"
    return f"about {max(round(seconds / 10), 1) * 10} s left"


class Screen:
    """Rewrites one line of a terminal; elsewhere it prints a line every 10 s."""

    EVERY = 10.0

    def __init__(self, out, width):
        self.out = out
        self.width = width
        self.printed = None
        self.dirty = False

    def show(self, progress, now):
        if self.width:
            self.out.write("\r\x1b[K" + progress.line(now, self.width() - 1))
            self.dirty = True
        elif self.printed is None or now - self.printed >= self.EVERY:
            self.out.write(progress.line(now) + "\n")
            self.printed = now
        self.out.flush()

    def say(self, text):
        """A line that stays."""
        self.out.write(("\r\x1b[K" if self.dirty else "") + text + "\n")
        self.dirty = False
        self.out.flush()


def now():
    return time.monotonic()
