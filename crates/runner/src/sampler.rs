use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use perfval_verdict::workers::{MOST_PER_NODE, Sample, Scrape, WorkerSeries};

use crate::scrape::Scraper;
use crate::ticker::{Ticker, seconds_since};

/// Distinct error texts that are kept.
const ERRORS: usize = 8;

/// Samples every worker behind a headless Service once a second, until it is stopped.
pub struct Sampler {
    shared: Arc<SharedSampler>,
    look_ups: Vec<Ticker<()>>,
}

struct SharedSampler {
    port: u16,
    started: Instant,
    state: Mutex<SamplerState>,
}

#[derive(Default)]
struct SamplerState {
    stopped: bool,
    series: BTreeMap<IpAddr, WorkerSeries>,
    errors: BTreeMap<String, i64>,
    scrapers: Vec<Ticker<()>>,
}

impl Sampler {
    /// Starts sampling; each name is looked up again every second, because workers may come later than the runner.
    pub fn start(hosts: &[String], port: u16) -> Self {
        let shared = Arc::new(SharedSampler {
            port,
            started: Instant::now(),
            state: Mutex::default(),
        });
        let look_up = |host: &String| {
            let (looking, host) = (shared.clone(), host.clone());
            Ticker::start(shared.started, (), move |(), _| looking.look_up(&host))
        };
        Self {
            look_ups: hosts.iter().map(look_up).collect(),
            shared,
        }
    }

    /// Stops, and waits for scrapes under way. Returns the samples of each worker in order of the addresses, and the reasons of
    /// failed scrapes with their counts.
    pub fn stop(self) -> (Vec<WorkerSeries>, BTreeMap<String, i64>) {
        // Not joined: the resolver has time-outs of its own, longer than a finished run should wait.
        drop(self.look_ups);
        let scrapers = {
            let mut state = self.shared.state();
            state.stopped = true;
            std::mem::take(&mut state.scrapers)
        };
        // All of them stop before the first is waited for.
        let scrapers: Vec<JoinHandle<()>> = scrapers.into_iter().map(Ticker::ask_to_stop).collect();
        for scraper in scrapers {
            let _ = scraper.join(); // one that panicked left its samples
        }
        let mut state = self.shared.state();
        let series = std::mem::take(&mut state.series).into_values().collect();
        (series, std::mem::take(&mut state.errors))
    }
}

impl SharedSampler {
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
            // A wrong name must not start threads without end.
            let full = state.series.len() >= MOST_PER_NODE;
            if state.stopped || full || state.series.contains_key(&address) {
                continue;
            }
            let series = WorkerSeries {
                address: address.to_string(),
                ..WorkerSeries::default()
            };
            state.series.insert(address, series);
            let shared = self.clone();
            let scraper = Scraper::new(address, self.port);
            state.scrapers.push(Ticker::start(self.started, (), move |(), second| {
                shared.sample(address, &scraper, second);
            }));
        }
    }

    fn sample(&self, address: IpAddr, scraper: &Scraper, asked: i64) {
        let answer = scraper.scrape();
        // A busy worker writes its page late, so the page belongs to the second in which it arrived.
        let second = seconds_since(self.started);
        let mut state = self.state();
        if let Err(error) = &answer {
            state.count_error(&format!("{address}: {error}"));
        }
        let Some(series) = state.series.get_mut(&address) else {
            return;
        };
        match answer {
            Ok(reading) => series.samples.push(Sample(second, Scrape::Reading(reading))),
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

/// Every address of a name. A dual-stack Service lists a pod once per family; one family is enough to see each once.
fn addresses(host: &str, port: u16) -> io::Result<Vec<IpAddr>> {
    let all: Vec<IpAddr> = (host, port).to_socket_addrs()?.map(|a| a.ip()).collect();
    let v4: Vec<IpAddr> = all.iter().copied().filter(IpAddr::is_ipv4).collect();
    Ok(if v4.is_empty() { all } else { v4 })
}
