//! Watch over a job: its limits, its logs, its end. Then collect its outputs.

use crate::child::{answers_as, handle_of, kill_user};
use crate::collect::{Results, collect};
use crate::cpu_time::CpuTime;
use crate::error::{Context, Error};
use crate::log::Log;
use crate::process_table::{descendants, kill, processes_of};
use crate::report::{Limit, Reason, Report, Status};
use crate::request::{Mode, Request};
use crate::start::{Job, Launch};
use crate::usage::{file_usage, open_usage, process_usage};
use crate::users::User;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};
use rustix::process::{Pid, Resource, Rlimit, Signal, pidfd_send_signal, prlimit};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Shortest time between two looks at the processes of a job.
const LOOK: Duration = Duration::from_millis(20);
/// Shortest time between two looks at its files.
const LOOK_AT_FILES: Duration = Duration::from_millis(100);
/// Part of the time that looking may take: one tenth.
const LOOK_SHARE: u32 = 10;
/// Time that bubblewrap has to make its namespaces, or to end after its job.
const PATIENCE: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 1 << 16;
/// Exit codes from here on say that a signal ended the program, as shells have it.
const FIRST_SIGNAL_CODE: i32 = 128;

/// What belongs to a job besides its program.
pub(crate) struct Surroundings<'a> {
    pub(crate) job: Job<'a>,
    pub(crate) results: Option<Results<'a>>,
    /// At its end, the job is cancelled.
    pub(crate) leash: &'a OwnedFd,
    /// Called with the group of processes of a job, which another one may have to kill.
    pub(crate) on_start: &'a dyn Fn(i32),
}

/// Run the program in the first mode that works, and return what became of it.
pub(crate) fn supervise(surroundings: &Surroundings<'_>) -> Report {
    let request = surroundings.job.request;
    let modes: &[Mode] = match request.mode {
        Mode::Auto => &[Mode::Bwrap, Mode::Landlock],
        Mode::Bwrap => &[Mode::Bwrap],
        Mode::Landlock => &[Mode::Landlock],
    };
    let mut reasons = Vec::new();
    for mode in modes {
        let (name, start) = match mode {
            Mode::Landlock => ("landlock", surroundings.job.start_in_landlock()),
            _ => ("bwrap", surroundings.job.start_in_bubblewrap()),
        };
        let uid = surroundings.job.user.uid;
        let result = start.and_then(|launch| Watch::new(surroundings, launch, name).run());
        match result {
            Ok(report) => return Report { uid, ..report },
            Err(Error::Unavailable(reason)) => reasons.push(format!("{name}: {reason}")),
            Err(error) => return Report::failure(&error),
        }
    }
    Report::failure(&Error::Unavailable(format!(
        "users' programs are not run here: {}",
        reasons.join("; ")
    )))
}

/// Why a job is ended.
#[derive(Clone, Copy)]
enum Cause {
    Limit(Limit),
    /// It keeps what it uses from being counted.
    Hiding,
    Cancel,
}

/// A stream that the job writes to.
struct Stream {
    pipe: Option<OwnedFd>,
    log: Log,
}

impl Stream {
    /// Read what is there, at most a buffer; `false` at its end or if nothing is there now.
    fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let mut buffer = [0; READ_BYTES];
        match read(pipe, &mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                self.log.push(&buffer[..count]);
                return true;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.pipe = None,
        }
        false
    }
}

/// What bubblewrap says of itself.
struct Bubblewrap {
    status: OwnedFd,
    gate: Option<OwnedFd>,
    text: Vec<u8>,
    /// First process of the job's namespace; its end ends all others there.
    first: Option<OwnedFd>,
    exit_code: Option<i32>,
}

struct Watch<'a> {
    surroundings: &'a Surroundings<'a>,
    mode: &'static str,
    pid: i32,
    handle: OwnedFd,
    stdout: Stream,
    stderr: Stream,
    bubblewrap: Option<Bubblewrap>,
    begin: Instant,
    peak_bytes: u64,
    /// Most memory that its pipes and sockets may hold.
    buffer_bytes: u64,
    cpu_time: CpuTime,
}

