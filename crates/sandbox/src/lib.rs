//! Run a program of somebody else in a box: without a network, with no files but its own, within
//! limits; then collect what it declared to write.
//!
//! Two modes. [`Mode::Bwrap`]: bubblewrap makes new namespaces, and nothing of the machine is there
//! but what is bound into them. [`Mode::Landlock`], where user namespaces are off: the kernel checks
//! each file that is opened. In both a seccomp filter refuses system calls that no reduction of data
//! needs, and neither is ever started as root: the ids are dropped first.
//!
//! Two processes look after a job, [`run`] and its guardian. If one of them is killed, the other
//! kills the job and removes its files; if both are, the kernel kills the job's first process and
//! the next job removes the files.
//!
//! Everything here assumes a process with one thread, as that of `swathe-sandbox`.

mod bubblewrap;
mod check;
mod child;
mod collect;
mod cpu_time;
mod error;
mod file_rules;
mod folder;
mod guard;
mod inputs;
mod log;
mod names;
mod process_table;
mod remove;
mod report;
mod request;
mod start;
mod supervise;
mod syscall_filter;
mod usage;
mod users;

pub use check::{Check, ModeCheck, check};
pub use error::Error;
pub use guard::run;
pub use report::{Limit, LogText, OutputFile, Problem, Reason, Report, Status};
pub use request::{Input, Limits, Mode, Output, Request, UserRange};
