use perfval_api::PerfValidationStatus;

/// Starts a run that judges saved trials again with the state of the run that measured them, except for the results
/// of its gates.
pub(super) fn carry(status: &mut PerfValidationStatus, last: &PerfValidationStatus) {
    status.state.plan.clone_from(&last.state.plan);
    status.state.worker_pods.clone_from(&last.state.worker_pods);
    status.placement.clone_from(&last.placement);
    status.workload.clone_from(&last.workload);
    status.state.deployment.clone_from(&last.state.deployment);
    status.state.environment.clone_from(&last.state.environment);
    status.state.comparison.clone_from(&last.state.comparison);
    status.results_ref.clone_from(&last.results_ref);
    let measured = last.run.as_ref().map(|run| run.number);
    status.state.judged_run = last.state.judged_run.or(measured);
    status.state.leftovers = last.state.leftovers;
}
