//! What became of a program: checked values in, JSON out.

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// How a run ended, in the words of `isolate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// The program ended with exit code 0, and its outputs were collected.
    Ok,
    /// Its exit code was another one, or an output is missing or refused.
    Re,
    /// A signal ended it.
    Sg,
    /// A limit ended it.
    To,
    /// It was not run, or not to its end, through no fault of its own.
    Xx,
}

/// Why there is no result, if the status is [`Status::Xx`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The request is invalid.
    Request,
    /// This machine cannot confine programs.
    Unavailable,
    /// All user ids are in use; later one may be free.
    Busy,
    /// A call of the system failed, or the run was cancelled.
    Failure,
}

/// A limit that ended a program; the names are those of [`crate::Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// CPU time.
    CpuS,
    /// Elapsed time.
    WallS,
    /// Memory.
    MemoryBytes,
    /// Processes.
    Processes,
    /// Files and folders.
    Inodes,
    /// Size of the outputs.
    OutputBytes,
    /// Size of the temporary files.
    TemporaryBytes,
}

/// What a program wrote to a stream.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct LogText {
    /// Its start and end, without control characters.
    pub text: String,
    /// Bytes that were written.
    pub bytes: u64,
    /// Whether the text has all of it.
    pub is_whole: bool,
}

/// An output that was collected.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OutputFile {
    /// Its name.
    pub name: String,
    /// Path of the copy.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
}

/// Why an output was not collected.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Problem {
    /// Its name.
    pub name: String,
    /// The reason, in a sentence.
    pub problem: String,
}

/// What became of a program.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Report {
    /// How it ended.
    pub status: Status,
    /// Why it was not run.
    pub reason: Option<Reason>,
    /// Limit that ended it.
    pub limit: Option<Limit>,
    /// What went wrong; empty if nothing did.
    pub message: String,
    /// Exit code, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// How it was confined; empty if it was not run.
    pub mode: String,
    /// Its user id.
    pub uid: u32,
    /// CPU time of all its processes, in seconds.
    pub cpu_s: f64,
    /// Elapsed time, in seconds.
    pub wall_s: f64,
    /// Most memory seen, of all its processes together, in bytes.
    pub max_rss_bytes: u64,
    /// What it wrote to standard output.
    pub stdout: LogText,
    /// What it wrote to standard error.
    pub stderr: LogText,
    /// Outputs that were collected.
    pub outputs: Vec<OutputFile>,
    /// Outputs that were not.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Return a report of a program that has not ended yet.
    pub(crate) fn begin(mode: &str, uid: u32) -> Report {
        Report {
            status: Status::Ok,
            reason: None,
            limit: None,
            message: String::new(),
            exit_code: None,
            signal: None,
            mode: mode.into(),
            uid,
            cpu_s: 0.0,
            wall_s: 0.0,
            max_rss_bytes: 0,
            stdout: LogText::default(),
            stderr: LogText::default(),
            outputs: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Return the report of a program that was not run.
    pub fn failure(error: &Error) -> Report {
        let reason = match error {
            Error::Request(_) => Reason::Request,
            Error::Unavailable(_) => Reason::Unavailable,
            Error::Busy(_) => Reason::Busy,
            Error::Io { .. } => Reason::Failure,
        };
        let message = error.to_string();
        Report { status: Status::Xx, reason: Some(reason), message, ..Report::begin("", 0) }
    }

    /// Return the exit code of `swathe-sandbox run`: 0 fine, 1 the program failed, 2 not run.
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Ok => 0,
            Status::Re | Status::Sg | Status::To => 1,
            Status::Xx => 2,
        }
    }
}
