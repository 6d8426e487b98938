//! A headless Chromium, spoken to in its `DevTools` protocol over two pipes: no port, no driver program.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for an answer.
const LIMIT: Duration = Duration::from_mins(1);

/// A browser with one page.
pub struct Chromium {
    process: Child,
    /// Its folders; removed with it.
    _folder: TempDir,
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    next: i64,
    /// Everything that it reported by itself.
    pub events: Vec<Value>,
}

impl Chromium {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = |name: &str| {
            let path = folder.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
            path
        };
        let (commands, answers) = (pipe("commands"), pipe("answers"));
        // The shell opens the pipes as the two descriptors on which the browser speaks.
        let script = "exec chromium --headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe \
                      --user-data-dir=\"$0\" about:blank 3<\"$1\" 4>\"$2\"";
        let process = Command::new("bash")
            .args(["-c", script])
            .args([&folder.path().join("profile"), &commands, &answers])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash");
        let to = File::options().write(true).open(&commands).expect("a pipe");
        let from = File::open(&answers).expect("a pipe");
        let (send, received) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0).map_while(Result::ok) {
                let read = serde_json::from_slice(&message).expect("JSON");
                if send.send(read).is_err() {
                    return;
                }
            }
        });
        let mut chromium = Self {
            process,
            _folder: folder,
            to,
            from: received,
            session: None,
            next: 0,
            events: Vec::new(),
        };
        let target = chromium.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = chromium.call("Target.attachToTarget", &attach);
        chromium.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            chromium.call(&format!("{domain}.enable"), &json!({}));
        }
        // They would take room from a narrow page, which those of a phone do not.
        chromium.call("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
        chromium
    }

    /// One command and its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("the browser listens");
        let deadline = Instant::now() + LIMIT;
        loop {
            let answer = self.receive(deadline, method);
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn receive(&self, deadline: Instant, what: &str) -> Value {
        let left = deadline.saturating_duration_since(Instant::now());
        self.from
            .recv_timeout(left)
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Opens a file and waits until it is loaded.
    pub fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": format!("file://{}", path.display())}));
        let deadline = Instant::now() + LIMIT;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive(deadline, "loading");
            self.events.push(event);
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let result = self.call(
            "Runtime.evaluate",
            &json!({"expression": expression, "returnByValue": true}),
        );
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Light or dark, screen or paper, so wide.
    pub fn show(&mut self, scheme: &str, media: &str, width: i64) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call(
            "Emulation.setEmulatedMedia",
            &json!({"media": media, "features": features}),
        );
        let size = json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
