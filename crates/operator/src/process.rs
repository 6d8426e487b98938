//! `run`: clients, lease, controllers, HTTP; and the order in which they end.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::join;
use kube::{Client, Config};
use perfval_cluster::{Cluster, Wakeups};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};

use crate::boundary::{Panicked, catch};
use crate::calls::Counting;
use crate::cli::{FrontendAccess, RunArgs, in_pod, own_namespace};
use crate::clients::Clients;
use crate::context::Context;
use crate::error::Error;
use crate::fence::Fence;
use crate::fleet;
use crate::health::{self, Health};
use crate::leader::Candidate;
use crate::listen::listen;
use crate::metrics::OperatorMetrics;
use crate::objects::{self, WatchScope};
use crate::planner;
use crate::rbac::{Duties, Right};
use crate::rights::Rights;
use crate::secure_metrics::{self, Readers};
use crate::server_clock::ServerClock;
use crate::suspects::Suspects;
use crate::{clients, logging, shutdown, streams, sweeper, version};

/// Reconciles until a signal stops it; an error is a reason to start the process again.
pub async fn run(args: RunArgs) -> Result<(), Error> {
    logging::start(args.log_format, &args.log)?;
    logging::report_panics();
    let stop = shutdown::on_signal()?;
    let config = Config::infer().await.map_err(Error::Kubeconfig)?;
    info!(version = version::VERSION, revision = version::REVISION, server = %config.cluster_url, "starting");
    let namespace = args
        .leader_elect_namespace
        .clone()
        .unwrap_or_else(|| config.default_namespace.clone());
    let settings = args.settings(own_namespace(&config).as_deref());
    let (metrics, rights) = (Arc::new(OperatorMetrics::new(args.object_metrics)), Rights::default());
    let counting = Counting::new(metrics.clone(), rights.clone());
    let clock = ServerClock::new(Arc::new(chrono::Utc::now));
    let unfenced = clients::unfenced(config.clone(), &counting, &clock)?;
    let suspects = Suspects::new(args.in_flight_file.as_deref());
    let candidate = args.leader_elect.then(|| {
        let lease = &args.leader_elect_name;
        Candidate::new(unfenced.clone(), &namespace, lease, identity(&args)).with_suspects(suspects.clone())
    });
    let fence = Fence::new(candidate.as_ref().map(Candidate::tenure));
    let clients = Clients::new(config, clients::SILENCE, &counting, &fence, &clock)?;

    let (objects, scopes) = objects::watched(args.scopes());
    let health = Health::new(metrics, objects, rights);
    let end = CancellationToken::new();
    let readers = Readers::new(unfenced.clone());
    let served = tokio::spawn(serve(&args, health.clone(), readers, end.clone()).await?);
    let duties = Duties {
        namespaces: args.scopes(),
        lease: args.leader_elect.then(|| namespace.clone()),
        outside: endpoint_access(&args) == perfval_cluster::EndpointAccess::ServiceProxy,
    };
    let mut needed = duties.rights();
    if args.secure_metrics_addr.is_some() {
        needed.extend(secure_metrics::rights());
    }
    tokio::spawn(
        end.clone()
            .run_until_cancelled_owned(look_after_rights(&health, unfenced, needed)),
    );

    let (patient, impatient) = (clients.patient, clients.impatient);
    let (cluster, answers) = Cluster::new(patient, impatient, endpoint_access(&args), identity(&args));
    let cluster = cluster.with_clock(clock.clock());
    let shared = health.clone();
    let context = Context::new(cluster, settings, shared.metrics, shared.objects, shared.rights);
    let context = Arc::new(context.with_suspects(suspects));
    let work = work(
        args.workers,
        clients.watching,
        context,
        answers,
        health,
        scopes,
        stop.clone(),
    );
    // This thread is left to the lease: a plan for 2,000 objects on 2,000 nodes once kept it for 25 s, and the leader ended.
    let work = Box::pin(elsewhere(work));
    let result = if let Some(candidate) = candidate {
        lead(candidate, work, &stop).await
    } else {
        work.await
    };
    end.cancel();
    // The last scrapes: they must not hold up the end.
    let _ = timeout(Duration::from_secs(1), served).await;
    info!("stopped");
    result
}

/// Works for as long as this process holds the lease. The lease is given back last, after all writes of this process.
pub async fn lead(
    mut candidate: Candidate,
    work: impl Future<Output = Result<(), Error>>,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let acquired = stop.run_until_cancelled(candidate.acquire()).await;
    if acquired.is_none() {
        // The signal may have come between the write of the record and its answer.
        candidate.release().await;
        return Ok(());
    }
    let worked = tokio::select! {
        worked = work => worked,
        lost = candidate.keep() => return Err(lost),
    };
    candidate.release().await;
    worked
}

/// Does the work on another thread. It ends with this future.
async fn elsewhere(work: impl Future<Output = ()> + Send + 'static) -> Result<(), Error> {
    let worked = AbortOnDropHandle::new(tokio::spawn(work)).await;
    worked.map_err(Error::WorkPanicked)
}

