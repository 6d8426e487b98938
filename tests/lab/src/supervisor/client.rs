//! The commands' side of the supervisor's socket.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use super::report::{Phase, Reply, Report, Request};
use crate::error::Error;
use crate::paths::StateDir;

/// The state of the lab, or `None` if no supervisor answers.
pub fn status(state: &StateDir) -> Result<Option<Report>, Error> {
    let Ok(stream) = UnixStream::connect(state.socket()) else {
        return Ok(None);
    };
    match replies(stream, &Request::Status)?.next() {
        Some(Ok(Reply::Report(report))) => Ok(Some(report)),
        other => Err(unexpected(other)),
    }
}

/// Follows a lab until it is up; `say` hears each new step.
pub fn follow(state: &StateDir, mut say: impl FnMut(&str)) -> Result<Report, Error> {
    let mut last = String::new();
    for reply in replies(connect(state)?, &Request::Follow)? {
        let Reply::Report(report) = reply? else { continue };
        match &report.phase {
            Phase::Starting(step) if *step != last => {
                say(step);
                last.clone_from(step);
            }
            Phase::Starting(_) => {}
            Phase::Up => return Ok(report),
            Phase::Failed(_) => return Err(Error::DidNotComeUp(report.to_string())),
        }
    }
    Err(Error::DidNotComeUp(
        "the supervisor vanished (see `lab logs supervisor`)".to_owned(),
    ))
}

/// Ends a process; returns when it has ended.
pub fn stop(state: &StateDir, process: &str) -> Result<(), Error> {
    request(state, &Request::Stop(process.to_owned()))
}

/// Ends a process without giving it time for anything; returns when it has ended.
pub fn kill(state: &StateDir, process: &str) -> Result<(), Error> {
    request(state, &Request::Kill(process.to_owned()))
}

/// Starts a process that was stopped or died.
pub fn start(state: &StateDir, process: &str) -> Result<(), Error> {
    request(state, &Request::Start(process.to_owned()))
}

fn request(state: &StateDir, request: &Request) -> Result<(), Error> {
    match replies(connect(state)?, request)?.next() {
        Some(Ok(Reply::Done)) => Ok(()),
        Some(Ok(Reply::Refused(reason))) => Err(Error::Supervisor(reason)),
        other => Err(unexpected(other)),
    }
}

fn connect(state: &StateDir) -> Result<UnixStream, Error> {
    UnixStream::connect(state.socket()).map_err(|_| Error::NotUp)
}

fn replies(mut stream: UnixStream, request: &Request) -> Result<impl Iterator<Item = Result<Reply, Error>>, Error> {
    let broken = |error: std::io::Error| Error::Supervisor(error.to_string());
    let mut line = serde_json::to_string(request).map_err(|source| Error::Json {
        what: "a request to the supervisor".to_owned(),
        source,
    })?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(broken)?;
    Ok(BufReader::new(stream).lines().map(move |line| {
        let line = line.map_err(broken)?;
        serde_json::from_str(&line).map_err(|source| Error::Json {
            what: "the supervisor's reply".to_owned(),
            source,
        })
    }))
}

fn unexpected(reply: Option<Result<Reply, Error>>) -> Error {
    match reply {
        Some(Err(error)) => error,
        Some(Ok(reply)) => Error::Supervisor(format!("unexpected reply {reply:?}")),
        None => Error::Supervisor("no reply".to_owned()),
    }
}
