//! What a job may open without namespaces: Landlock's rules on files, ports and signals.

use crate::error::Error;
use crate::folder::JobFolder;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope, make_bitflags,
};
use std::os::fd::{AsFd, OwnedFd};

const ONLY_VERSION: u32 = 1;
/// Below it, a job could truncate files of others.
const LEAST_ABI: i64 = 3;
/// From it on, a job cannot signal others of its own user.
const SCOPE_ABI: i64 = 6;

/// Programs and libraries; what is not there is left out.
const PROGRAMS: [&str; 7] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/localtime"];
const LOADER_CACHE: &str = "/etc/ld.so.cache";
/// Devices that hold nothing.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Return the version of Landlock's interface; 0 if the kernel has none.
pub(crate) fn landlock_abi() -> i64 {
    // SAFETY: without a ruleset the call only returns the version.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            ONLY_VERSION,
        )
    };
    abi.max(0)
}

/// Return the rules of a job.
///
/// # Errors
///
/// [`Error::Unavailable`] if the kernel's Landlock is missing or too old for this user.
pub(crate) fn file_rules(
    has_own_user: bool,
    folders: &[OwnedFd],
    inputs: &[OwnedFd],
    job: &JobFolder,
) -> Result<RulesetCreated, Error> {
    let abi = match landlock_abi() {
        0 => return Err(Error::Unavailable("the kernel has no Landlock, or it is off".into())),
        old if old < LEAST_ABI => {
            return Err(Error::Unavailable(format!(
                "Landlock: expected ABI {LEAST_ABI} (Linux 6.2) or newer, found {old}"
            )));
        }
        old if old < SCOPE_ABI && !has_own_user => {
            return Err(Error::Unavailable(format!(
                "Landlock: expected ABI {SCOPE_ABI} (Linux 6.12) or newer for a job of the same \
                 user, which could signal others; found {old}. Start the service as root and give \
                 it user ids"
            )));
        }
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    };
    rules(abi, folders, inputs, job)
        .map_err(|error| Error::Unavailable(format!("Landlock: {error}")))
}

fn rules(
    abi: ABI,
    folders: &[OwnedFd],
    inputs: &[OwnedFd],
    job: &JobFolder,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    // No links, no pipes, no sockets, no devices.
    let write: BitFlags<AccessFs> = run
        | make_bitflags!(AccessFs::{
            WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir | Refer
        });
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    let mut rules = ruleset.create()?;
    let mut allow = |place: &dyn AsFd, rights: BitFlags<AccessFs>| {
        let rights = if is_folder(place) { rights } else { rights & AccessFs::from_file(abi) };
        (&mut rules).add_rule(PathBeneath::new(place.as_fd(), rights)).map(drop)
    };
    for path in PROGRAMS.iter().chain([&LOADER_CACHE]) {
        if let Ok(place) = PathFd::new(path) {
            allow(&place, run)?;
        }
    }
    for path in DEVICES {
        if let Ok(place) = PathFd::new(path) {
            allow(&place, AccessFs::ReadFile | AccessFs::WriteFile)?;
        }
    }
    for folder in folders {
        allow(folder, run)?;
    }
    for input in inputs {
        allow(input, read)?;
    }
    for name in ["out", "tmp"] {
        if let Ok(place) = job.open(name) {
            allow(&place, write)?;
        }
    }
    Ok(rules)
}

fn is_folder(place: &dyn AsFd) -> bool {
    rustix::fs::fstat(place.as_fd()).is_ok_and(|meta| meta.st_mode & libc::S_IFMT == libc::S_IFDIR)
}
