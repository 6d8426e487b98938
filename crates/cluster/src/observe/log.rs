use std::time::Duration;

use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::core::ResourceExt as _;
use perfval_run::diagnosis::log::clean;
use perfval_run::observed::LogRequest;
use perfval_run::{Run, names};

use crate::Cluster;
use crate::call::{LOG_PATIENCE, Read, Unread, read};

/// The runner prints its result last, on one line of a megabyte or two. The container runtime cuts lines at 16 KiB, and the
/// kubelet counts the pieces: 512 of them hold 8 MiB.
const TAIL_LINES: i64 = 512;
/// More than the tail can have: the limit counts from the beginning of the tail, so reaching it would lose the result.
const LIMIT_BYTES: i64 = 10 << 20;

/// The cause of a crash is in its last lines: a Python traceback of vLLM has about a hundred.
const LAST_LINES: i64 = 200;
const LAST_BYTES: i64 = 512 << 10;

/// After the last trial a frontend prints little, so that its lines are among these.
const DATED_LINES: i64 = 2_000;
const DATED_BYTES: i64 = 4 << 20;

/// A running trial prints a line of progress every five seconds, and AIPerf little else.
const RECENT_LINES: i64 = 20;
const RECENT_BYTES: i64 = 64 << 10;
/// A pass must not wait for what it can do without.
const RECENT_PATIENCE: Duration = Duration::from_secs(3);
/// Long logs of a run at once: one is read while another is packed.
pub(super) const LOGS_AT_ONCE: usize = 2;

impl Cluster {
    /// The last lines of a running AIPerf container.
    pub(super) async fn recent_log(&self, pod: &Pod) -> Read<String> {
        if !has_run(pod) {
            return Err(Unread::Absent);
        }
        let params = tail(names::AIPERF_CONTAINER, RECENT_LINES, RECENT_BYTES);
        let (namespace, pod) = (pod.namespace().unwrap_or_default(), pod.name_any());
        self.log(&namespace, &pod, &params, RECENT_PATIENCE).await
    }

    /// Result of `make` on the end of the AIPerf container's log. Absent if there is none, because it never ran or
    /// its pod is gone. The log and its parsed form are many times as large as the result, so they have a turn of
    /// their own.
    pub(super) async fn aiperf_log<T>(&self, pod: &Pod, make: impl FnOnce(&str) -> T) -> Read<T> {
        if !has_run(pod) {
            return Err(Unread::Absent);
        }
        let params = tail(names::AIPERF_CONTAINER, TAIL_LINES, LIMIT_BYTES);
        let (namespace, pod) = (pod.namespace().unwrap_or_default(), pod.name_any());
        self.read_log(&namespace, &pod, &params, LOG_PATIENCE, true, |log| make(&log))
            .await
    }

    /// The last lines of a container's log, without colours and secrets.
    pub(super) async fn end_of_log(&self, run: &Run<'_>, of: &LogRequest) -> Read<String> {
        let params = LogParams {
            previous: of.previous,
            ..tail(&of.container, LAST_LINES, LAST_BYTES)
        };
        let log = self.log(run.namespace(), &of.pod, &params, LOG_PATIENCE).await?;
        Ok(clean(run, &log))
    }

    /// Result of `make` on the end of a container's log, each line with its time. The log and its copies have a turn of their own.
    pub(super) async fn dated_log<T>(&self, run: &Run<'_>, of: &LogRequest, make: impl FnOnce(&str) -> T) -> Read<T> {
        let params = LogParams {
            previous: of.previous,
            timestamps: true,
            ..tail(&of.container, DATED_LINES, DATED_BYTES)
        };
        self.read_log(run.namespace(), &of.pod, &params, LOG_PATIENCE, true, |log| make(&log))
            .await
    }

    async fn log(&self, namespace: &str, pod: &str, params: &LogParams, patience: Duration) -> Read<String> {
        self.read_log(namespace, pod, params, patience, false, |log| log).await
    }

    /// Result of `make` on a log that is read within this patience, which includes the wait for a turn if it is long.
    async fn read_log<T>(
        &self,
        namespace: &str,
        pod: &str,
        params: &LogParams,
        patience: Duration,
        is_long: bool,
        make: impl FnOnce(String) -> T,
    ) -> Read<T> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let whole = async {
            let mut log = Box::pin(api.log_stream(pod, params).await?);
            // After the answer, so that a kubelet that is away holds no turn. Cannot fail: the semaphore is never closed.
            let _turn = if is_long {
                self.long_logs.acquire().await.ok()
            } else {
                None
            };
            let mut bytes = Vec::new();
            log.read_to_end(&mut bytes).await.map_err(kube::Error::ReadEvents)?;
            // Not `logs()`: the tail may begin in the middle of a character, which is no reason to lose the result.
            Ok(make(String::from_utf8(bytes).unwrap_or_else(|cut| {
                String::from_utf8_lossy(cut.as_bytes()).into_owned()
            })))
        };
        match self.bounded_by(patience, whole).await {
            // The answer of a kubelet whose container has not begun, or was removed with its log.
            Err(failure) if failure.code() == Some(400) => Err(Unread::Absent),
            answer => read(&format!("get the log of Pod {namespace}/{pod}"), answer),
        }
    }
}

fn tail(container: &str, lines: i64, bytes: i64) -> LogParams {
    LogParams {
        container: Some(container.to_owned()),
        tail_lines: Some(lines),
        limit_bytes: Some(bytes),
        ..LogParams::default()
    }
}

fn has_run(pod: &Pod) -> bool {
    let status = pod.status.iter();
    status
        .flat_map(|status| status.container_statuses.iter().flatten())
        .filter(|status| status.name == names::AIPERF_CONTAINER)
        .filter_map(|status| status.state.as_ref())
        .any(|state| state.running.is_some() || state.terminated.is_some())
}
