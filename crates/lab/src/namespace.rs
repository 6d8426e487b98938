//! The private pid, mount and network namespace that holds the whole lab.
//!
//! `lab init` is its process 1: when that ends, however it ends, the kernel ends every process, mount, bridge and
//! address inside. The machine's own sysctls, firewall, `/run`, `/var/log` and `/var/lib/kubelet` stay untouched.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    mount::{MsFlags, mount},
    sys::{
        signal::{Signal, kill},
        wait::wait,
    },
    unistd::{Pid, setsid},
};

use crate::{
    command,
    error::{Error, FileResult as _},
    paths::StateDir,
};

/// The node's own address on the pod bridge; also the cluster DNS.
pub const BRIDGE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);
/// The `kubernetes` Service.
pub const SERVICE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);
/// The pod bridge.
pub const BRIDGE: &str = "lab0";

/// Folder in the state folder → where the lab sees it. Programs insist on these paths.
const BINDS: &[(&str, &str)] = &[
    ("kubelet", "/var/lib/kubelet"),
    ("cni", "/var/lib/cni"),
    ("var-log", "/var/log"),
];

/// What the kubelet would otherwise write for the whole machine; it leaves alone what already reads so.
const KUBELET_SYSCTLS: &[(&str, &str)] = &[
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

const KILL_DEADLINE: Duration = Duration::from_secs(30);

/// Process 1 of a running lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// Its number as this process sees it.
    pub pid: i32,
    /// The identity of its pid namespace, e.g. `pid:[4026532301]`.
    namespace: PathBuf,
}

/// Starts `lab init` in new namespaces. It outlives the caller.
pub fn launch(state: &StateDir) -> Result<(), Error> {
    let program = std::env::current_exe().file("find", "/proc/self/exe")?;
    let log = state.log("supervisor");
    let out = fs::File::create(&log).file("create", &log)?;
    let errors = out.try_clone().file("open", &log)?;
    Command::new("unshare")
        .args([
            "--pid",
            "--mount",
            "--net",
            "--fork",
            "--mount-proc",
            "--propagation",
            "private",
            "--",
        ])
        .arg(program)
        .arg("init")
        .arg(state.root())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .spawn()
        .map(drop)
        .map_err(|source| Error::Start {
            program: "unshare".to_owned(),
            source,
        })
}

/// The body of process 1: starts the supervisor, buries orphans, and ends with the supervisor.
pub fn init(state: &StateDir) -> Result<(), Error> {
    setsid().map_err(|source| Error::System {
        doing: "start a session".to_owned(),
        source,
    })?;
    prepare(state)?;
    let program = std::env::current_exe().file("find", "/proc/self/exe")?;
    let supervisor = Command::new(program)
        .arg("supervise")
        .arg(state.root())
        .spawn()
        .map_err(|source| Error::Start {
            program: "lab supervise".to_owned(),
            source,
        })?;
    loop {
        match wait() {
            Ok(ended)
                if ended
                    .pid()
                    .is_some_and(|pid| u32::try_from(pid.as_raw()) == Ok(supervisor.id())) =>
            {
                return Ok(());
            }
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(source) => {
                return Err(Error::System {
                    doing: "wait for children".to_owned(),
                    source,
                });
            }
        }
    }
}

/// Finds the lab of a state folder by its process 1.
pub fn find(state: &StateDir) -> Option<Init> {
    processes().find_map(|pid| {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = command_line.split(|byte| *byte == 0).skip(1);
        let is_init =
            words.next() == Some(b"init") && words.next() == Some(state.root().as_os_str().as_encoded_bytes());
        let namespace = fs::read_link(format!("/proc/{pid}/ns/pid")).ok()?;
        (is_init && is_process_one(pid)).then_some(Init { pid, namespace })
    })
}

/// `NSpid` lists a process's numbers from the outer to its own namespace.
fn is_process_one(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .unwrap_or_default();
    numbers.split_whitespace().last() == Some("1")
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
}

