//! What is to be run: JSON in, checked values out.

use crate::error::Error;
use crate::names::{fault_of_folder, fault_of_name, fault_of_output, fault_of_variable};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// Longest time of a job, in seconds.
const LONGEST_S: f64 = 30.0 * 86400.0;
/// Largest number of inputs, outputs, folders and variables, of each.
const MOST_NAMES: usize = 2000;
/// Largest size of the command, in bytes: less than the kernel accepts of one argument.
const LONGEST_COMMAND: usize = 100_000;

/// How a program is confined.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// In the first mode that works here.
    #[default]
    Auto,
    /// By bubblewrap: namespaces of its own.
    Bwrap,
    /// By Landlock, without namespaces.
    Landlock,
}

/// Limits of a program and all that it starts.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// CPU time of all processes together, in seconds.
    pub cpu_s: f64,
    /// Elapsed time, in seconds.
    pub wall_s: f64,
    /// Memory of all processes together, in bytes.
    pub memory_bytes: u64,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Files that a process has open at the same time, besides its inputs.
    pub files: u64,
    /// Files and folders below the output folder.
    pub inodes: u64,
    /// Size of all files below the output folder, in bytes.
    pub output_bytes: u64,
    /// Size of its temporary files, in bytes.
    pub temporary_bytes: u64,
    /// Bytes of standard output, and of standard error, that the report keeps.
    pub log_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            cpu_s: 60.0,
            wall_s: 120.0,
            memory_bytes: 1 << 30,
            processes: 64,
            files: 256,
            inodes: 1000,
            output_bytes: 200_000_000,
            temporary_bytes: 100_000_000,
            log_bytes: 65_536,
        }
    }
}

/// A file or folder that the program reads; by its path or by a descriptor of this process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name in the box.
    pub name: String,
    /// Path outside.
    pub path: Option<PathBuf>,
    /// Descriptor, open for reading.
    pub descriptor: Option<i32>,
}

/// A file that the program writes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Name in the box, and among the results.
    pub name: String,
    /// Largest size in bytes; by default that of all outputs.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Whether it may be missing.
    #[serde(default)]
    pub optional: bool,
}

/// User ids that jobs may have, if this process is root.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserRange {
    /// First user id; the group id is the same number.
    pub first: u32,
    /// Number of ids.
    pub count: u32,
}

/// A program to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Program and arguments.
    pub command: Vec<String>,
    /// What it reads.
    #[serde(default)]
    pub inputs: Vec<Input>,
    /// What it writes.
    #[serde(default)]
    pub outputs: Vec<Output>,
    /// Folders of the operator that it sees, read-only, at their own place.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Variables besides those that are always set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its limits.
    #[serde(default)]
    pub limits: Limits,
    /// How it is confined.
    #[serde(default)]
    pub mode: Mode,
    /// User ids for it.
    #[serde(default)]
    pub users: Option<UserRange>,
    /// Folder for the files of the job; by default that for temporary files.
    #[serde(default)]
    pub work: Option<PathBuf>,
    /// Folder into which outputs are copied.
    #[serde(default)]
    pub collect: Option<PathBuf>,
}

impl Request {
    /// Parse a request and check it.
    ///
    /// # Errors
    ///
    /// [`Error::Request`] if it is no JSON, has unknown fields, or values that are refused.
    pub fn parse(text: &[u8]) -> Result<Request, Error> {
        let request: Request = serde_json::from_slice(text)
            .map_err(|error| Error::Request(format!("request: expected a valid one: {error}")))?;
        match request.fault() {
            Some(fault) => Err(Error::Request(fault)),
            None => Ok(request),
        }
    }

    fn fault(&self) -> Option<String> {
        let lengths =
            [self.inputs.len(), self.outputs.len(), self.folders.len(), self.environment.len()];
        if lengths.iter().any(|length| *length > MOST_NAMES) {
            return Some(format!("request: expected {MOST_NAMES} names of a kind at most"));
        }
        self.fault_of_command()
            .or_else(|| self.limits.fault())
            .or_else(|| self.inputs.iter().find_map(fault_of_input))
            .or_else(|| self.outputs.iter().find_map(|each| fault_of_output(&each.name)))
            .or_else(|| twice("input", self.inputs.iter().map(|each| &each.name)))
            .or_else(|| twice("output", self.outputs.iter().map(|each| &each.name)))
            .or_else(|| self.folders.iter().find_map(|each| fault_of_folder(each)))
            .or_else(|| {
                self.environment.iter().find_map(|(name, value)| fault_of_variable(name, value))
            })
            .or_else(|| self.users.and_then(|users| users.fault()))
            .or_else(|| {
                let is_needed = !self.outputs.is_empty() && self.collect.is_none();
                is_needed.then(|| "collect: expected a folder for the outputs, found none".into())
            })
    }

