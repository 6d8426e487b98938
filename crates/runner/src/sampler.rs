use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use perfval_verdict::workers::{Sample, Scrape, WorkerSeries};

use crate::scrape::Scraper;

/// More workers than any node has GPUs; a wrong name must not start threads without end.
const WORKERS: usize = 64;

/// Distinct error texts that are kept.
const ERRORS: usize = 8;

/// Samples every worker behind a headless Service once a second, until it is stopped.
pub struct Sampler(Arc<SharedSampler>);

/// Samples of all workers.
#[derive(Default)]
pub struct WorkerSamples {
    /// One per address, in order of the address.
    pub series: Vec<WorkerSeries>,
    /// Reasons of failed scrapes, with their counts.
    pub errors: BTreeMap<String, i64>,
}

struct SharedSampler {
    port: u16,
    started: Instant,
    state: Mutex<SamplerState>,
    stop: Condvar,
}

#[derive(Default)]
struct SamplerState {
    stopped: bool,
    series: BTreeMap<IpAddr, WorkerSeries>,
    errors: BTreeMap<String, i64>,
    scrapers: Vec<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling; each name is looked up again every second, because workers may come later than the runner.
    pub fn start(hosts: &[String], port: u16) -> Self {
        let shared = Arc::new(SharedSampler {
            port,
            started: Instant::now(),
            state: Mutex::default(),
            stop: Condvar::new(),
        });
        for host in hosts {
            let (shared, host) = (shared.clone(), host.clone());
            // Not joined: the resolver has time-outs of its own, longer than a finished run should wait.
            thread::spawn(move || every_second(&shared, |_| shared.look_up(&host)));
        }
        Self(shared)
    }

    /// Stops, and waits for scrapes under way.
    pub fn stop(self) -> WorkerSamples {
        let scrapers = {
            let mut state = self.0.state();
            state.stopped = true;
            self.0.stop.notify_all();
            std::mem::take(&mut state.scrapers)
        };
        for scraper in scrapers {
            let _ = scraper.join(); // one that panicked left its samples
        }
        let mut state = self.0.state();
        WorkerSamples {
            series: std::mem::take(&mut state.series).into_values().collect(),
            errors: std::mem::take(&mut state.errors),
        }
    }
}

impl SharedSampler {
    /// Full seconds since the start.
    fn second(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_secs()).unwrap_or(i64::MAX)
    }

    fn state(&self) -> MutexGuard<'_, SamplerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a scraper for each new address. A scraper continues after its address vanishes: a worker that is not
    /// ready any more is the most interesting.
    fn look_up(self: &Arc<Self>, host: &str) {
        let addresses = match addresses(host, self.port) {
            Ok(addresses) => addresses,
            Err(error) => return self.state().count_error(&format!("{host}: {error}")),
        };
        let mut state = self.state();
        for address in addresses {
            if state.stopped || state.series.len() >= WORKERS || state.series.contains_key(&address) {
                continue;
            }
            let series = WorkerSeries {
                address: address.to_string(),
                ..WorkerSeries::default()
            };
            state.series.insert(address, series);
            let shared = self.clone();
            let scraper = Scraper::new(address, self.port);
            let sampling = move || every_second(&shared, |second| shared.sample(address, &scraper, second));
            state.scrapers.push(thread::spawn(sampling));
        }
    }

    fn sample(&self, address: IpAddr, scraper: &Scraper, asked: i64) {
        let answer = scraper.scrape();
        // A busy worker writes its page late, so the page belongs to the second in which it arrived.
        let second = self.second();
        let mut state = self.state();
        if let Err(error) = &answer {
            state.count_error(&format!("{address}: {error}"));
        }
        let Some(series) = state.series.get_mut(&address) else {
            return;
        };
        match answer {
            Ok(found) => {
                series.worker_id = found.worker_id;
                series.samples.push(Sample(second, Scrape::Reading(found.reading)));
            }
            // Each second of waiting was one without an answer.
            Err(error) => (asked..second.max(asked + 1))
                .for_each(|second| series.samples.push(Sample(second, Scrape::Nothing(error.silence())))),
        }
    }
}

impl SamplerState {
    fn count_error(&mut self, text: &str) {
        let text: String = text.chars().take(160).collect();
        if self.errors.len() < ERRORS || self.errors.contains_key(&text) {
            *self.errors.entry(text).or_default() += 1;
        }
    }
}

/// Does something at every full second until the sampler is stopped; a second in which it was still under way is left out.
fn every_second(shared: &SharedSampler, mut action: impl FnMut(i64)) {
    loop {
        action(shared.second());
        let next = shared.started + Duration::from_secs(shared.started.elapsed().as_secs() + 1);
        let state = shared.state();
        let wait = next.saturating_duration_since(Instant::now());
        let woken = shared.stop.wait_timeout_while(state, wait, |state| !state.stopped);
        if woken.unwrap_or_else(PoisonError::into_inner).0.stopped {
            return;
        }
    }
}

/// Every address of a name. A dual-stack Service lists a pod once per family; one family is enough to see each once.
fn addresses(host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    let all: Vec<IpAddr> = (host, port).to_socket_addrs()?.map(|a| a.ip()).collect();
    let v4: Vec<IpAddr> = all.iter().copied().filter(IpAddr::is_ipv4).collect();
    Ok(if v4.is_empty() { all } else { v4 })
}
