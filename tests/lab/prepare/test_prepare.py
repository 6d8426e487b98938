"""Tests of the preparation: what the checks find, what the progress line shows, what a failure prints. Run by tests/lab/tests/prepare.rs."""

import io
import os
import subprocess
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import preflight
import prepare
from preflight import GIB
from progress import Part, Progress, Screen, about, clock

HERE = Path(__file__).resolve().parent


def machine(**changes):
    """A machine on which all is well, with these changes."""
    usual = {
        "platform": ("linux", "x86_64"), "root": True, "cores": 2, "memory": 16 * GIB, "disks": {"/cache": (1, 90 * GIB), "/var/lib/perfval-lab": (1, 90 * GIB)},
        "rust": (1, 95, 0), "rust_wanted": (1, 95), "go": (1, 26, 8), "python": (3, 11, 2), "lab": None,
    }
    return types.SimpleNamespace(**{**usual, **changes})


class Preflight(unittest.TestCase):
    def problem(self, **changes):
        found = preflight.problems(machine(**changes), preflight.COLD)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_a_machine_on_which_all_is_well_has_no_problem(self):
        self.assertEqual(preflight.problems(machine(), preflight.COLD), [])
        self.assertEqual(preflight.warnings(machine()), [])

    def test_each_problem_is_one_line_with_its_remedy(self):
        cases = [
            ({"platform": ("darwin", "arm64")}, "virtual machine"), ({"root": False}, "sudo"), ({"memory": 2 * GIB}, "2 GiB of memory are free"),
            ({"rust": None}, "Rust 1.95 or newer is missing. Install it with rustup"), ({"rust": (1, 80, 0)}, "Rust 1.80.0 is too old"),
            ({"go": None}, "Go 1.26.8 or newer is missing"), ({"go": (1, 9, 0)}, "Go 1.9.0 is too old"), ({"python": (3, 9, 2)}, "Python 3.9.2 is too old"),
            ({"lab": "A lab has been up. Run `just lab-down` to end it."}, "lab-down"),
        ]
        for changes, words in cases:
            problem = self.problem(**changes)
            self.assertIn(words, problem)
            self.assertNotIn("\n", problem)

    def test_all_problems_are_shown_at_once(self):
        self.assertEqual(len(preflight.problems(machine(root=False, go=None, memory=0), preflight.COLD)), 3)

    def test_a_disk_that_two_folders_share_is_reported_once_and_each_other_disk_by_its_variable(self):
        self.assertIn("XDG_CACHE_HOME", self.problem(disks={"/cache": (1, GIB), "/var/lib/perfval-lab": (1, GIB)}))
        self.assertIn("PERFVAL_LAB_DIR", self.problem(disks={"/cache": (1, 90 * GIB), "/var/lib/perfval-lab": (2, GIB)}))

    def test_less_is_needed_once_everything_is_built(self):
        small = machine(disks={"/cache": (1, 5 * GIB)})
        self.assertEqual(len(preflight.problems(small, preflight.COLD)), 1)
        self.assertEqual(preflight.problems(small, preflight.WARM), [])

    def test_one_core_is_a_warning(self):
        self.assertIn("Cores that can be used: 1.5.", preflight.warnings(machine(cores=1.5))[0])
        self.assertEqual(preflight.problems(machine(cores=1), preflight.COLD), [])

    def test_limits_of_a_container_count(self):
        self.assertEqual(preflight.cores(8, "150000 100000\n"), 1.5)
        self.assertEqual(preflight.cores(8, "max 100000\n"), 8)
        self.assertEqual(preflight.cores(8, ""), 8)
        self.assertEqual(preflight.memory("MemTotal: 9 kB\nMemAvailable:    2048 kB\n", None), 2 << 20)
        self.assertEqual(preflight.memory("MemAvailable:    2048 kB\n", 5), 5)

    def test_files_in_the_memory_of_a_container_count_as_free(self):
        v2 = {"memory.max": "8000\n", "memory.current": "7000\n", "memory.stat": "anon 2000\ninactive_file 4000\nactive_file 1000\n"}
        v1 = {
            "memory/memory.limit_in_bytes": "8000\n", "memory/memory.usage_in_bytes": "7000\n",
            "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 4000\n",
        }
        unlimited, no_stat = {**v2, "memory.max": "max\n"}, {**v2, "memory.stat": ""}
        for files, free in ((v2, 5000), (v1, 5000), (no_stat, 1000), (unlimited, None), ({}, None)):
            with tempfile.TemporaryDirectory() as mount:
                Path(mount, "memory").mkdir()
                for name, text in files.items():
                    Path(mount, name).write_text(text)
                self.assertEqual(preflight.cgroup_memory(mount), free, files)

    def test_a_process_with_any_bytes_in_its_arguments_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "cmdline")
            file.write_bytes(b"tail\0\xff.log\0")
            self.assertEqual(preflight.read(file).split("\0")[0], "tail")

    def test_the_disk_of_a_folder_is_found_before_the_folder_exists(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(preflight.free_space(Path(folder, "not", "yet"))[0], os.stat(folder).st_dev)

    def test_a_version_is_read_and_a_program_that_is_not_there_has_none(self):
        self.assertEqual(preflight.version(["echo", "go1.26.8"], "/"), (1, 26, 8))
        self.assertEqual(preflight.version(["echo", "cargo 1.95 (f2d3)"], "/"), (1, 95, 0))
        self.assertIsNone(preflight.version(["sh", "-c", "echo 1.2.3; exit 1"], "/"))
        self.assertIsNone(preflight.version(["/no/such/program"], "/"))

    def test_a_running_holder_uses_its_lab_and_one_that_ended_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            holder = Path(folder, "holder")
            self.assertIsNone(preflight.lab_user(Path(folder)))
            holder.write_text(preflight.record(str(os.getpid())))
            self.assertIn(f"Process {os.getpid()} ", preflight.lab_user(Path(folder)))
            holder.write_text(f"{os.getpid()} 1")
            self.assertIsNone(preflight.lab_user(Path(folder)), "the number was used again")

    def test_a_lab_without_a_holder_belongs_to_a_person(self):
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.object(preflight, "is_up", return_value=True):
                Path(folder, "plan.json").write_text("{}")
                self.assertEqual(preflight.lab_user(Path(folder)), f"A lab has been up for 0 min in {folder}. Run `just lab-down` to end it.")
            self.assertIsNone(preflight.lab_user(Path(folder)), "no process 1")


class Just(unittest.TestCase):
    def chosen(self, own):
        """The `just` that recipes find if the machine's own `just` is this script, and another one was installed."""
        installed = 'case "$*" in *--summary) ;; *) command -v just ;; esac'
        with tempfile.TemporaryDirectory() as folder:
            for place, script in (("own", own), ("perfvalidation/tools/just", installed)):
                just = Path(folder, place, "just")
                just.parent.mkdir(parents=True)
                just.write_text(f"#!/bin/sh\n{script}\n")
                just.chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}/own:/usr/bin:/bin", "XDG_CACHE_HOME": folder}
            command = [prepare.REPOSITORY / ".ci" / "just", "test"]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            return Path(done.stdout.strip()).relative_to(folder)

    def test_an_own_just_stays_unless_it_cannot_read_the_justfile(self):
        self.assertEqual(self.chosen("command -v just"), Path("own/just"))
        self.assertEqual(self.chosen("exit 1"), Path("perfvalidation/tools/just/just"))