    fn fault_of_command(&self) -> Option<String> {
        let bytes: usize = self.command.iter().map(|word| word.len() + 1).sum();
        if self.command.first().is_none_or(String::is_empty) {
            Some("command: expected a program, found none".into())
        } else if self.command.iter().any(|word| word.contains('\0')) {
            Some("command: expected no NUL".into())
        } else if bytes > LONGEST_COMMAND {
            Some(format!("command: expected {LONGEST_COMMAND} bytes at most, found {bytes}"))
        } else {
            None
        }
    }
}

impl Limits {
    fn fault(&self) -> Option<String> {
        let times = [("cpu_s", self.cpu_s), ("wall_s", self.wall_s)];
        let wrong_time = times.iter().find(|(_, value)| !(0.0..=LONGEST_S).contains(value));
        if let Some((name, value)) = wrong_time {
            return Some(format!("{name}: expected 0 to {LONGEST_S} seconds, found {value}"));
        }
        let numbers = [
            ("memory_bytes", self.memory_bytes, 1 << 20, 1 << 50),
            ("processes", self.processes, 1, 1 << 20),
            ("files", self.files, 16, 1 << 20),
            ("inodes", self.inodes, 0, 1 << 40),
            ("output_bytes", self.output_bytes, 0, 1 << 50),
            ("temporary_bytes", self.temporary_bytes, 4096, 1 << 50),
            ("log_bytes", self.log_bytes as u64, 0, 16 << 20),
        ];
        numbers.iter().find(|(_, value, least, most)| !(*least..=*most).contains(value)).map(
            |(name, value, least, most)| {
                format!("{name}: expected {least} to {most}, found {value}")
            },
        )
    }
}

impl UserRange {
    /// Return a range; `None` if it has no ids, or root's.
    pub fn new(first: u32, count: u32) -> Option<UserRange> {
        let range = UserRange { first, count };
        range.fault().is_none().then_some(range)
    }

    /// Return the ids of the range.
    pub(crate) fn ids(self) -> std::ops::Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }

    fn fault(self) -> Option<String> {
        let is_valid =
            self.first > 0 && (1..=10_000).contains(&self.count) && self.ids().end < u32::MAX;
        (!is_valid).then(|| {
            format!(
                "users: expected 1 to 10000 ids above 0, found {} from {}",
                self.count, self.first
            )
        })
    }
}

fn fault_of_input(input: &Input) -> Option<String> {
    if input.path.is_some() == input.descriptor.is_some() {
        return Some(format!("input {}: expected a path or a descriptor", input.name));
    }
    fault_of_name(&input.name)
}

/// Return a name that occurs twice; names that differ in case only are the same.
fn twice<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut lower_case = HashSet::new();
    let mut repeats = names.filter(|name| !lower_case.insert(name.to_lowercase()));
    repeats.next().map(|name| format!("{kind} {name}: expected each name once, whatever its case"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        Request::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_short_request_has_defaults() {
        let request = Request::parse(br#"{"command": ["true"]}"#).unwrap();
        assert_eq!((request.mode, request.limits.processes), (Mode::Auto, 64));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(fault("[").starts_with("request: expected a valid one"));
        assert!(fault(r#"{"command": [], "x": 1}"#).contains("unknown field `x`"));
        assert!(fault(r#"{"command": []}"#).starts_with("command: "));
        assert!(fault(r#"{"command": ["a\u0000"]}"#).contains("NUL"));
        let with = |rest: &str| fault(&format!(r#"{{"command": ["a"], {rest}}}"#));
        assert!(with(r#""limits": {"wall_s": -1}"#).starts_with("wall_s: expected 0"));
        assert!(with(r#""limits": {"files": 3}"#).starts_with("files: expected 16"));
        assert!(with(r#""inputs": [{"name": "x"}]"#).starts_with("input x: "));
        assert!(with(r#""outputs": [{"name": "a"}, {"name": "A"}]"#).starts_with("output A: "));
        assert!(with(r#""outputs": [{"name": "a"}]"#).starts_with("collect: "));
        assert!(with(r#""users": {"first": 0, "count": 1}"#).starts_with("users: "));
        assert!(with(r#""environment": {"LD_PRELOAD": "x"}"#).contains("LD_PRELOAD"));
    }
}
