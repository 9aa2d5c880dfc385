//! The CPU time of a job, also of processes that nobody waited for.
//!
//! The kernel adds the time of a process to that of its parent when the parent waits for it. A
//! parent that ignores `SIGCHLD` waits for none, and their time is forgotten.

use crate::process_table::Process;
use std::collections::HashMap;

/// CPU time of the processes of a job, from look to look.
#[derive(Debug, Default)]
pub(crate) struct CpuTime {
    /// The processes of the last look by number and start.
    last: HashMap<(i32, u64), Process>,
    /// Time of processes that are gone since the last look. Their parents may show it in the next:
    /// the table of processes is read one by one.
    pending_ticks: u64,
    forgotten_ticks: u64,
}

impl CpuTime {
    /// Take in the processes of a look, and return the CPU time of the job in clock ticks.
    pub(crate) fn look(&mut self, processes: &[Process]) -> u64 {
        self.look_with(processes, Process::of)
    }

    /// Time of processes that are gone and that nobody waited for, in seconds.
    pub(crate) fn forgotten_s(&self) -> f64 {
        self.forgotten_ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    fn look_with(&mut self, processes: &[Process], find: impl Fn(i32) -> Option<Process>) -> u64 {
        let key = |each: &Process| (each.pid, each.start);
        let mut now: HashMap<_, _> = processes.iter().map(|each| (key(each), *each)).collect();
        let (mut loss, mut rise) = (0, 0);
        for (name, before) in &self.last {
            // The list of children may lack one while others end.
            let again = || find(name.0).filter(|each| key(each) == *name);
            match now.get(name).copied().or_else(again) {
                Some(process) => {
                    rise += process.waited_ticks.saturating_sub(before.waited_ticks);
                    now.insert(*name, process);
                }
                None => loss += before.own_ticks + before.waited_ticks,
            }
        }
        let late = self.pending_ticks.min(rise);
        self.forgotten_ticks += self.pending_ticks - late;
        self.pending_ticks = u64::saturating_sub(loss, rise - late);
        self.last = now;
        let live = self.last.values().map(|each| each.own_ticks + each.waited_ticks);
        live.sum::<u64>() + self.forgotten_ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, own_ticks: u64, waited_ticks: u64) -> Process {
        let (parent, start, threads) = (1, 5, 1);
        let (rss_pages, is_zombie) = (1, false);
        Process { pid, parent, start, own_ticks, waited_ticks, threads, rss_pages, is_zombie }
    }

    fn totals(looks: &[&[Process]]) -> Vec<u64> {
        let mut time = CpuTime::default();
        looks.iter().map(|look| time.look_with(look, |_| None)).collect()
    }

    #[test]
    fn time_of_children_that_nobody_waited_for_is_kept() {
        let (parent, child) = (process(2, 3, 0), process(3, 50, 4));
        assert_eq!(totals(&[&[parent, child], &[parent], &[parent]])[2], 57);
        let next = Process { start: 9, ..child };
        let looks: [&[Process]; 4] = [&[parent, child], &[parent, next], &[parent], &[parent]];
        assert_eq!(totals(&looks), [57, 57, 57, 111]);
    }

    #[test]
    fn time_of_children_counts_once_if_their_parent_waited() {
        let (parent, child) = (process(2, 3, 0), process(3, 50, 4));
        let later = process(2, 3, 55);
        assert_eq!(totals(&[&[parent, child], &[later], &[later]]), [57, 58, 58]);
        // The parent was read before it waited, its child thereafter.
        let looks: [&[Process]; 4] = [&[parent, child], &[parent], &[later], &[later]];
        assert_eq!(totals(&looks), [57, 3, 58, 58]);
    }

    #[test]
    fn a_process_that_a_list_lacks_is_not_gone() {
        let (parent, child) = (process(2, 3, 0), process(3, 50, 4));
        let mut time = CpuTime::default();
        for look in [&[parent, child][..], &[parent], &[parent], &[parent, child]] {
            assert_eq!(time.look_with(look, |pid| (pid == 3).then_some(child)), 57);
        }
    }
}