impl<'a> Watch<'a> {
    fn new(surroundings: &'a Surroundings<'a>, launch: Launch, mode: &'static str) -> Watch<'a> {
        let log_bytes = surroundings.job.request.limits.log_bytes;
        let stream = |pipe| Stream { pipe: Some(pipe), log: Log::new(log_bytes) };
        let bubblewrap = launch.bubblewrap.map(|(status, gate)| Bubblewrap {
            status,
            gate: Some(gate),
            text: Vec::new(),
            first: None,
            exit_code: None,
        });
        if bubblewrap.is_none() {
            (surroundings.on_start)(launch.pid);
        }
        Watch {
            surroundings,
            mode,
            pid: launch.pid,
            handle: launch.handle,
            stdout: stream(launch.stdout),
            stderr: stream(launch.stderr),
            bubblewrap,
            begin: Instant::now(),
            peak_bytes: 0,
            buffer_bytes: 0,
            cpu_time: CpuTime::default(),
        }
    }

    fn run(mut self) -> Result<Report, Error> {
        let outcome = self.watch();
        let wall_s = self.begin.elapsed().as_secs_f64();
        let usage = self.end(&outcome);
        while self.stdout.read() || self.stderr.read() {}
        let cause = outcome?;
        let usage = usage?;
        let mut report = Report::begin(self.mode, 0);
        report.wall_s = wall_s;
        report.cpu_s = usage.cpu_s + self.cpu_time.forgotten_s();
        report.max_rss_bytes = self.peak_bytes.max(usage.max_rss_bytes);
        report.stdout = self.stdout.log.text();
        report.stderr = self.stderr.log.text();
        self.judge(cause, usage.status, &mut report)?;
        if report.status == Status::Ok {
            self.collect(&mut report);
        }
        Ok(report)
    }

    /// Wait for the end of the program; return why it has to be ended, if it has.
    fn watch(&mut self) -> Result<Option<Cause>, Error> {
        let limits = &self.surroundings.job.request.limits;
        let wall_end = self.begin + Duration::from_secs_f64(limits.wall_s);
        let mut next_look = self.begin + LOOK;
        let mut next_look_at_files = self.begin + LOOK_AT_FILES;
        loop {
            let now = Instant::now();
            if now >= wall_end {
                return Ok(Some(Cause::Limit(Limit::WallS)));
            }
            if now >= next_look {
                if let Some(limit) = self.limit_of_processes() {
                    return Ok(Some(Cause::Limit(limit)));
                }
                next_look = Instant::now() + LOOK.max(now.elapsed() * LOOK_SHARE);
            }
            let is_setting_up = self.bubblewrap.as_ref().is_some_and(|each| each.gate.is_some());
            if now >= next_look_at_files && !is_setting_up {
                let begin = Instant::now();
                if let Some(cause) = self.look_at_files()? {
                    return Ok(Some(cause));
                }
                next_look_at_files =
                    Instant::now() + LOOK_AT_FILES.max(begin.elapsed() * LOOK_SHARE);
            }
            if is_setting_up && self.begin.elapsed() > PATIENCE {
                return Err(Error::Unavailable("bubblewrap did not start within 10 s".into()));
            }
            let until = match is_setting_up {
                true => next_look.min(wall_end),
                false => next_look.min(next_look_at_files).min(wall_end),
            };
            match self.wait(until.saturating_duration_since(Instant::now()))? {
                Event::End => return Ok(None),
                Event::Cancel => return Ok(Some(Cause::Cancel)),
                Event::Nothing => {}
            }
        }
    }

    /// Wait for an event, and read what the job and bubblewrap write.
    fn wait(&mut self, longest: Duration) -> Result<Event, Error> {
        let none = PollFlags::empty();
        let mut files = vec![
            PollFd::new(&self.handle, PollFlags::IN),
            PollFd::new(self.surroundings.leash, PollFlags::IN),
        ];
        let status = self.bubblewrap.as_ref().filter(|each| each.exit_code.is_none());
        for pipe in [&self.stdout.pipe, &self.stderr.pipe].into_iter().flatten() {
            files.push(PollFd::new(pipe, PollFlags::IN));
        }
        if let Some(bubblewrap) = status.filter(|each| each.gate.is_some()) {
            files.push(PollFd::new(&bubblewrap.status, PollFlags::IN));
        }
        let timeout = Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: i64::from(longest.subsec_nanos()),
        };
        match poll(&mut files, Some(&timeout)) {
            Err(Errno::INTR) => return Ok(Event::Nothing),
            other => other.context("poll")?,
        };
        let (has_ended, is_cancelled) = (files[0].revents() != none, files[1].revents() != none);
        let speaks = files.len() > 2 && files.last().is_some_and(|file| file.revents() != none);
        drop(files);
        self.stdout.read();
        self.stderr.read();
        if speaks || has_ended {
            self.listen()?;
        }
        Ok(match (has_ended, is_cancelled) {
            (true, _) => Event::End,
            (_, true) => Event::Cancel,
            _ => Event::Nothing,
        })
    }

