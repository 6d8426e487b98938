//! The API server in memory behind a real socket: for the program itself.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;

use axum::body::{Body as Answer, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::{Router, serve};
use kube::client::Body;
use perfval_testkit::api_server::ApiServer;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use super::answer;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-perfval");

/// Serves until the process ends, and says how to get there.
pub fn kubeconfig(server: &ApiServer) -> NamedTempFile {
    let (tell, told) = mpsc::channel();
    let server = server.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("it waits");
            let service = Router::new().fallback(pass_on).with_state(server.client());
            serve(listener, service).await.expect("it serves");
        });
    });
    of_address(told.recv().expect("it serves"))
}

async fn pass_on(State(client): State<kube::Client>, request: Request<Answer>) -> Response<Answer> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    match client.send(Request::from_parts(head, Body::from(body))).await {
        Ok(answer) => answer.map(Answer::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Address at which no server listens: the port of the discard protocol. A port that the system gives may get a server.
pub fn closed() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9))
}

/// Removes the variables that lead a program to another cluster than its kubeconfig does.
pub fn leave_surroundings(command: &mut Command) {
    for name in ["KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy"] {
        command.env_remove(name);
    }
}

/// The program at a path, with a kubeconfig.
pub fn program(path: &str, words: &str, kubeconfig: &Path) -> Command {
    let mut command = Command::new(path);
    command.args(words.split(' ')).env("KUBECONFIG", kubeconfig);
    leave_surroundings(&mut command);
    command
}

/// Runs the program with a kubeconfig, and nothing on its standard input.
pub fn typed(words: &str, kubeconfig: &Path) -> answer::Answer {
    answer::Answer::run(&mut program(PROGRAM, words, kubeconfig), "")
}

/// A kubeconfig whose only context is this server, namespace `perf`.
pub fn of_address(address: SocketAddr) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a file");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]\nusers: [{{name: u, user: {{}}}}]\ncontexts: [{{name: a, context: {{cluster: c, user: u, namespace: perf}}}}]\n"
    );
    std::fs::write(file.path(), text).expect("written");
    file
}
