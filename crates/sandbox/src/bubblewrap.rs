//! The command line of bubblewrap. Its destinations are constants, names that were checked, and
//! folders of the operator; nothing that a user wrote is among its options.

use crate::error::{Context, Error};
use crate::inputs::OpenInput;
use crate::request::Limits;
use crate::syscall_filter::{filters, program_bytes};
use rustix::fs::{MemfdFlags, memfd_create, seek};
use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// Where bubblewrap may be; never where a variable says.
const PROGRAMS: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
const SETUID: u32 = 0o6000;
const SYSTEM_FOLDERS: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Needed to find libraries and compilers.
const SYSTEM_FILES: [&str; 2] = ["/etc/ld.so.cache", "/etc/alternatives"];
/// Part of the temporary files that shared memory may take besides.
const SHARED_PART: u64 = 4;
const LEAST_SHARED_BYTES: u64 = 65_536;

/// Return the path of bubblewrap.
///
/// # Errors
///
/// [`Error::Unavailable`] if there is none, or it is a setuid program.
pub(crate) fn bubblewrap() -> Result<&'static str, Error> {
    let program = PROGRAMS.iter().find_map(|path| Some((path, fs::metadata(path).ok()?)));
    match program {
        None => Err(Error::Unavailable("bubblewrap is not installed".into())),
        Some((path, meta)) if meta.mode() & SETUID != 0 => {
            Err(Error::Unavailable(format!("{path}: expected no setuid program")))
        }
        Some((path, _)) => Ok(path),
    }
}

/// Options of bubblewrap, and the descriptors that they name.
pub(crate) struct Options {
    words: Vec<String>,
    /// Those that bubblewrap inherits.
    pub(crate) descriptors: Vec<RawFd>,
    files: Vec<OwnedFd>,
}

/// What is shown in the box.
pub(crate) struct Places<'a> {
    pub(crate) folders: &'a [(String, OwnedFd)],
    pub(crate) inputs: &'a [OpenInput],
    pub(crate) readable: &'a [OwnedFd],
    pub(crate) out: BorrowedFd<'a>,
}

impl Options {
    /// Return the options of a job.
    pub(crate) fn new(
        places: &Places<'_>,
        environment: &[(String, String)],
        limits: &Limits,
        status: &OwnedFd,
        gate: &OwnedFd,
    ) -> Result<Options, Error> {
        let mut options = Options { words: Vec::new(), descriptors: Vec::new(), files: Vec::new() };
        options.add(
            "--unshare-all --unshare-user --disable-userns --die-with-parent --new-session \
             --cap-drop ALL --clearenv",
        );
        for (name, value) in environment {
            options.words.extend(["--setenv".into(), name.clone(), value.clone()]);
        }
        options.add_system();
        options.add("--proc /proc --ro-bind /proc/sys /proc/sys --dev /dev");
        let bytes = limits.temporary_bytes;
        let shared_bytes = (bytes / SHARED_PART).max(LEAST_SHARED_BYTES);
        options.add(&format!("--size {shared_bytes} --tmpfs /dev/shm --size {bytes} --tmpfs /tmp"));
        options.add("--dir /in");
        for (path, folder) in places.folders {
            options.add_descriptor("--ro-bind-fd", folder.as_raw_fd());
            options.words.push(path.clone());
        }
        for (input, file) in places.inputs.iter().zip(places.readable) {
            options.add_descriptor("--ro-bind-fd", file.as_raw_fd());
            options.words.push(format!("/in/{}", input.name));
        }
        options.add_descriptor("--bind-fd", places.out.as_raw_fd());
        options.add("/out --remount-ro /dev --remount-ro / --chdir /out");
        for program in filters(true)? {
            let number = options.memory_file(&program_bytes(&program))?;
            options.add_descriptor("--add-seccomp-fd", number);
        }
        options.add_descriptor("--json-status-fd", status.as_raw_fd());
        options.add_descriptor("--block-fd", gate.as_raw_fd());
        Ok(options)
    }

    /// Return the words of the command line before the program's own.
    pub(crate) fn arguments(&mut self) -> Result<Vec<String>, Error> {
        let text: Vec<u8> =
            self.words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        let number = self.memory_file(&text)?;
        self.descriptors.push(number);
        Ok(vec!["--args".into(), number.to_string(), "--".into()])
    }

    fn add(&mut self, words: &str) {
        self.words.extend(words.split_whitespace().map(str::to_string));
    }

    fn add_descriptor(&mut self, option: &str, number: RawFd) {
        self.words.extend([option.to_string(), number.to_string()]);
        self.descriptors.push(number);
    }

    /// Programs and libraries. Most systems have all of them below `/usr`.
    fn add_system(&mut self) {
        self.add("--ro-bind /usr /usr");
        for name in SYSTEM_FOLDERS {
            match fs::symlink_metadata(format!("/{name}")) {
                Ok(meta) if meta.is_symlink() => self.add(&format!("--symlink usr/{name} /{name}")),
                Ok(_) => self.add(&format!("--ro-bind /{name} /{name}")),
                Err(_) => {}
            }
        }
        for path in SYSTEM_FILES {
            self.add(&format!("--ro-bind-try {path} {path}"));
        }
    }

    fn memory_file(&mut self, bytes: &[u8]) -> Result<RawFd, Error> {
        let file = memfd_create("swathe-sandbox", MemfdFlags::CLOEXEC).context("memfd_create")?;
        let mut file = fs::File::from(file);
        file.write_all(bytes).context("memfd")?;
        seek(&file, rustix::fs::SeekFrom::Start(0)).context("memfd")?;
        let file = OwnedFd::from(file);
        let number = file.as_raw_fd();
        self.files.push(file);
        Ok(number)
    }
}