impl Init {
    /// Every process inside, as this process numbers them.
    pub fn members(&self) -> Vec<i32> {
        let inside = |pid: &i32| fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|ns| ns == self.namespace);
        processes().filter(inside).collect()
    }

    /// Ends process 1 and with it everything inside; returns when all of it is gone.
    pub fn kill(&self) -> Result<(), Error> {
        match kill(Pid::from_raw(self.pid), Signal::SIGKILL) {
            Ok(()) | Err(nix::Error::ESRCH) => {}
            Err(source) => {
                return Err(Error::System {
                    doing: format!("kill process {}", self.pid),
                    source,
                });
            }
        }
        let started = Instant::now();
        loop {
            let left = self.members();
            if left.is_empty() {
                return Ok(());
            }
            if started.elapsed() > KILL_DEADLINE {
                let detail = format!("processes {left:?}");
                return Err(Error::StillThere {
                    what: "the namespace",
                    seconds: KILL_DEADLINE.as_secs(),
                    detail,
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Makes the namespace this process is the first in fit for a cluster.
fn prepare(state: &StateDir) -> Result<(), Error> {
    let resolver = private_run()?;
    private_var_lib(state)?;
    for (own, seen) in BINDS {
        for folder in [&state.join(own), Path::new(seen)] {
            fs::create_dir_all(folder).file("create", folder)?;
        }
        bind(&state.join(own), Path::new(seen))?;
    }
    private_sysctls(state)?;
    private_resolver(state, &resolver)?;
    // Pods with bidirectional mounts need a shared root; nothing propagates out, the namespace began as private.
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_SHARED,
        None::<&str>,
    )
    .map_err(|source| Error::System {
        doing: "share the mounts below /".to_owned(),
        source,
    })?;
    network()
}

/// Runtimes keep sockets, locks and network namespaces in `/run`. Returns where `/etc/resolv.conf` really is.
fn private_run() -> Result<PathBuf, Error> {
    let resolver = fs::canonicalize("/etc/resolv.conf").unwrap_or_else(|_| "/etc/resolv.conf".into());
    mount(
        Some("tmpfs"),
        "/run",
        Some("tmpfs"),
        MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
        Some("mode=755"),
    )
    .map_err(|source| Error::System {
        doing: "mount a private /run".to_owned(),
        source,
    })?;
    Ok(resolver)
}

/// What is made in `/var/lib` stays in the namespace; only the state folder is the machine's.
fn private_var_lib(state: &StateDir) -> Result<(), Error> {
    let [own, upper, work] = ["state", "upper", "work"].map(|name| Path::new("/run/perfval-lab").join(name));
    for folder in [&own, &upper, &work] {
        fs::create_dir_all(folder).file("create", folder)?;
    }
    bind(state.root(), &own)?;
    let layers = format!(
        "lowerdir=/var/lib,upperdir={},workdir={}",
        upper.display(),
        work.display()
    );
    mount(
        Some("overlay"),
        "/var/lib",
        Some("overlay"),
        MsFlags::empty(),
        Some(layers.as_str()),
    )
    .map_err(|source| Error::System {
        doing: "mount a private /var/lib".to_owned(),
        source,
    })?;
    bind(&own, state.root())
}

/// Everything inside resolves names by the cluster's DNS.
fn private_resolver(state: &StateDir, resolver: &Path) -> Result<(), Error> {
    let own = state.join("resolv.conf");
    let text = format!("nameserver {BRIDGE_ADDRESS}\nsearch svc.cluster.local cluster.local\noptions ndots:5\n");
    fs::write(&own, text).file("write", &own)?;
    if !resolver.exists() {
        let folder = resolver.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).file("create", folder)?;
        fs::write(resolver, "").file("create", resolver)?;
    }
    bind(&own, resolver)
}

fn private_sysctls(state: &StateDir) -> Result<(), Error> {
    for (name, value) in KUBELET_SYSCTLS {
        let seen = Path::new("/proc/sys").join(name);
        let own = state.join("sysctl").join(name);
        let folder = own.parent().unwrap_or(state.root());
        fs::create_dir_all(folder).file("create", folder)?;
        fs::write(&own, format!("{value}\n")).file("write", &own)?;
        if seen.exists() {
            bind(&own, &seen)?;
        }
    }
    Ok(())
}

fn bind(own: &Path, seen: &Path) -> Result<(), Error> {
    mount(Some(own), seen, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(|source| Error::System {
        doing: format!("show {} as {}", own.display(), seen.display()),
        source,
    })
}

fn network() -> Result<(), Error> {
    // Built into some kernels. Without it answers of a Service's pods bypass the firewall's translation.
    let _ = Command::new("modprobe").arg("br_netfilter").output();
    let address = format!("{BRIDGE_ADDRESS}/24");
    let gateway = BRIDGE_ADDRESS.to_string();
    for arguments in [
        &["link", "set", "lo", "up"][..],
        &["link", "add", BRIDGE, "type", "bridge"],
        &["address", "add", &address, "dev", BRIDGE],
        &["link", "set", BRIDGE, "up"],
        // Leads nowhere; programs that look for "the" address of the machine need one.
        &["route", "add", "default", "via", &gateway],
    ] {
        command::output(Command::new("ip").args(arguments))?;
    }
    for name in ["ipv4/ip_forward", "bridge/bridge-nf-call-iptables"] {
        let setting = Path::new("/proc/sys/net").join(name);
        fs::write(&setting, "1").file("write", &setting)?;
    }
    Ok(())
}
