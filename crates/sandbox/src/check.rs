//! Try each mode on this machine.

use crate::bubblewrap::bubblewrap;
use crate::file_rules::landlock_abi;
use crate::guard::run;
use crate::report::Status;
use crate::request::{Limits, Mode, Request, UserRange};
use rustix::process::geteuid;
use serde::Serialize;
use std::process::Command;

/// Ends with 0 if a file that everybody may read outside cannot be read, and one can be written.
const TRIAL: &str = "if cat /etc/passwd >/dev/null 2>&1; then exit 3; fi; echo >$SWATHE_OUT/trial";

/// Whether a mode works on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct ModeCheck {
    /// `bwrap` or `landlock`.
    pub mode: &'static str,
    /// Whether a program ran in it, confined.
    pub holds: bool,
    /// Why not.
    pub reason: String,
    /// Version of bubblewrap, or of Landlock's interface; empty if there is none.
    pub version: String,
}

/// Which modes work on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// Release of the kernel.
    pub kernel: String,
    /// User id of this process.
    pub uid: u32,
    /// Its modes, the better one first.
    pub modes: Vec<ModeCheck>,
}

/// Run a small program in each mode.
pub fn check(users: Option<UserRange>) -> Check {
    let abi = landlock_abi();
    let landlock_version = if abi > 0 { format!("ABI {abi}") } else { String::new() };
    Check {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        uid: geteuid().as_raw(),
        modes: vec![
            trial("bwrap", Mode::Bwrap, users, bubblewrap_version()),
            trial("landlock", Mode::Landlock, users, landlock_version),
        ],
    }
}

fn trial(name: &'static str, mode: Mode, users: Option<UserRange>, version: String) -> ModeCheck {
    let request = Request {
        command: ["/bin/sh", "-c", TRIAL].map(str::to_string).to_vec(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        folders: Vec::new(),
        environment: std::collections::BTreeMap::new(),
        limits: Limits { wall_s: 10.0, ..Limits::default() },
        mode,
        users,
        work: None,
        collect: None,
    };
    let report = run(&request, None);
    let last = report.stderr.text.trim().rsplit('\n').next().unwrap_or_default().to_string();
    let reason = match (report.status, report.exit_code) {
        (Status::Ok, _) => String::new(),
        (Status::Re, Some(3)) => "a program in it could read /etc/passwd".into(),
        _ if last.is_empty() => report.message,
        _ => format!("{}: {last}", report.message),
    };
    ModeCheck { mode: name, holds: report.status == Status::Ok, reason, version }
}

fn bubblewrap_version() -> String {
    let Ok(program) = bubblewrap() else { return String::new() };
    let output = Command::new(program).arg("--version").output();
    output.map_or_else(
        |_| String::new(),
        |output| {
            String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("bubblewrap ").into()
        },
    )
}
