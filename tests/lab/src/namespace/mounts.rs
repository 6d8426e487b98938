//! Which files inside the lab are its own and which the machine's.

use std::fs;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::network::BRIDGE_ADDRESS;
use crate::error::{Error, FileResult as _};
use crate::paths::StateDir;

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

/// Makes this process's mount namespace fit for a cluster.
pub fn prepare(state: &StateDir) -> Result<(), Error> {
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
    propagate(MsFlags::MS_SHARED)
}

/// Makes this process's mount namespace, a copy of the lab's, fit for a node with these files.
pub fn prepare_node(state: &StateDir, folder: &Path) -> Result<(), Error> {
    propagate(MsFlags::MS_PRIVATE)?;
    let resolver = private_run()?;
    for (own, seen) in BINDS {
        let own = folder.join(own);
        fs::create_dir_all(&own).file("create", &own)?;
        bind(&own, Path::new(seen))?;
    }
    private_resolver(state, &resolver)?;
    propagate(MsFlags::MS_SHARED)
}

fn propagate(how: MsFlags) -> Result<(), Error> {
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | how, None::<&str>).map_err(|source| Error::System {
        doing: format!("make the mounts below / {how:?}"),
        source,
    })
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
