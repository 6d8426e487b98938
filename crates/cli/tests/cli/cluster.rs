//! Which cluster, as whom: the flags of kubectl, and what the tab key offers.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::thread;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::desk::{Desk, stored};
use super::pty::until;
use super::socket::{PROGRAM, closed, kubeconfig, of_address, program, typed};

const NOTHING: &str =
    r#"{"apiVersion":"perfvalidation.dev/v1alpha1","kind":"PerfValidationList","metadata":{},"items":[]}"#;

/// The context's cluster does not answer and its user is nobody; there is another of both.
fn with_another(address: SocketAddr) -> NamedTempFile {
    let file = of_address(closed());
    let text = std::fs::read_to_string(file.path()).expect("written");
    let text = text.replace(
        "clusters: [",
        &format!("clusters: [{{name: other, cluster: {{server: \"http://{address}\"}}}}, "),
    );
    let text = text.replace("users: [", "users: [{name: robot, user: {token: t-robot}}, ");
    std::fs::write(file.path(), text).expect("written");
    file
}

#[test]
fn cluster_user_and_whom_to_impersonate_are_chosen_as_with_kubectl() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let file = with_another(listener.local_addr().expect("an address"));
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("it asks");
        let mut heard = Vec::new();
        let mut bytes = [0; 1024];
        while !heard.ends_with(b"\r\n\r\n") {
            let count = connection.read(&mut bytes).expect("a request");
            heard.extend(&bytes[..count]);
        }
        let length = NOTHING.len();
        let status = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
        connection.write_all((status + NOTHING).as_bytes()).expect("it listens");
        String::from_utf8(heard).expect("text").to_ascii_lowercase()
    });
    let words = "get --cluster other --user robot --as jane --as-group devs --as-group ops -n team";
    let answer = typed(words, file.path());
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(answer.err, "No PerfValidations in namespace team.\n");
    let heard = server.join().expect("no panic");
    for part in [
        "/namespaces/team/perfvalidations",
        "\r\nauthorization: bearer t-robot\r\n",
        "\r\nimpersonate-user: jane\r\n",
        "\r\nimpersonate-group: devs\r\n",
        "\r\nimpersonate-group: ops\r\n",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
}

#[test]
fn an_unusable_cluster_user_or_group_is_reported() {
    let file = with_another(closed());
    for (words, code, said) in [
        ("get --cluster no", 4, "no cluster is configured"),
        ("get --user no", 4, "the kubeconfig has no user no"),
        ("get --as-group ops", 2, "--as-group needs --as"),
    ] {
        typed(words, file.path()).exits(code, said);
    }
}

#[test]
fn a_broken_kubeconfig_shows_its_line_and_no_token() {
    let file = of_address(closed());
    let text = "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    token: t-secret\n   bad: [x\n";
    std::fs::write(file.path(), text).expect("written");
    for words in ["get".to_owned(), format!("get --kubeconfig {}", file.path().display())] {
        let answer = typed(&words, file.path());
        answer.exits(4, "the kubeconfig cannot be read: ");
        answer.notes(" at line ");
        assert!(!answer.err.contains("t-secret"), "{answer:?}");
        assert_eq!(answer.err.lines().count(), 1, "{answer:?}");
    }
}

#[test]
fn the_output_of_a_credential_plugin_stays_secret() {
    let file = of_address(closed());
    for (script, words) in [
        ("echo t-secret", "the output of the credential plugin cannot be read: "),
        (
            "echo t-secret; echo no login >&2; exit 3",
            "the credential plugin failed (exit status: 3): no login",
        ),
    ] {
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "interactiveMode": "Never"});
        let mut config: Value =
            serde_saphyr::from_str(&std::fs::read_to_string(file.path()).expect("there")).expect("YAML");
        config["users"] = json!([{"name": config["contexts"][0]["context"]["user"], "user": {"exec": exec}}]);
        std::fs::write(file.path(), config.to_string()).expect("written");
        let answer = typed("get", file.path());
        answer.exits(4, words);
        assert!(!answer.err.contains("t-secret"), "{answer:?}");
    }
}

#[test]
fn a_kubeconfig_that_the_http_library_refuses_is_explained_without_its_secrets() {
    let file = of_address(closed());
    let text = std::fs::read_to_string(file.path()).expect("written");
    let api_version = "client.authentication.k8s.io/v1";
    let credential = json!({"apiVersion": api_version, "kind": "ExecCredential", "status": {"token": "t-secret\nx"}});
    let exec = json!({"apiVersion": api_version, "command": "printf", "args": ["%s", credential.to_string()],
        "interactiveMode": "Never"});
    let token = NamedTempFile::new().expect("a file");
    std::fs::write(token.path(), "t-secret\u{7}").expect("written");
    let user = |user: Value| format!("user: {user}");
    let control = "the user's token has a line break or another control character: log in again";
    for (before, after, words) in [
        ("user: {}", user(json!({"token": "t-secret\u{7}"})), control),
        ("user: {}", user(json!({"tokenFile": token.path()})), control),
        ("user: {}", user(json!({"exec": exec})), control),
        (
            "http://",
            String::new(),
            "the server in the kubeconfig has no scheme: write https:// before it",
        ),
        (
            "{server:",
            "{proxy-url: \"http://me:t-secret@127.0.0.1:1\", server:".to_owned(),
            "this program cannot use a proxy: unset HTTPS_PROXY",
        ),
    ] {
        assert!(text.contains(before), "{text}");
        std::fs::write(file.path(), text.replace(before, &after)).expect("written");
        let answer = typed("get", file.path());
        answer.exits(4, words);
        assert!(!answer.err.contains("t-secret"), "{after}: {answer:?}");
        assert_eq!(answer.err.lines().count(), 1, "{answer:?}");
    }
}

#[test]
fn the_context_fills_empty_flags() {
    let desk = Desk::with("passed");
    let file = kubeconfig(&desk.server);
    let words = "get -o name -n  --context  --cluster  --user  --as ";
    let answer = typed(words, file.path());
    assert_eq!(answer.out, "perfvalidation.perfvalidation.dev/run\n", "{answer:?}");
}

#[test]
fn the_tab_key_offers_names_and_prints_no_error_without_a_cluster() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("kubectl_complete-perfval");
    symlink(PROGRAM, &asked).expect("a link");
    let asked = asked.to_str().expect("text");
    let desk = Desk::with("passed");
    // One that cannot be parsed has a name too.
    let mut unreadable = stored("passed");
    unreadable["metadata"]["name"] = "rotten".into();
    unreadable["status"]["verdict"] = "Splendid".into();
    desk.server.put(unreadable);
    let there = kubeconfig(&desk.server);
    let away = of_address(closed());
    for (kubeconfig, offered) in [(&there, "rotten\nrun\n:4\n"), (&away, ":4\n")] {
        // On a busy machine an answer may come later than the tab key waits.
        until(&format!("it offers {offered:?}"), || {
            let output = program(asked, "describe r", kubeconfig.path())
                .output()
                .expect("it starts");
            assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
            output.stdout == offered.as_bytes()
        });
    }
}
