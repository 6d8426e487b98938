use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Thread that does something at every full second, until it is stopped or dropped. A second in which it was still under way is left
/// out.
pub struct Ticker<T> {
    stop: Sender<()>,
    thread: JoinHandle<T>,
}

impl<T: Default + Send + 'static> Ticker<T> {
    /// Starts the thread with a state. `action` is given the full seconds since `started`.
    pub fn start(started: Instant, mut state: T, action: impl Fn(&mut T, i64) + Send + 'static) -> Self {
        let (stop, stopped) = channel();
        let thread = thread::spawn(move || {
            loop {
                action(&mut state, seconds_since(started));
                let next = started + Duration::from_secs(started.elapsed().as_secs() + 1);
                let wait = next.saturating_duration_since(Instant::now());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return state;
                }
            }
        });
        Self { stop, thread }
    }

    /// Asks the thread to stop.
    pub fn ask_to_stop(self) -> JoinHandle<T> {
        drop(self.stop);
        self.thread
    }

    /// Stops, waits for an action under way, and returns the state.
    pub fn stop(self) -> T {
        // A thread that panicked leaves no state, which is no evidence of anything.
        self.ask_to_stop().join().unwrap_or_default()
    }
}

/// Full seconds since the start.
pub fn seconds_since(started: Instant) -> i64 {
    i64::try_from(started.elapsed().as_secs()).unwrap_or(i64::MAX)
}