    /// Read what bubblewrap says; let it go on once the limit on processes is set.
    fn listen(&mut self) -> Result<(), Error> {
        let processes = self.surroundings.job.request.limits.processes;
        let Some(bubblewrap) = &mut self.bubblewrap else { return Ok(()) };
        let mut buffer = [0; 4096];
        while is_readable(&bubblewrap.status) {
            match read(&bubblewrap.status, &mut buffer) {
                Ok(0) => break,
                Ok(count) => bubblewrap.text.extend_from_slice(&buffer[..count]),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("bubblewrap"),
            }
        }
        let text = String::from_utf8_lossy(&bubblewrap.text).into_owned();
        for line in text.lines() {
            let Ok(values) = serde_json::from_str::<serde_json::Value>(line) else { continue };
            if let (Some(pid), Some(gate)) = (values["child-pid"].as_i64(), &bubblewrap.gate) {
                let pid = i32::try_from(pid).unwrap_or(0);
                // A box that could not be set up has ended by now; its message is read then.
                if let Ok(first) = handle_of(pid) {
                    bubblewrap.first = Some(first);
                    // One more than the program may have: the first process of the namespace.
                    limit_processes(self.surroundings.job.user, pid, processes + 1)?;
                    match write(gate, b"x") {
                        Ok(_) | Err(Errno::PIPE) => {}
                        Err(error) => return Err(error).context("bubblewrap"),
                    }
                }
                bubblewrap.gate = None;
            }
            if let Some(code) = values["exit-code"].as_i64() {
                bubblewrap.exit_code = i32::try_from(code).ok();
            }
        }
        Ok(())
    }

    fn limit_of_processes(&mut self) -> Option<Limit> {
        let limits = &self.surroundings.job.request.limits;
        let root = std::process::id() as i32;
        let pages_limit = limits.memory_bytes.saturating_sub(self.buffer_bytes);
        let usage = process_usage(root, pages_limit, &mut self.cpu_time);
        self.peak_bytes = self.peak_bytes.max(usage.memory_bytes);
        // Beside the program: bubblewrap, and the first process of its namespace.
        let own = if self.bubblewrap.is_some() { 2 } else { 0 };
        match () {
            () if usage.memory_bytes > pages_limit => Some(Limit::MemoryBytes),
            () if usage.cpu_s > limits.cpu_s => Some(Limit::CpuS),
            () if usage.threads > limits.processes + own => Some(Limit::Processes),
            () => None,
        }
    }

    /// Count files, and what processes hold open; return why the job has to be ended, if it has.
    fn look_at_files(&mut self) -> Result<Option<Cause>, Error> {
        let Job { request, folder, .. } = &self.surroundings.job;
        let limits = &request.limits;
        let temporary = folder.open("tmp").context("temporary files")?;
        let count = || {
            let files = file_usage(folder.out(), limits.inodes)?;
            let open = open_usage(std::process::id() as i32, &temporary)?;
            Ok((files, open, file_usage(temporary.as_fd(), limits.inodes)?))
        };
        let (files, open, others) = match count() {
            Err(Errno::ACCESS) => return Ok(Some(Cause::Hiding)),
            other => other.context("outputs and temporary files")?,
        };
        self.buffer_bytes = open.buffer_bytes;
        let temporary_bytes = others.bytes + open.removed_bytes;
        let limit = match () {
            () if files.inodes.max(others.inodes) > limits.inodes => Limit::Inodes,
            () if files.bytes > limits.output_bytes => Limit::OutputBytes,
            () if temporary_bytes > limits.temporary_bytes => Limit::TemporaryBytes,
            () => return Ok(None),
        };
        Ok(Some(Cause::Limit(limit)))
    }

