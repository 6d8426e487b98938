use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::Error;
use crate::forward::{Forwarded, forward};
use crate::process::{self, pid_of};

/// Time for orphans to vanish before the runner continues without them.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// Bounds on the run of AIPerf.
#[derive(Args)]
pub struct Limits {
    /// Seconds AIPerf may run; set it below the Job's deadline, which loses the record. 0: no limit.
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    timeout: u64,
    /// Seconds AIPerf may take to end after it was interrupted; the pod's grace period must be longer.
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    stop_grace: u64,
    /// KiB of AIPerf's output that reach the log from its beginning, and again from its end, per stream.
    #[arg(long, default_value_t = 256, value_name = "KIB")]
    log_limit: usize,
}

/// End of an AIPerf process.
pub struct ProcessEnd {
    pub how: How,
    /// The last lines of its output.
    pub tail: String,
}

pub enum How {
    /// It exited without a signal.
    Exited(i32),
    /// By a signal that did not come from the runner.
    Killed(i32),
    /// Because the runner was sent this signal.
    Cancelled(i32),
    /// Because it took longer than this (s).
    TimedOut(u64),
}

enum ProcessEvent {
    Asked(i32),
    Ended,
}

/// Runs the command to its end; afterwards all of its processes are gone.
pub fn run(command: &[String], limits: &Limits) -> Result<ProcessEnd, Error> {
    process::adopt_orphans()?;
    let (sender, events) = channel();
    listen(sender.clone())?;

    let mut child = spawn(command)?;
    let out = forward(child.stdout.take(), Box::new(io::stdout()), limits.log_limit * 1024);
    let err = forward(child.stderr.take(), Box::new(io::stderr()), limits.log_limit * 1024);
    announce_end(&child, sender);

    let stopped = supervise(&child, &events, limits);
    let how = bury(child, stopped)?;
    Ok(ProcessEnd {
        how,
        tail: tail(out, err),
    })
}

/// Its own process group: its helpers can be killed with it, and a terminal's Ctrl-C reaches the runner alone.
fn spawn(command: &[String]) -> Result<Child, Error> {
    use std::os::unix::process::CommandExt;
    let (program, arguments) = command.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|source| not_started(program, source))
}

/// The image is at fault only if the program cannot be executed: the kernel also refuses a process beyond a limit.
fn not_started(program: &str, source: io::Error) -> Error {
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::EACCES | Errno::ENOEXEC) => Error::NotExecutable {
            program: program.to_owned(),
            source,
        },
        _ => Error::Process {
            what: "start AIPerf",
            source,
        },
    }
}

/// As PID 1 an unhandled SIGTERM is ignored; here every one becomes an event.
fn listen(events: Sender<ProcessEvent>) -> Result<(), Error> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|source| Error::Process {
        what: "listen for signals",
        source,
    })?;
    thread::spawn(move || {
        signals
            .forever()
            .all(|signal| events.send(ProcessEvent::Asked(signal)).is_ok())
    });
    Ok(())
}

fn announce_end(child: &Child, events: Sender<ProcessEvent>) {
    let pid = pid_of(child);
    thread::spawn(move || {
        process::wait_without_reaping(pid);
        let _ = events.send(ProcessEvent::Ended); // no one listens once the runner went without it
    });
}

/// Waits for the end, or for the end of patience after a request to stop. Returns the reason of the request.
fn supervise(child: &Child, events: &Receiver<ProcessEvent>, limits: &Limits) -> Option<How> {
    let pid = pid_of(child);
    let started = Instant::now();
    let mut deadline = (limits.timeout > 0).then(|| started + Duration::from_secs(limits.timeout));
    let mut stopped = None;
    loop {
        let event = match deadline {
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let reason = match event {
            Ok(ProcessEvent::Ended) | Err(RecvTimeoutError::Disconnected) => return stopped,
            // A second interrupt would make AIPerf kill itself without an export.
            Ok(ProcessEvent::Asked(_)) if stopped.is_some() => continue,
            Ok(ProcessEvent::Asked(signal)) => How::Cancelled(signal),
            // An interrupt while it configures itself hangs AIPerf for ever.
            Err(RecvTimeoutError::Timeout) if stopped.is_some() => {
                eprintln!("perfval-runner: AIPerf did not end when interrupted, killing it");
                return stopped;
            }
            Err(RecvTimeoutError::Timeout) => How::TimedOut(limits.timeout),
        };
        // AIPerf writes its export on SIGINT; SIGTERM would end it without one.
        let _ = kill(pid, Signal::SIGINT); // it may just have ended
        stopped = Some(reason);
        deadline = Some(Instant::now() + Duration::from_secs(limits.stop_grace));
    }
}

/// Kills the rest of the group, AIPerf included, and reaps everything.
fn bury(mut child: Child, stopped: Option<How>) -> Result<How, Error> {
    use std::os::unix::process::ExitStatusExt;
    // The leader is not reaped yet, so its group's number cannot have passed to another process.
    let _ = killpg(pid_of(&child), Signal::SIGKILL);
    let status = child.wait().map_err(|source: io::Error| Error::Process {
        what: "wait for AIPerf",
        source,
    })?;
    process::reap_orphans(AFTER_KILL);
    Ok(stopped.unwrap_or_else(|| match (status.code(), status.signal()) {
        (Some(code), _) => How::Exited(code),
        (None, signal) => How::Killed(signal.unwrap_or_default()),
    }))
}

fn tail(out: Forwarded, err: Forwarded) -> String {
    let (out, err) = (out.finish(), err.finish());
    match (out.is_empty(), err.is_empty()) {
        (false, false) => format!("{out} | stderr: {err}"),
        _ => out + &err,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_cannot_be_executed_asks_for_another_image() {
        let code = |errno: Errno| not_started("aiperf", errno.into()).exit_code();
        assert_eq!([Errno::ENOENT, Errno::EACCES, Errno::ENOEXEC].map(code), [127; 3]);
        assert_eq!([Errno::EAGAIN, Errno::ENOMEM].map(code), [1; 2]);
    }
}
