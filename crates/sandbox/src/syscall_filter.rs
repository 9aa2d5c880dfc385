//! System calls that a job may not make. Each filter is a program for the kernel's seccomp.
//!
//! A job has what a program needs that reads, computes and writes. What opens a way to the kernel,
//! to others or around a limit is refused: with `ENOSYS`, if libraries then do without it, else with
//! `EPERM`. Calls of another architecture end the job.

use crate::error::Error;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// First number of calls that no filter here knows: all that are newer are refused.
const FIRST_UNKNOWN: u32 = 463;
/// Bit of the numbers of calls of x32, another architecture.
const X32: u32 = 0x4000_0000;

/// Libraries do without these.
const MISSING: &[i64] = &[
    libc::SYS_clone3, // its flags cannot be examined
    libc::SYS_fanotify_mark,
    libc::SYS_flock,             // would stop others who lock an input
    libc::SYS_inotify_add_watch, // tells the names in folders that the job may not list
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_memfd_create, // memory that no process shows
    libc::SYS_memfd_secret,
    // What others of the same user share. An id is enough: nothing has to be opened first.
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_shmget,
];

#[cfg(target_arch = "x86_64")]
const MISSING_HERE: &[i64] = &[libc::SYS_inotify_init];
#[cfg(not(target_arch = "x86_64"))]
const MISSING_HERE: &[i64] = &[];

const REFUSALS: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_socket,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    443, // quotactl_fd
];

#[cfg(target_arch = "x86_64")]
const REFUSALS_HERE: &[i64] =
    &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const REFUSALS_HERE: &[i64] = &[];

/// What Landlock leaves open: attributes of files, sockets, and other processes of the same user.
/// With `setsid` and `setpgid` refused, all processes of a job stay in one group, and one signal
/// kills them all.
const REFUSALS_WITHOUT_NAMESPACES: &[i64] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    452, // fchmodat2
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_ioprio_set,
    libc::SYS_linkat,
    libc::SYS_listen,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_mknodat,
    libc::SYS_removexattr,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_setpgid,
    libc::SYS_setpriority,
    libc::SYS_setsid,
    libc::SYS_setxattr,
    libc::SYS_symlinkat,
    libc::SYS_utimensat,
];

#[cfg(target_arch = "x86_64")]
const REFUSALS_WITHOUT_NAMESPACES_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_futimesat,
    libc::SYS_lchown,
    libc::SYS_link,
    libc::SYS_mknod,
    libc::SYS_symlink,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSALS_WITHOUT_NAMESPACES_HERE: &[i64] = &[];

/// Flags of `clone` that make a namespace: cgroup, ipc, net, mount, pid, user, uts.
const NAMESPACES: [u64; 7] = [
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWNET as u64,
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWUTS as u64,
];
/// TIOCSTI and TIOCLINUX, which type on a terminal. The kernel looks at the low 32 bits of its number.
const TERMINAL_REQUESTS: [u64; 2] = [0x5412, 0x541c];
/// Options of sockets that give them more memory. It is the kernel's, so it is no process's.
const BUFFER_OPTIONS: [i32; 4] =
    [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE];
/// The bits of the type of a socket that are no flags.
const SOCKET_KIND: u64 = 0xf;

/// Return the filters of a job, in the order in which they are to be loaded.
///
/// # Errors
///
/// [`Error::Unavailable`] if there are none for this architecture.
pub(crate) fn filters(has_namespaces: bool) -> Result<Vec<BpfProgram>, Error> {
    let missing: Rules =
        [MISSING, MISSING_HERE].concat().into_iter().map(|call| (call, Vec::new())).collect();
    Ok(vec![
        compile(refusals(has_namespaces)?, libc::EPERM)?,
        compile(missing, libc::ENOSYS)?,
        newer_calls(),
    ])
}

/// Return a program as the bytes that bubblewrap reads.
pub(crate) fn program_bytes(program: &BpfProgram) -> Vec<u8> {
    let bytes = |each: &sock_filter| {
        let [a, b] = each.code.to_ne_bytes();
        let [c, d, e, f] = each.k.to_ne_bytes();
        [a, b, each.jt, each.jf, c, d, e, f]
    };
    program.iter().flat_map(bytes).collect()
}

fn refusals(has_namespaces: bool) -> Result<Rules, Error> {
    let mut rules: Rules =
        [REFUSALS, REFUSALS_HERE].concat().into_iter().map(|call| (call, Vec::new())).collect();
    if !has_namespaces {
        let all = [REFUSALS_WITHOUT_NAMESPACES, REFUSALS_WITHOUT_NAMESPACES_HERE].concat();
        rules.extend(all.into_iter().map(|call| (call, Vec::new())));
    }
    // Loops of events need pairs of streams. A datagram could go to sockets of others, and stay in
    // memory after its sender is closed.
    let not_unix = rule(vec![condition(0, Ne, libc::AF_UNIX as u64)?])?;
    let is_datagram = |kind: i32| rule(vec![condition(1, MaskedEq(SOCKET_KIND), kind as u64)?]);
    let pairs = vec![not_unix, is_datagram(libc::SOCK_DGRAM)?, is_datagram(libc::SOCK_RAW)?];
    rules.insert(libc::SYS_socketpair, pairs);
    let level = condition(1, Eq, libc::SOL_SOCKET as u64)?;
    let options = BUFFER_OPTIONS
        .iter()
        .map(|option| rule(vec![level.clone(), condition(2, Eq, *option as u64)?]));
    rules.insert(libc::SYS_setsockopt, options.collect::<Result<_, _>>()?);
    let grows = rule(vec![condition(1, Eq, libc::F_SETPIPE_SZ as u64)?])?;
    rules.insert(libc::SYS_fcntl, vec![grows]);
    // It would hide the files that a process has open.
    let hides = rule(vec![condition(0, Eq, libc::PR_SET_DUMPABLE as u64)?])?;
    rules.insert(libc::SYS_prctl, vec![hides]);
    let clones = NAMESPACES.iter().map(|flag| rule(vec![condition(0, MaskedEq(*flag), *flag)?]));
    rules.insert(libc::SYS_clone, clones.collect::<Result<_, _>>()?);
    let requests = TERMINAL_REQUESTS
        .iter()
        .map(|number| rule(vec![condition(1, MaskedEq(0xffff_ffff), *number)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // Limits of other processes.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![condition(0, Ne, 0)?])?]);
    Ok(rules)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Error> {
    SeccompCondition::new(argument, Dword, operator, value).map_err(unavailable)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Error> {
    SeccompRule::new(conditions).map_err(unavailable)
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(unavailable)?;
    let refuse = SeccompAction::Errno(errno as u32);
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).map_err(unavailable)?;
    filter.try_into().map_err(unavailable)
}

fn unavailable(error: seccompiler::BackendError) -> Error {
    Error::Unavailable(format!("seccomp: {error}"))
}

/// Return a program that refuses calls newer than this list, and ends a job that uses x32.
fn newer_calls() -> BpfProgram {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let is_at_least = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    vec![
        step(load, 0, 0, 0), // the number of the call
        step(is_at_least, 2, 0, X32),
        step(is_at_least, 2, 0, FIRST_UNKNOWN),
        step(end, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(end, 0, 0, libc::SECCOMP_RET_KILL_PROCESS),
        step(end, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ]
}