    /// End all processes of the job, wait for them, and return what they used.
    fn end(&self, outcome: &Result<Option<Cause>, Error>) -> Result<Ending, Error> {
        match &self.bubblewrap {
            Some(bubblewrap) => {
                let must_end = !matches!(outcome, Ok(None));
                if let Some(first) = bubblewrap.first.as_ref().filter(|_| must_end) {
                    // It may have ended, which is as good. Bubblewrap ends after it.
                    let _ = pidfd_send_signal(first, Signal::KILL);
                    wait_for(&self.handle, PATIENCE);
                }
                kill_tree(None)?;
            }
            None => kill_tree(Some((self.surroundings.job.user, self.pid)))?,
        }
        reap(self.pid)
    }

    /// Say how the program ended.
    fn judge(&self, cause: Option<Cause>, status: i32, report: &mut Report) -> Result<(), Error> {
        let limits = &self.surroundings.job.request.limits;
        let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        (report.exit_code, report.signal) = (code, signal);
        if let Some(bubblewrap) = &self.bubblewrap {
            if bubblewrap.exit_code.is_none() && cause.is_none() {
                return self.fault_of_bubblewrap(code, report);
            }
            let code = bubblewrap.exit_code;
            report.signal =
                code.filter(|code| *code > FIRST_SIGNAL_CODE).map(|code| code - FIRST_SIGNAL_CODE);
            report.exit_code = code.filter(|_| report.signal.is_none());
        }
        let is_over_cpu = report.cpu_s > limits.cpu_s || report.signal == Some(libc::SIGXCPU);
        let cause = cause.or_else(|| is_over_cpu.then_some(Cause::Limit(Limit::CpuS)));
        match cause {
            Some(Cause::Cancel) => {
                report.status = Status::Xx;
                report.reason = Some(Reason::Failure);
                report.message = "the run was cancelled".into();
            }
            Some(Cause::Hiding) => {
                report.status = Status::Re;
                report.message = "the program hid its open files or its outputs".into();
            }
            Some(Cause::Limit(limit)) => {
                report.status = Status::To;
                report.limit = Some(limit);
                report.message = limit_text(limit, self.surroundings.job.request);
            }
            None => match (report.exit_code, report.signal) {
                (Some(0), _) => {}
                (Some(code), _) => {
                    report.status = Status::Re;
                    report.message = format!("the program failed with exit code {code}");
                }
                (None, signal) => {
                    report.status = Status::Sg;
                    report.message =
                        format!("the program was ended by signal {}", signal.unwrap_or(0));
                }
            },
        }
        Ok(())
    }

    /// Say why bubblewrap did not run the program to its end.
    fn fault_of_bubblewrap(&self, code: Option<i32>, report: &Report) -> Result<(), Error> {
        let text = report.stderr.text.trim();
        let last = text.rsplit('\n').next().unwrap_or_default();
        if code.is_none() {
            return Err(Error::Io {
                what: "bubblewrap".into(),
                source: std::io::Error::other("it was killed"),
            });
        }
        if last.starts_with("bwrap: execvp") {
            return Err(Error::Request(format!(
                "command: {}: expected a program in the box: {last}",
                self.surroundings.job.request.command[0]
            )));
        }
        Err(Error::Unavailable(last.trim_start_matches("bwrap: ").to_string()))
    }

    fn collect(&self, report: &mut Report) {
        let Job { request, user, folder, .. } = &self.surroundings.job;
        let Some(results) = &self.surroundings.results else { return };
        let total_bytes = request.limits.output_bytes;
        let (files, problems) =
            collect(folder.out(), &request.outputs, user.uid, total_bytes, results);
        if let Some(first) = problems.first() {
            report.status = Status::Re;
            report.message = format!("output {}: {}", first.name, first.problem);
        }
        report.outputs = files;
        report.problems = problems;
    }
}