class Line(unittest.TestCase):
    def progress(self):
        parts = [Part("lab program", 100, "crates"), Part("kubernetes", 400, "packages"), Part("images", 100)]
        return Progress(parts, cores=2, now=1000)

    def test_it_shows_what_runs_how_far_it_is_and_what_remains(self):
        progress = self.progress()
        progress.parts["lab program"].start(1000)
        progress.hear("lab program", "    Building [====>    ] 0/400: libc", 1000)
        progress.hear("lab program", "    Building [====>    ] 200/400: libc, kube", 1010)
        self.assertEqual(progress.line(1010), "[ 0:10] lab program 200/400 crates · then: kubernetes, images · about 4 min left")

    def test_the_lab_s_own_lines_start_count_and_end_their_parts(self):
        progress = self.progress()
        progress.parts["lab program"].skip()
        progress.hear("lab", "[  1.0 s] building kubernetes from source (once; minutes on a small machine)", 1000)
        progress.hear("lab", "[  6.0 s] kubernetes: 1100 of about 2750 packages, 5 s", 1005)
        progress.hear("lab", "[  6.0 s] images: unpacking Debian", 1005)
        self.assertIn("kubernetes 1,100/2,750 packages · images: unpacking Debian · about", progress.line(1010))
        progress.hear("lab", "[ 99.0 s] built kubernetes in 98 s", 1099)
        progress.hear("lab", "[ 99.0 s] images: made", 1099)
        self.assertEqual([part.state for part in progress.parts.values()], ["finished"] * 3)

    def test_what_was_built_before_says_nothing_about_the_speed(self):
        progress = self.progress()
        for part in list(progress.parts.values())[:2]:
            part.start(1000)
            part.end(1001)
        self.assertEqual(progress.seconds_left(1001), progress.parts["images"].seconds / (120 / 61))
        # 390 of 400 crates were there: a fortieth of the time is left.
        part = Part("lab program", 100, "crates")
        part.start(1000)
        part.count(390, 400)
        self.assertEqual(part.cost(), 2.5)
        part.count(395, 400)
        self.assertEqual(part.share(1000), 0.5)

    def test_the_estimate_follows_the_speed(self):
        slow, fast = self.progress(), self.progress()
        for progress, done in ((slow, 10), (fast, 90)):
            progress.parts["lab program"].start(1000)
            progress.hear("lab program", "Building [] 0/100", 1000)
            progress.hear("lab program", f"Building [] {done}/100", 1300)
        self.assertGreater(slow.seconds_left(1300), 1.5 * fast.seconds_left(1300))

    def test_a_narrow_terminal_loses_whole_parts_of_the_line(self):
        progress = self.progress()
        progress.parts["lab program"].start(1000)
        progress.parts["kubernetes"].start(1000)
        self.assertEqual(progress.line(1000, 60), "[ 0:00] lab program · kubernetes · about 5 min left")
        self.assertEqual(progress.line(1000, 45), "[ 0:00] lab program · about 5 min left")
        self.assertEqual(progress.line(1000, 10), "[ 0:00] about 5 min left")

    def test_times_are_short(self):
        self.assertEqual([clock(5), clock(200), clock(4000)], [" 0:05", " 3:20", "66:40"])
        self.assertEqual([about(0), about(44), about(89), about(95), about(400)], ["about 10 s left", "about 40 s left", "about 90 s left", "about 2 min left", "about 7 min left"])

    def test_a_file_gets_a_line_every_ten_seconds_and_a_terminal_one_that_is_rewritten(self):
        file, terminal = io.StringIO(), io.StringIO()
        for out, width in ((file, None), (terminal, lambda: 60)):
            screen = Screen(out, width)
            for time in range(1000, 1021):
                screen.show(self.progress(), time)
            screen.say("done")
        self.assertEqual(file.getvalue().count("\n"), 4)
        self.assertEqual(terminal.getvalue().count("\n"), 1)
        self.assertTrue(terminal.getvalue().endswith("\r\x1b[Kdone\n"))


