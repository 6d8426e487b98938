//! The small images, opened as a container runtime opens them. Needs root, for chroot and process namespaces.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const WORKER: &str = include_str!("../images/lab-worker");

/// `lab image …` with a cache of its own.
fn lab_image(cache: &Path, arguments: &[&str]) -> Output {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"));
    lab.arg("image")
        .args(arguments)
        .env("XDG_CACHE_HOME", cache)
        .output()
        .expect("lab")
}

fn archive(cache: &Path, arguments: &[&str]) -> PathBuf {
    let output = lab_image(cache, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path").trim_end().into()
}

/// Unpacks the layers into `root` and gives the tag and the configuration, after checking every digest.
fn unpack(archive: &Path, root: &Path) -> (String, Value) {
    let files = tempfile::tempdir().expect("folder");
    tar::Archive::new(File::open(archive).expect("archive"))
        .unpack(files.path())
        .expect("a tar file");
    let read = |name: &str| fs::read(files.path().join(name)).expect("named by the manifest");
    let manifest: Value = serde_json::from_slice(&read("manifest.json")).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();

    let config = read(&text(&manifest[0]["Config"]));
    assert_eq!(
        format!("{:x}.json", Sha256::digest(&config)),
        text(&manifest[0]["Config"])
    );
    let config: Value = serde_json::from_slice(&config).expect("JSON");
    let layers = manifest[0]["Layers"].as_array().expect("layers");
    assert_eq!(
        layers.len(),
        config["rootfs"]["diff_ids"].as_array().expect("diff ids").len()
    );
    for (layer, diff_id) in layers
        .iter()
        .zip(config["rootfs"]["diff_ids"].as_array().expect("diff ids"))
    {
        let layer = read(&text(layer));
        assert_eq!(format!("sha256:{:x}", Sha256::digest(&layer)), text(diff_id));
        let mut layer = tar::Archive::new(&*layer);
        layer.set_preserve_permissions(true);
        layer.unpack(root).expect("a layer");
    }
    (text(&manifest[0]["RepoTags"][0]), config)
}

fn bytes(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .expect("readable");
    bytes
}

#[test]
#[ignore = "needs root: just lab-test-parts"]
fn busybox_has_its_tools_and_the_same_bytes_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let archive_one = archive(&one, &["busybox"]);
    let (tag, _) = unpack(&archive_one, &root);
    assert_eq!(tag, "localhost/busybox:lab");
    let said = Command::new("chroot")
        .arg(&root)
        .args(["/bin/sh", "-c", "echo $((6*7)) | grep 42"])
        .output()
        .unwrap();
    assert_eq!(said.stdout, b"42\n");
    assert_eq!(fs::metadata(root.join("tmp")).unwrap().mode() & 0o7777, 0o1777);

    // Of 2006, the same for every file: the bytes must not depend on when the image is made.
    assert_eq!(fs::metadata(root.join("bin/busybox")).unwrap().mtime(), 1_153_704_088);

    let folder_two = two.join("perfval-lab/images");
    fs::create_dir_all(folder_two.join("unfinished-folder/bin")).unwrap();
    fs::write(folder_two.join("unfinished-file"), "").unwrap();
    let made = fs::metadata(&archive_one).unwrap().ino();
    assert_eq!(archive(&one, &["busybox"]), archive_one);
    assert_eq!(
        fs::metadata(&archive_one).unwrap().ino(),
        made,
        "the second call makes nothing"
    );
    let archive_two = archive(&two, &["busybox"]);
    assert_eq!(bytes(&archive_one), bytes(&archive_two));
    let left = fs::read_dir(folder_two)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let unfinished = left
        .filter(|name| name.to_string_lossy().starts_with("unfinished-"))
        .count();
    assert_eq!(unfinished, 0, "what an interrupted run left is gone");
}

#[test]
#[ignore = "needs root: just lab-test-parts"]
fn a_missing_program_is_named_with_the_command_that_installs_it() {
    let cache = tempfile::tempdir().unwrap();
    let mut lab = Command::new(env!("CARGO_BIN_EXE_lab"));
    let output = lab
        .args(["image", "busybox"])
        .env("PATH", "")
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("apt-get install --no-install-recommends busybox-static"),
        "{said}"
    );
}