/// The controllers of all scopes, until they have drained.
async fn work(
    workers: u16,
    watching: Client,
    context: Arc<Context>,
    answers: Wakeups,
    health: Health,
    scopes: Vec<WatchScope>,
    stop: CancellationToken,
) {
    let nodes = Box::pin(fleet::work_until(context.clone(), watching.clone(), stop.clone()));
    let controllers = join_all(
        scopes
            .into_iter()
            .map(|scope| streams::reconcile_all(scope, watching.clone(), context.clone(), workers, stop.clone())),
    );
    let woken = async {
        context.objects.wake_from(answers).await;
        std::future::pending::<()>().await;
    };
    // On the heap: a plan holds the whole cluster in its hands.
    let planned = Box::pin(planner::plan_until(context.clone(), stop.clone()));
    // It delays no other work: the next leader may do the rest.
    let swept = async {
        if let Err(Panicked(said)) = catch(sweeper::sweep_until(context.clone(), stop.clone())).await {
            error!(said, "the search for strays panicked; the next leader goes on with it");
        }
    };
    let last = CancellationToken::new();
    let published = context.publish_until(last.clone());
    let decided = async {
        join!(controllers, planned, swept, nodes);
        last.cancel();
    };
    let worked = async {
        join!(decided, published);
    };
    health.leads();
    let drained = async {
        stop.cancelled().await;
        tokio::time::sleep(shutdown::DRAIN).await;
        warn!(limit = ?shutdown::DRAIN, "passes still run; leaving them: each of their steps can be repeated");
    };
    tokio::select! {
        () = worked => {}
        () = woken => {}
        () = drained => {}
    }
}

fn endpoint_access(args: &RunArgs) -> perfval_cluster::EndpointAccess {
    match args.endpoint_access {
        FrontendAccess::Auto if in_pod() => perfval_cluster::EndpointAccess::Dns,
        FrontendAccess::Dns => perfval_cluster::EndpointAccess::Dns,
        FrontendAccess::Auto | FrontendAccess::ServiceProxy => perfval_cluster::EndpointAccess::ServiceProxy,
    }
}

/// Looks after the rights of this process, leader or follower. Passes under way are repeated when the rights change.
fn look_after_rights(health: &Health, client: Client, needed: Vec<Right>) -> impl Future<Output = ()> + use<> {
    let health = health.clone();
    let wake = move || health.objects.wake_in(|phase| !phase.is_over());
    health.rights.watch(client, needed, health.metrics, wake)
}

async fn serve(
    args: &RunArgs,
    health: Health,
    readers: Readers,
    end: CancellationToken,
) -> Result<impl Future<Output = ()> + use<>, Error> {
    let listener = listen("--metrics-addr", args.metrics_addr).await?;
    let secured = match args.secure_metrics_addr.zip(args.metrics_tls_folder.as_deref()) {
        Some((address, folder)) => Some(secure_metrics::Listener::bind(address, folder).await?),
        None => None,
    };
    let open = health::serve(listener, health.clone(), secured.is_none(), end.clone());
    let secured = async move {
        match secured {
            Some(listener) => secure_metrics::serve(listener, health, readers, end).await,
            None => Ok(()),
        }
    };
    Ok(async move {
        if let Err(error) = tokio::try_join!(open, secured) {
            error!(
                error = &error as &dyn std::error::Error,
                "no health and no metrics from now on"
            );
        }
    })
}

fn identity(args: &RunArgs) -> String {
    args.identity.clone().unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("{}-{}", host.trim(), std::process::id())
    })
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use perfval_testkit::api_server::ApiServer;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_lease_is_renewed_while_the_work_keeps_its_thread() {
        let server = ApiServer::new();
        let renewed = {
            let server = server.clone();
            move || {
                server
                    .get("leases", "operators", "lease")
                    .map(|lease| lease["spec"]["renewTime"].clone())
            }
        };
        let work = async move {
            let (first, began) = (renewed(), Instant::now());
            while renewed() == first {
                assert!(began.elapsed() < LIMIT, "not renewed");
                thread::sleep(Duration::from_millis(20));
            }
        };
        let candidate = Candidate::new(server.client(), "operators", "lease", "me".to_owned());
        let (done, mut finished) = tokio::sync::oneshot::channel();
        let work = async move {
            work.await;
            // The test may be over.
            let _ = done.send(());
        };
        lead(candidate, elsewhere(work), &CancellationToken::new())
            .await
            .expect("it leads");
        finished.try_recv().expect("the work was done");
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_gives_the_lease_back() {
        let server = ApiServer::new();
        let candidate = Candidate::new(server.client(), "operators", "lease", "me".to_owned());
        let work = elsewhere(async { panic!("a bug") });
        let ended = lead(candidate, work, &CancellationToken::new()).await;
        assert!(matches!(ended, Err(Error::WorkPanicked(_))), "{ended:?}");
        let lease = server.get("leases", "operators", "lease").expect("a lease");
        assert_eq!(lease["spec"]["holderIdentity"], "");
    }
}