/// Limit the processes of a job, as its user: root may lack the right to.
fn limit_processes(user: &User, pid: i32, most: u64) -> Result<(), Error> {
    let set = || {
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        prlimit(Pid::from_raw(pid), Resource::Nproc, limit)
    };
    if !user.is_other {
        return set().map(drop).context("prlimit");
    }
    match answers_as(user, 1, |_| set().is_ok()).context("prlimit")?[0] {
        true => Ok(()),
        false => Err(Error::Unavailable("the number of processes cannot be limited".into())),
    }
}

enum Event {
    End,
    Cancel,
    Nothing,
}

/// How a job ended, and what it used.
#[derive(Default)]
struct Ending {
    status: i32,
    cpu_s: f64,
    max_rss_bytes: u64,
}

/// Kill all that this process started, and all of a job's user or group.
///
/// A process of a job cannot leave its group, so one signal reaches all of them.
pub(crate) fn kill_tree(job: Option<(&User, i32)>) -> Result<(), Error> {
    if let Some((user, group)) = job {
        // SAFETY: the number is that of a child that was not waited for yet, so it is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        if user.is_other {
            let end = Instant::now() + PATIENCE;
            while !processes_of(user.uid).is_empty() {
                kill_user(user).context("kill")?;
                if Instant::now() > end {
                    let text = format!("user {}: its processes do not end", user.uid);
                    return Err(Error::Io {
                        what: text,
                        source: std::io::ErrorKind::TimedOut.into(),
                    });
                }
            }
        }
    }
    for process in descendants(std::process::id() as i32) {
        kill(process.pid);
    }
    Ok(())
}

/// Wait for all children; those of a child that has ended become children of this process.
fn reap(pid: i32) -> Result<Ending, Error> {
    let mut ending = Ending::default();
    loop {
        let mut status = 0;
        // SAFETY: a plain structure of numbers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both point to values of this function.
        let child = unsafe { libc::wait4(-1, &raw mut status, 0, &raw mut usage) };
        if child < 0 {
            match std::io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ECHILD) => return Ok(ending),
                error if error.raw_os_error() == Some(libc::EINTR) => continue,
                error => return Err(error).context("wait"),
            }
        }
        if child == pid {
            ending.status = status;
        }
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        ending.cpu_s += seconds(usage.ru_utime) + seconds(usage.ru_stime);
        ending.max_rss_bytes = ending.max_rss_bytes.max(usage.ru_maxrss as u64 * 1024);
        for process in descendants(std::process::id() as i32) {
            kill(process.pid);
        }
    }
}

/// Kill and wait for whatever is still a child of this process.
pub(crate) fn end_children() -> Result<(), Error> {
    kill_tree(None)?;
    reap(0).map(drop)
}

fn wait_for(handle: &OwnedFd, longest: Duration) {
    let timeout = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: 0 };
    // A process that does not end is killed next.
    let _ = poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout));
}

fn is_readable(file: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0)
}

fn limit_text(limit: Limit, request: &Request) -> String {
    let limits = &request.limits;
    match limit {
        Limit::CpuS => format!("the program used more than {} s of CPU time", limits.cpu_s),
        Limit::WallS => format!("the program took longer than {} s", limits.wall_s),
        Limit::MemoryBytes => {
            format!("the program used more than {} bytes of memory", limits.memory_bytes)
        }
        Limit::Processes => {
            format!("the program had more than {} processes and threads", limits.processes)
        }
        Limit::Inodes => {
            format!(
                "the program wrote more than {} files or folders, or too deep ones",
                limits.inodes
            )
        }
        Limit::OutputBytes => {
            format!("the program wrote more than {} bytes of outputs", limits.output_bytes)
        }
        Limit::TemporaryBytes => {
            format!(
                "the program wrote more than {} bytes of temporary files",
                limits.temporary_bytes
            )
        }
    }
}
