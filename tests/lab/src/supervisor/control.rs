//! The supervisor's side of its socket.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};

use super::process::Processes;
use super::report::{Phase, Reply, Request};

/// Answers every connection until the process ends.
pub async fn serve(listener: UnixListener, processes: Arc<Processes>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let processes = Arc::clone(&processes);
                tokio::spawn(async move {
                    // A client that went away is no concern of the others.
                    if let Err(error) = answer(stream, processes).await {
                        eprintln!("control connection: {error}");
                    }
                });
            }
            Err(error) => eprintln!("control socket: {error}"),
        }
    }
}

async fn answer(stream: UnixStream, processes: Arc<Processes>) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).await?;
    let outcome = match serde_json::from_str(&line) {
        Ok(Request::Status) => {
            let report = processes.reports().borrow().clone();
            return send(&mut writer, &Reply::Report(report)).await;
        }
        Ok(Request::Follow) => return follow(&mut writer, &processes).await,
        Ok(Request::Stop(name)) => processes.stop(&name).await,
        Ok(Request::Kill(name)) => processes.kill(&name).await,
        Ok(Request::Start(name)) => processes.start(&name),
        Err(error) => Err(format!("not a request: {error}")),
    };
    send(&mut writer, &outcome.map_or_else(Reply::Refused, |()| Reply::Done)).await
}

async fn follow(writer: &mut OwnedWriteHalf, processes: &Processes) -> std::io::Result<()> {
    let mut reports = processes.reports();
    loop {
        let report = reports.borrow_and_update().clone();
        let starting = matches!(report.phase, Phase::Starting(_));
        send(writer, &Reply::Report(report)).await?;
        if !starting || reports.changed().await.is_err() {
            return Ok(());
        }
    }
}

async fn send(writer: &mut OwnedWriteHalf, reply: &Reply) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    writer.write_all(&line).await
}
