use perfval_api::PerfValidationStatus;

/// Starts a run that judges saved trials again with the state of the run that measured them, except for the results
/// of its gates.
pub(super) fn carry(status: &mut PerfValidationStatus, last: &PerfValidationStatus) {
    status.state.plan.clone_from(&last.state.plan);
    status.state.worker_pods.clone_from(&last.state.worker_pods);
    status.placement.clone_from(&last.placement);
    status.workload.clone_from(&last.workload);
    status.environment.clone_from(&last.environment);
    status.state.comparison.clone_from(&last.state.comparison);
    status.results_ref.clone_from(&last.results_ref);
    if let (Some(run), Some(last)) = (&mut status.run, &last.run) {
        run.judged_run = Some(last.judged_run.unwrap_or(last.number));
        run.leftovers = last.leftovers;
    }
}
