//! Typed keys while a picture is drawn: their echo would be in it, and Enter would move it.

use std::io::stdout;
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// The terminal as it was, while it is muted: a panic and a signal end the program without dropping anything.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// While this lives, typed keys are not shown. Ctrl-C interrupts as ever.
pub struct Muted(());

impl Muted {
    /// Mutes the terminal of standard output.
    pub fn start() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let say = panic::take_hook();
            panic::set_hook(Box::new(move |why| {
                restore();
                say(why);
            }));
        });
        let muted = Self(());
        muted.again();
        muted
    }

    /// Once more: after Ctrl-Z and `fg` the terminal is as the shell left it.
    pub fn again(&self) {
        // Changing the terminal would stop a program in the background.
        if !in_foreground() {
            return;
        }
        let Ok(mut settings) = tcgetattr(stdout()) else { return };
        before().get_or_insert_with(|| settings.clone());
        let shown = LocalModes::ECHO | LocalModes::ICANON;
        if settings.local_modes.intersects(shown) {
            settings.local_modes.remove(shown);
            // A terminal that refuses shows the typed keys.
            let _ = tcsetattr(stdout(), OptionalActions::Now, &settings);
        }
    }
}

impl Drop for Muted {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal as it was before, if it is muted. Keys typed meanwhile are dropped: they were no answer to a
/// question, and no command for the shell.
pub fn restore() {
    if let Some(settings) = before().take().filter(|_| in_foreground()) {
        let _ = tcsetattr(stdout(), OptionalActions::Flush, &settings);
    }
}

fn in_foreground() -> bool {
    tcgetpgrp(stdout()).is_ok_and(|group| group == getpgrp())
}

fn before() -> MutexGuard<'static, Option<Termios>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}
