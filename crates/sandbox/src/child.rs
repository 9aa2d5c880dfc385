//! What a child does before it becomes the program: the ids, limits and rights that it gives up.

use crate::request::Limits;
use crate::users::User;
use landlock::RulesetCreated;
use rustix::io::FdFlags;
use seccompiler::BpfProgram;
use std::io::{self, Error, Read, Write};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Address space beside the memory limit: reserved, but not used.
const RESERVE_BYTES: u64 = 512 << 20;
const STACK_BYTES: u64 = 64 << 20;
/// By how much a job is nicer than the process that runs it, which may have people waiting.
const NICENESS: i32 = 10;
const JOIN_SESSION_KEYRING: libc::c_long = 1;
const LAST_SIGNAL: i32 = 64;

/// What a child gives up.
pub(crate) struct Confinement {
    /// Ids to take, if they are others than those of this process.
    pub(crate) ids: Option<(u32, u32)>,
    /// Process whose end ends the child.
    pub(crate) parent: i32,
    /// Whether it leads a session, and so a group of processes, of its own.
    pub(crate) is_leader: bool,
    /// Its resource limits.
    pub(crate) limits: Vec<(libc::__rlimit_resource_t, u64)>,
    /// Descriptors that stay open, besides the standard ones.
    pub(crate) descriptors: Vec<RawFd>,
    /// What it may open.
    pub(crate) rules: Option<RulesetCreated>,
    /// What it may call.
    pub(crate) filters: Vec<BpfProgram>,
}

impl Confinement {
    /// Confine this process for good. It runs between fork and exec, in a process of one thread.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        // The kernel ends jobs first when memory is short.
        std::fs::write("/proc/self/oom_score_adj", "1000")?;
        rustix::process::nice(NICENESS)?;
        if self.is_leader {
            rustix::process::setsid()?;
        }
        if let Some((uid, gid)) = self.ids {
            take_ids(uid, gid)?;
        }
        leave_keyring()?;
        // After the ids: a change of them clears it.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        if parent_of_this() != self.parent {
            return Err(Error::other("the guardian has ended"));
        }
        rustix::thread::set_no_new_privs(true)?;
        reset_signals();
        rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        for (resource, value) in &self.limits {
            set_limit(*resource, *value)?;
        }
        self.close_others()?;
        if let Some(rules) = self.rules.take() {
            rules.restrict_self().map_err(Error::other)?;
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(Error::other)?;
        }
        Ok(())
    }

    /// Let all descriptors but those of the program close when it starts.
    fn close_others(&self) -> io::Result<()> {
        let (first, last) = (3_u32, u32::MAX);
        // SAFETY: the flag marks descriptors, it closes none that this process still uses.
        let result =
            unsafe { libc::syscall(libc::SYS_close_range, first, last, libc::CLOSE_RANGE_CLOEXEC) };
        if result != 0 {
            return Err(Error::last_os_error());
        }
        for number in &self.descriptors {
            // SAFETY: the caller holds it open until the program has started.
            let file = unsafe { BorrowedFd::borrow_raw(*number) };
            rustix::io::fcntl_setfd(file, FdFlags::empty())?;
        }
        Ok(())
    }
}

fn parent_of_this() -> i32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get())
}

/// Return the resource limits of a job, without that of its processes.
///
/// `descriptors` is the number of those that it inherits.
pub(crate) fn resource_limits(
    limits: &Limits,
    descriptors: usize,
) -> Vec<(libc::__rlimit_resource_t, u64)> {
    let cpu_s = limits.cpu_s.ceil() as u64 + 1;
    vec![
        (libc::RLIMIT_AS, limits.memory_bytes.saturating_add(RESERVE_BYTES)),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_CPU, cpu_s),
        (libc::RLIMIT_FSIZE, limits.output_bytes.max(limits.temporary_bytes)),
        (libc::RLIMIT_MEMLOCK, 0),
        (libc::RLIMIT_MSGQUEUE, 0),
        (libc::RLIMIT_NOFILE, limits.files + 3 + descriptors as u64),
        (libc::RLIMIT_STACK, STACK_BYTES),
    ]
}

