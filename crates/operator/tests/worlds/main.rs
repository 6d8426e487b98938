//! Worlds in which the operator is stopped, disturbed and used in every way: whole runs on an API server in memory, with
//! everything that works next to the operator, in a time that jumps.

mod clocks;
mod costs;
mod crashes;
mod faults;
mod laws;
mod leaders;
mod parallel;
mod random;
mod rig;
mod scenario;
mod strangers;
mod strays;
mod unread;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

use perfval_testkit::api_server::Made;
use rig::Rig;
use scenario::{Ending, Scenario};

/// Whole worlds are cloned all the time: with it they are played in half the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Whether everything is played, and not a sample of it (`just worlds`).
fn in_full() -> bool {
    std::env::var_os("PERFVAL_WORLDS").is_some()
}

/// What is played of what is too much for each time. A sample is always the same, so that a change is judged by what it
/// changed; in full other worlds are played each time.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let told = std::env::var("PERFVAL_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        told.unwrap_or(if in_full() { now } else { 0 })
    })
}

/// The command that plays the same again.
fn replay() -> String {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let all = std::env::var("PERFVAL_WORLDS").map_or(String::new(), |count| format!("PERFVAL_WORLDS={count} "));
    format!(
        "the same again: PERFVAL_SEED={} {all}cargo test -p perfval-operator --test worlds {test}",
        seed()
    )
}

/// As many of many cases as a quick check plays, evenly spread.
fn sample<T: Clone>(all: &[T], quick: usize) -> Vec<T> {
    if in_full() {
        return all.to_vec();
    }
    let mut every = all.len().div_ceil(quick).max(1);
    // Cases come in groups of four and of nine: from step to step it is another one of its group.
    while every > 1 && (every.is_multiple_of(2) || every.is_multiple_of(3)) {
        every += 1;
    }
    let first = usize::try_from(seed()).unwrap_or_default() % every.min(all.len().max(1));
    all.iter().skip(first).step_by(every).cloned().collect()
}

/// Runs a future in a time of its own.
fn timeless<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.expect("a runtime").block_on(future)
}

/// Plays a scenario in a world that was prepared; the calls that were made come with its end.
fn play(scenario: &Scenario, prepare: impl FnOnce(&mut Rig)) -> Result<(Vec<Made>, Ending), String> {
    timeless(async {
        let mut rig = scenario.rig();
        prepare(&mut rig);
        let (rig, ending) = scenario.play(rig).await?;
        laws::always(&rig)?;
        scenario.ends_well(&rig, &ending)?;
        Ok((rig.wire.made(), ending))
    })
}

/// Does something with each, on all cores; shows the first few that went wrong.
fn each<T: Sync>(all: &[T], does: impl Fn(&T) -> Result<(), String> + Sync) {
    let began = std::time::Instant::now();
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = does(one) {
                wrong.push(why);
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("it does not panic"))
            .collect()
    });
    eprintln!("{} worlds in {:.1} s", all.len(), began.elapsed().as_secs_f64());
    let first: Vec<_> = wrong.iter().take(5).cloned().collect();
    assert!(
        wrong.is_empty(),
        "{} of {} went wrong:\n\n{}\n\n{}",
        wrong.len(),
        all.len(),
        first.join("\n\n"),
        replay()
    );
}
