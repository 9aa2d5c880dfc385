//! The processes of this machine, as `/proc` shows them.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// What `/proc/PID/stat` says of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    /// Start in clock ticks: tells it from a later one with the same number.
    pub(crate) start: u64,
    /// CPU time of its own, in clock ticks.
    pub(crate) own_ticks: u64,
    /// That of the children that it has waited for, and of those that they waited for.
    pub(crate) waited_ticks: u64,
    pub(crate) threads: u64,
    /// Memory in pages.
    pub(crate) rss_pages: u64,
    pub(crate) is_zombie: bool,
}

impl Process {
    /// Parse a line; the name of the program may contain anything, so it is left out first.
    fn parse(text: &str) -> Option<Process> {
        let pid = text.split(' ').next()?.parse().ok()?;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            start: number(19)?,
            own_ticks: (11..13).filter_map(number).sum(),
            waited_ticks: (13..15).filter_map(number).sum(),
            threads: number(17)?,
            rss_pages: number(21)?,
            is_zombie: fields[0] == "Z",
        })
    }

    /// Return a process; `None` if it has ended.
    pub(crate) fn of(pid: i32) -> Option<Process> {
        Process::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }
}

/// Return the numbers of all processes.
fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Return the descendants of a process, without itself.
pub(crate) fn descendants(root: i32) -> Vec<Process> {
    // Kernels may be built without this list.
    if children_of(std::process::id() as i32).is_none() {
        return descendants_among_all(root);
    }
    let mut all = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children_of(parent).unwrap_or_default() {
            all.extend(Process::of(child));
            parents.push(child);
        }
    }
    all
}

/// Return the children of all threads of a process; `None` if it has ended.
fn children_of(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let text = fs::read_to_string(thread.ok()?.path().join("children")).ok()?;
        children.extend(text.split_whitespace().filter_map(|word| word.parse::<i32>().ok()));
    }
    Some(children)
}

fn descendants_among_all(root: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in pids().into_iter().filter_map(Process::of) {
        children.entry(process.parent).or_default().push(process);
    }
    let mut all = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    while next < all.len() {
        // Each is taken out once, so a number that was used again makes no circle.
        let more = children.remove(&all[next].pid).unwrap_or_default();
        all.extend(more);
        next += 1;
    }
    all
}

/// Return the live processes that run under a user id.
pub(crate) fn processes_of(uid: u32) -> Vec<Process> {
    let owner = |pid: i32| fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid());
    let own = pids().into_iter().filter(|pid| owner(*pid) == Some(uid));
    own.filter_map(Process::of).filter(|process| !process.is_zombie).collect()
}

/// Send SIGKILL to a process, if it is there.
pub(crate) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended, which is as good.
        let _ = kill_process(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_may_contain_anything() {
        let rest = "S 7 1 1 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 5 0 100 1000 77 0";
        let process = Process::parse(&format!("12 (a) R 1 (b) {rest}")).unwrap();
        assert_eq!((process.pid, process.parent, process.start), (12, 7, 100));
        assert_eq!((process.own_ticks, process.waited_ticks), (30, 70));
        assert_eq!((process.threads, process.rss_pages), (5, 77));
        assert!(Process::parse("12 (a").is_none());
    }

    #[test]
    fn children_of_children_are_descendants() {
        let words = ["-c", "sleep 60 & echo; wait"];
        let mut command = std::process::Command::new("sh");
        let mut child = command.args(words).stdout(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let shell = child.id() as i32;
        for descendants in [descendants, descendants_among_all] {
            let all = descendants(std::process::id() as i32);
            assert!(all.iter().any(|each| each.pid == shell));
            assert!(all.iter().any(|each| each.parent == shell));
        }
        kill(descendants(shell)[0].pid);
        child.wait().unwrap();
    }
}