#[test]
#[ignore = "needs root: just lab-test-parts"]
fn pause_is_a_good_process_1() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let (tag, config) = unpack(&archive(folder.path(), &["pause"]), &root);
    assert_eq!(tag, "localhost/pause:lab");
    assert_eq!(config["config"]["User"], "65532:65532");
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--pid", "--fork", "--kill-child"])
        .arg(root.join("pause"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut namespace = Ended(unshare.spawn().unwrap());
    let child = |parent: u32| -> Option<u32> {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("running");
        children.split_whitespace().next()?.parse().ok()
    };
    let pause = wait(|| child(namespace.0.id()));
    wait(|| {
        fs::read_to_string(format!("/proc/{pause}/comm"))
            .ok()
            .filter(|name| name == "pause\n")
    });

    // Its father leaves at once, so pause inherits it, as it does what a container leaves behind.
    let join = [
        "--pid",
        "--target",
        &pause.to_string(),
        "--",
        "sh",
        "-c",
        "sleep 600 & true",
    ];
    assert!(Command::new("nsenter").args(join).status().unwrap().success());
    let orphan = wait(|| child(pause));
    kill(pid(orphan), Signal::SIGKILL).unwrap();
    wait(|| child(pause).is_none().then_some(()));

    kill(pid(pause), Signal::SIGTERM).unwrap();
    assert!(
        wait(|| namespace.0.try_wait().unwrap()).success(),
        "leaves by itself on SIGTERM"
    );
}

/// A process that does not outlive a failed test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.try_into().expect("a process id"))
}

/// Asks until there is an answer, at most a minute.
fn wait<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "no answer within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs root: just lab-test-parts"]
fn the_operator_s_image_holds_two_static_programs_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let (root, runner) = (folder.path().join("root"), folder.path().join("runner"));
    fs::copy("/bin/busybox", &runner).unwrap();
    let runner = runner.to_str().unwrap();
    let dynamic = lab_image(folder.path(), &["operator", env!("CARGO_BIN_EXE_lab"), runner]);
    assert!(!dynamic.status.success());
    let complaint = String::from_utf8_lossy(&dynamic.stderr).into_owned();
    assert!(
        complaint.contains("dynamic linker") && complaint.contains("crt-static"),
        "{complaint}"
    );

    let first = archive(folder.path(), &["operator", "/bin/busybox", runner]);
    let (tag, config) = unpack(&first, &root);
    assert_eq!(tag, "localhost/perfvalidation-operator:lab");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/perfvalidation-operator");
    let files: BTreeSet<_> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(
        files,
        ["perfval-runner", "perfvalidation-operator"].map(Into::into).into()
    );

    // Bytes after the end of an ELF file do no harm.
    fs::write(runner, [bytes(Path::new(runner)), vec![0]].concat()).unwrap();
    let second = archive(folder.path(), &["operator", "/bin/busybox", runner]);
    assert_ne!(first, second, "another program, another archive");
    assert!(!first.exists(), "the superseded archive goes");
}

#[test]
#[ignore = "needs root: just lab-test-parts"]
fn a_worker_takes_its_speed_from_the_gpu_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    unpack(&archive(folder.path(), &["busybox"]), &root);
    fs::write(root.join("lab-worker"), WORKER).unwrap();
    fs::create_dir(root.join("dev")).unwrap();
    // Says what it was called with, in Python's place.
    let python = root.join("bin/python3");
    fs::write(&python, "#!/bin/sh\necho \"$@\"\n").unwrap();
    assert!(Command::new("chmod").arg("755").arg(python).status().unwrap().success());

    let worker = |gpus: &[&str], env: &[(&str, &str)]| {
        for node in fs::read_dir(root.join("dev")).unwrap() {
            fs::remove_file(node.unwrap().path()).unwrap();
        }
        for node in gpus.iter().chain(&["nvidiactl", "nvidia-uvm"]) {
            fs::write(root.join("dev").join(node), "").unwrap();
        }
        let mut command = Command::new("chroot");
        command
            .arg(&root)
            .args(["/bin/sh", "/lab-worker", "--max-num-seqs", "32"]);
        let output = command
            .env_clear()
            .env("PATH", "/usr/sbin:/bin")
            .envs(env.iter().copied())
            .output()
            .unwrap();
        let ratio = |line: &str| {
            line.strip_suffix(" --max-num-seqs 32")?
                .rsplit_once(' ')
                .map(|(_, ratio)| ratio.to_owned())
        };
        output
            .status
            .success()
            .then(|| ratio(String::from_utf8(output.stdout).unwrap().trim_end()))
            .flatten()
    };
    let speeds = ("LAB_GPU_SPEED", "3=0.1,13=0.5");
    let ratio = |ratio: &str| Some(ratio.to_owned());
    let full = ("LAB_SPEEDUP_RATIO", "0.3");
    assert_eq!(worker(&["nvidia3"], &[speeds]), ratio("0.012"));
    assert_eq!(worker(&["nvidia13"], &[speeds]), ratio("0.06"));
    assert_eq!(worker(&["nvidia1"], &[speeds]), ratio("0.12"));
    assert_eq!(worker(&["nvidia1"], &[speeds, full]), ratio("0.3"));
    assert_eq!(worker(&["nvidia3"], &[speeds, full]), ratio("0.03"));
    assert_eq!(worker(&["nvidia1"], &[]), ratio("0.12"));
    assert_eq!(worker(&["nvidia1", "nvidia3"], &[]), None, "two GPUs");
    assert_eq!(worker(&[], &[]), None, "no GPU");
    assert_eq!(worker(&[], &[("LAB_ALLOW_NO_GPU", "1")]), ratio("0.12"));
}
