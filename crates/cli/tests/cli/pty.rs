//! A terminal, and the program started in it by a shell: what stands on the screen, and how the terminal was left.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use perfval_testkit::api_server::ApiServer;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use tempfile::NamedTempFile;
use vt100::Parser;

use super::desk::PATIENCE;
use super::socket::{PROGRAM, kubeconfig, leave_surroundings};

const PAUSE: Duration = Duration::from_millis(10);
const ROWS: u16 = 50;
/// Rows that left the screen at its upper end.
const SCROLLED: usize = 200;
/// As a person's shell: it outlives Ctrl-C, and writes what came of the program where the cursor stands then.
const SHELL: &str =
    r#"trap : INT; "$@"; echo "[ended $?]"; echo "[shell]"; while read -r line; do echo "[read $line]"; done"#;

/// A terminal with the program in it.
pub struct Terminal {
    master: File,
    shell: Child,
    seen: Arc<Mutex<Seen>>,
    /// As it was before the program began.
    settings: String,
    _kubeconfig: Option<NamedTempFile>,
}

struct Seen {
    parser: Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Types a command on a terminal with so many columns; `term` is its kind, as `TERM` has it.
    pub fn start(server: &ApiServer, columns: u16, term: &str, words: &str) -> Self {
        let words: Vec<&str> = [PROGRAM].into_iter().chain(words.split_whitespace()).collect();
        Self::open(Some(kubeconfig(server)), columns, term, &words)
    }

    /// The same with any program, and without a kubeconfig on the cluster of the environment.
    pub fn open(kubeconfig: Option<NamedTempFile>, columns: u16, term: &str, words: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it opens");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let name = name.to_str().expect("text").to_owned();
        let line = File::options()
            .read(true)
            .write(true)
            .open(name)
            .expect("its other end");
        tcsetwinsize(&master, winsize(columns)).expect("a size");
        let settings = settings(&tcgetattr(&line).expect("settings"));
        let end = || line.try_clone().expect("the same terminal");
        let mut shell = Command::new("setsid");
        leave_surroundings(&mut shell);
        if let Some(kubeconfig) = &kubeconfig {
            shell.env("KUBECONFIG", kubeconfig.path());
        }
        let shell = shell
            .args(["--ctty", "sh", "-c", SHELL, "sh"])
            .args(words)
            .env("TERM", term)
            .env("LC_ALL", "C.UTF-8")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it starts");
        let master = File::from(master);
        let parser = Parser::new(cells(ROWS), cells(columns), SCROLLED);
        let seen = Arc::new(Mutex::new(Seen {
            parser,
            bytes: Vec::new(),
        }));
        let (mut from, to) = (master.try_clone().expect("the same terminal"), seen.clone());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error, once nobody has the other end open.
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                let mut seen = to.lock().expect("no panic");
                seen.parser.process(&bytes[..count]);
                seen.bytes.extend(&bytes[..count]);
            }
        });
        Self {
            master,
            shell,
            seen,
            settings,
            _kubeconfig: kubeconfig,
        }
    }

    /// Waits until a text stands on the screen, or left it at its upper end.
    pub fn shows(&self, text: &str) {
        let began = Instant::now();
        while !self.text().contains(text) {
            assert!(began.elapsed() < PATIENCE, "no {text:?} in:\n{}", self.text());
            thread::sleep(PAUSE);
        }
    }

    /// Presses keys.
    pub fn types(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("it listens");
    }

    /// Sends a signal to the program.
    pub fn is_sent(&self, signal: &str) {
        let shell = self.shell.id();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).expect("Linux");
        let program = children.split_whitespace().next().expect("the shell has a child");
        let sent = Command::new("kill").args([&format!("-{signal}"), program]).status();
        assert!(sent.expect("kill").success(), "{signal}");
    }

    /// Waits until typed keys are shown, or not.
    pub fn echoes(&self, does: bool) {
        let settings = || tcgetattr(&self.master).expect("settings").local_modes;
        until(&format!("keys are shown: {does}"), || {
            settings().contains(LocalModes::ECHO) == does
        });
    }

    /// Makes the window wider or narrower.
    pub fn resize(&self, columns: u16) {
        tcsetwinsize(&self.master, winsize(columns)).expect("a size");
        let mut seen = self.seen.lock().expect("no panic");
        seen.parser.screen_mut().set_size(cells(ROWS), cells(columns));
    }

    /// Everything that was printed, with what left the screen; a line that the terminal broke is one here.
    pub fn text(&self) -> String {
        let mut seen = self.seen.lock().expect("no panic");
        let screen = seen.parser.screen_mut();
        screen.set_scrollback(usize::MAX);
        let scrolled = screen.scrollback();
        let (_, columns) = screen.size();
        let gone: Vec<String> = (0..scrolled)
            .map(|back| {
                screen.set_scrollback(scrolled - back);
                screen.rows(0, columns.get()).next().unwrap_or_default() + "\n"
            })
            .collect();
        screen.set_scrollback(0);
        gone.concat() + &screen.contents()
    }

    /// Whether a line was longer than the terminal is wide.
    pub fn breaks_a_line(&self) -> bool {
        let seen = self.seen.lock().expect("no panic");
        (0..ROWS).any(|row| seen.parser.screen().row_wrapped(row))
    }

    /// Every byte that came.
    pub fn bytes(&self) -> Vec<u8> {
        self.seen.lock().expect("no panic").bytes.clone()
    }

    /// The exit code, once the program has ended; the terminal must be as it was before.
    pub fn ends(&self) -> u8 {
        self.shows("[shell]");
        let text = self.text();
        let ended = text.lines().find_map(|line| line.strip_prefix("[ended "));
        let ended = ended.unwrap_or_else(|| panic!("the program left the cursor in the middle of a line:\n{text}"));
        let code = ended.trim_end_matches(']').parse().expect("a code");
        let now = settings(&tcgetattr(&self.master).expect("settings"));
        assert_eq!(now, self.settings, "the terminal was left as it was");
        let seen = self.seen.lock().expect("no panic");
        let screen = seen.parser.screen();
        assert!(!screen.hide_cursor(), "the cursor is shown again");
        assert!(!screen.alternate_screen(), "the usual screen is back");
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The shell ends with its line, and the program with the terminal, if a test failed before it did.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Waits until something is so.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(PAUSE);
    }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("some")
}

fn winsize(columns: u16) -> Winsize {
    Winsize {
        ws_row: ROWS,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Raw mode and echo are in these.
fn settings(of: &Termios) -> String {
    format!(
        "{:?} {:?} {:?} {:?}",
        of.input_modes, of.output_modes, of.control_modes, of.local_modes
    )
}