fn set_limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls get a valid limit.
    if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
        return Err(Error::last_os_error());
    }
    // A lower limit of the service stays.
    let most = value.min(limit.rlim_max);
    let stack = if resource == libc::RLIMIT_STACK { limit.rlim_cur.min(most) } else { most };
    let limit = libc::rlimit { rlim_cur: stack, rlim_max: most };
    // SAFETY: as above.
    match unsafe { libc::setrlimit(resource, &raw const limit) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Become another user, without groups, for good.
fn take_ids(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: the calls take numbers, and an empty list.
    let results = unsafe {
        [
            libc::setgroups(0, std::ptr::null()),
            libc::setresgid(gid, gid, gid),
            libc::setresuid(uid, uid, uid),
        ]
    };
    if results != [0, 0, 0] {
        return Err(Error::last_os_error());
    }
    // SAFETY: it must fail.
    if unsafe { libc::setresuid(0, 0, 0) } == 0 {
        return Err(Error::other("expected that root's id cannot be taken back"));
    }
    Ok(())
}

/// Take a new, empty keyring for this session.
fn leave_keyring() -> io::Result<()> {
    let no_name = std::ptr::null::<libc::c_char>();
    // SAFETY: the call takes a number and no name.
    if unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, no_name) } < 0 {
        let error = Error::last_os_error();
        // A kernel without keyrings has none to leave.
        if error.raw_os_error() != Some(libc::ENOSYS) {
            return Err(error);
        }
    }
    Ok(())
}

/// Give all signals their default actions; what a service ignores, its programs would ignore.
fn reset_signals() {
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: no handler of this process is needed any more; SIGKILL and the like are refused.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ask questions in a child that has become a user; return its answers.
///
/// # Errors
///
/// If the child cannot be started, or not become that user.
pub(crate) fn answers_as(
    user: &User,
    count: usize,
    question: impl Fn(usize) -> bool,
) -> io::Result<Vec<bool>> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let child = fork(|| {
        if take_ids(user.uid, user.gid).is_err() {
            return 1;
        }
        let answers: Vec<u8> = (0..count).map(|at| u8::from(question(at))).collect();
        i32::from(
            std::fs::File::from(writer.try_clone().expect("a descriptor is free"))
                .write_all(&answers)
                .is_err(),
        )
    })?;
    drop(writer);
    let mut answers = Vec::new();
    let result = std::fs::File::from(reader).read_to_end(&mut answers);
    wait(child)?;
    result?;
    match answers.len() == count {
        true => Ok(answers.into_iter().map(|answer| answer == 1).collect()),
        false => Err(Error::other(format!("user {} cannot be taken", user.uid))),
    }
}

/// Send SIGKILL to all processes of a user.
pub(crate) fn kill_user(user: &User) -> io::Result<()> {
    let child = fork(|| {
        if take_ids(user.uid, user.gid).is_ok() {
            // SAFETY: the ids are those of the job, so it reaches the processes of the job alone.
            unsafe { libc::kill(-1, libc::SIGKILL) };
        }
        0
    })?;
    wait(child)
}

/// Run a function in a child, which ends with its result as exit code.
pub(crate) fn fork(work: impl FnOnce() -> i32) -> io::Result<i32> {
    // SAFETY: this process has one thread, so its child may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(Error::last_os_error()),
        0 => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: the child ends without the clean-up of its parent.
            unsafe { libc::_exit(result.unwrap_or(101)) }
        }
        child => Ok(child),
    }
}

/// Wait for the end of a child.
pub(crate) fn wait(child: i32) -> io::Result<()> {
    let pid = rustix::process::Pid::from_raw(child);
    loop {
        match rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map(drop).map_err(Error::from),
        }
    }
}

/// Return a handle of a process that stays valid when its number is used again.
pub(crate) fn handle_of(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers and returns a new descriptor.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match RawFd::try_from(number) {
        // SAFETY: the descriptor is new, so nobody else owns it.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(Error::last_os_error()),
    }
}