class Steps(unittest.TestCase):
    def run_steps(self, *steps):
        """Runs steps side by side; the failure and what was printed."""
        out, log = io.StringIO(), io.StringIO()
        progress = Progress([Part("one", 1), Part("two", 1)], 2, prepare.now())
        runner = prepare.Runner(progress, Screen(out, None), log, quiet=0)
        threads = [runner.start(step) for step in steps]
        try:
            runner.wait(*threads)
        except prepare.Failed as failure:
            return failure, log.getvalue()
        finally:
            runner.end()
            for thread in threads:
                self.join(thread)
        return None, log.getvalue()

    def join(self, thread):
        thread.join(20)
        self.assertFalse(thread.is_alive(), "a step still runs")

    def test_a_failure_shows_the_end_of_the_output_and_names_the_log(self):
        failure, log = self.run_steps(prepare.Step("one", ["bash", "-c", "seq 100; exit 3"], "/"))
        lines = failure.text("/the/log").splitlines()
        self.assertEqual([lines[0], lines[39]], ["61", "100"])
        self.assertIn("failed with exit code 3", lines[-1])
        self.assertIn("/the/log", lines[-1])
        self.assertEqual(log.splitlines()[0], "1")

    def test_a_failed_download_is_one_line_with_a_remedy(self):
        failure, _ = self.run_steps(prepare.Step("one", ["bash", "-c", "echo trying; echo no route; exit 1"], "/", remedy="connect it"))
        self.assertIn("failed (no route). What to do: connect it.", failure.text("/the/log"))
        self.assertNotIn("\n", failure.text("/the/log"))

    def test_a_failure_ends_what_runs_beside_it(self):
        failure, _ = self.run_steps(prepare.Step("two", ["sleep", "1000"], "/"), prepare.Step("one", ["false"], "/"))
        self.assertEqual(failure.step.part, "one")

    def test_no_step_starts_after_the_end(self):
        runner = prepare.Runner(Progress([], 2, prepare.now()), None, io.StringIO(), quiet=0)
        runner.end()
        self.join(runner.start(prepare.Step("one", ["sleep", "1000"], "/")))

    def test_a_program_that_is_not_there_is_a_failure(self):
        failure, _ = self.run_steps(prepare.Step("one", ["/no/such/program"], "/", remedy="connect it"))
        lines = failure.text("/the/log").splitlines()
        self.assertIn("No such file", lines[0])
        self.assertEqual(lines[1], "one: `/no/such/program` failed. All of its output: /the/log")

    def test_an_interrupted_build_is_not_built(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("etcd-0123", "etcd-4567.building"):
                Path(folder, name).mkdir()
            Path(folder, "etcd-0123.lock").touch()
            self.assertEqual([found.name for found in Path(folder).glob("*-*") if prepare.is_built(found)], ["etcd-0123"])

    def test_lines_that_a_carriage_return_ends_are_lines(self):
        reading, writing = os.pipe()
        os.write(writing, b"Building [> ] 1/3\rBuilding [=>] 2/3\r\n\nCompiling x\nrest")
        os.close(writing)
        with os.fdopen(reading) as stream:
            self.assertEqual(list(prepare.lines_of(stream)), ["Building [> ] 1/3", "Building [=>] 2/3", "Compiling x", "rest"])


class Wrapper(unittest.TestCase):
    def test_only_programs_of_images_are_linked_statically(self):
        def flags(crate, kind):
            words = [HERE / "static-programs", "echo", "--crate-name", crate, "--edition=2024", "src/main.rs", "--crate-type", kind, "-o", "x"]
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout
        self.assertIn("+crt-static", flags("perfvalidation_operator", "bin"))
        self.assertIn("+crt-static", flags("perfval_runner", "bin"))
        for crate, kind in (("perfval_runner", "lib"), ("lab", "bin"), ("perfval_lab", "lib")):
            self.assertNotIn("crt-static", flags(crate, kind))


if __name__ == "__main__":
    unittest.main()
