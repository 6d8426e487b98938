//! Whole commands, most of them against an API server in memory: what is printed, what is changed, and the exit code.

mod cli {
    pub mod answer;
    pub mod approve;
    pub mod bad_input;
    pub mod bundle;
    pub mod calibrate;
    pub mod changes;
    pub mod cluster;
    pub mod desk;
    pub mod diff;
    pub mod docs;
    pub mod doctor;
    pub mod follow;
    pub mod hostile;
    pub mod judge;
    pub mod logs;
    pub mod narrow;
    pub mod nodes;
    pub mod pages;
    pub mod pty;
    pub mod report;
    pub mod run;
    pub mod sessions;
    pub mod size;
    pub mod socket;
    pub mod terminal;
    pub mod unreadable;
}
