//! The life of a run, played without a cluster: every arrow of the transition table, and the laws that hold on all.

mod machine {
    pub mod arrows;
    pub mod baselines;
    pub mod deadline;
    pub mod edits;
    pub mod jobs;
    pub mod laws;
    pub mod mixed_allocation;
    pub mod moments;
    pub mod named;
    pub mod outages;
    pub mod patience;
    pub mod preemption;
    pub mod progress;
    pub mod queue;
    pub mod races;
    pub mod releases;
    pub mod results;
    pub mod saved_objects;
    pub mod secrets;
    pub mod settling;
    pub mod size;
    pub mod story;
    pub mod telemetry;
    pub mod telling;
    pub mod tenants;
    pub mod tools;
    pub mod waiting;
    pub mod words;
    pub mod worker_loss;
}
