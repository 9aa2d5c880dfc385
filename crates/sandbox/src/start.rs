//! Start a program in a mode: bubblewrap around it, or Landlock in it.

use crate::bubblewrap::{Options, Places, bubblewrap};
use crate::child::{Confinement, handle_of, resource_limits};
use crate::error::{Context, Error};
use crate::file_rules::file_rules;
use crate::folder::JobFolder;
use crate::inputs::{OpenInput, Way, link_inputs, readable_inputs};
use crate::process_table::processes_of;
use crate::request::Request;
use crate::syscall_filter::filters;
use crate::users::User;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Where programs are looked up.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a start needs.
pub(crate) struct Job<'a> {
    pub(crate) request: &'a Request,
    pub(crate) user: &'a User,
    pub(crate) folder: &'a JobFolder,
    pub(crate) inputs: &'a [OpenInput],
}

/// A program that has been started.
pub(crate) struct Launch {
    /// Child of this process: the program, or bubblewrap.
    pub(crate) pid: i32,
    pub(crate) handle: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// Under bubblewrap: what it says of itself, and what it waits for before it goes on.
    pub(crate) bubblewrap: Option<(OwnedFd, OwnedFd)>,
}

impl Job<'_> {
    /// Start the program in namespaces that bubblewrap makes.
    pub(crate) fn start_in_bubblewrap(&self) -> Result<Launch, Error> {
        let program = bubblewrap()?;
        let folders = self.open_folders()?;
        let readable = readable_inputs(self.inputs, Way::File, self.user, self.folder)?;
        let (status, their_status) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
        let (their_gate, gate) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
        let places = Places {
            folders: &folders,
            inputs: self.inputs,
            readable: &readable,
            out: self.folder.out(),
        };
        let variables = self.environment("/in", "/out", "/tmp");
        let limits = &self.request.limits;
        let mut options = Options::new(&places, &variables, limits, &their_status, &their_gate)?;
        let mut command = Command::new(program);
        command.args(options.arguments()?).args(self.words("/in", "/out", "/tmp"));
        command.env("PATH", PATH).current_dir("/");
        let confinement = Confinement {
            ids: self.ids(),
            parent: own_pid(),
            is_leader: false,
            limits: resource_limits(limits, options.descriptors.len()),
            descriptors: options.descriptors.clone(),
            rules: None,
            filters: Vec::new(),
        };
        let launch = spawn(command, confinement).context(program)?;
        Ok(Launch { bubblewrap: Some((status, gate)), ..launch })
    }

    /// Start the program within Landlock's rules.
    pub(crate) fn start_in_landlock(&self) -> Result<Launch, Error> {
        let folders: Vec<OwnedFd> =
            self.open_folders()?.into_iter().map(|(_, file)| file).collect();
        let readable = readable_inputs(self.inputs, Way::Path, self.user, self.folder)?;
        let rules = file_rules(self.user.is_other, &folders, &readable, self.folder)?;
        link_inputs(self.inputs, &readable, self.folder)?;
        let place = |name: &str| self.folder.path.join(name).to_string_lossy().into_owned();
        let (inputs, out, temporary) = (place("in"), place("out"), place("tmp"));
        let words = self.words(&inputs, &out, &temporary);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().current_dir(&out);
        command.envs(self.environment(&inputs, &out, &temporary));
        let mut limits = resource_limits(&self.request.limits, 0);
        // The kernel counts all processes of a user.
        let others = if self.user.is_other { 0 } else { threads_of(self.user.uid) };
        limits.push((libc::RLIMIT_NPROC, self.request.limits.processes + others));
        let confinement = Confinement {
            ids: self.ids(),
            parent: own_pid(),
            is_leader: true,
            limits,
            descriptors: Vec::new(),
            rules: Some(rules),
            filters: filters(false)?,
        };
        spawn(command, confinement).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Request(format!(
                "command: {}: expected a program in the box, found none",
                words[0]
            )),
            io::ErrorKind::PermissionDenied => Error::Request(format!(
                "command: {}: expected a program that user {} may run in {}",
                words[0],
                self.user.uid,
                self.folder.path.display()
            )),
            _ => Error::Io { what: "Landlock".into(), source: error },
        })
    }

    fn ids(&self) -> Option<(u32, u32)> {
        self.user.is_other.then_some((self.user.uid, self.user.gid))
    }

    fn open_folders(&self) -> Result<Vec<(String, OwnedFd)>, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open_folder = |path: &String| match open(path, flags, Mode::empty()) {
            Ok(file) => Ok((path.clone(), file)),
            Err(error) => Err(Error::Request(format!("folder {path}: {}", io::Error::from(error)))),
        };
        // Those below /usr are there anyway.
        let folders = self.request.folders.iter().filter(|path| !path.starts_with("/usr/"));
        folders.map(open_folder).collect()
    }

    /// The command, with the places in the box put in.
    fn words(&self, inputs: &str, out: &str, temporary: &str) -> Vec<String> {
        let put_in = |word: &String| {
            word.replace("{in}", inputs).replace("{out}", out).replace("{tmp}", temporary)
        };
        self.request.command.iter().map(put_in).collect()
    }

    fn environment(&self, inputs: &str, out: &str, temporary: &str) -> Vec<(String, String)> {
        let always = [
            ("PATH", PATH),
            ("HOME", temporary),
            ("TMPDIR", temporary),
            ("LANG", "C.UTF-8"),
            ("OMP_NUM_THREADS", "1"),
            ("OPENBLAS_NUM_THREADS", "1"),
            ("HDF5_USE_FILE_LOCKING", "FALSE"),
            ("SWATHE_IN", inputs),
            ("SWATHE_OUT", out),
        ];
        let own = self.request.environment.iter();
        let is_own = |name: &str| self.request.environment.contains_key(name);
        let always = always.into_iter().filter(|(name, _)| !is_own(name));
        always
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .chain(own.map(|(name, value)| (name.clone(), value.clone())))
            .collect()
    }
}

fn spawn(mut command: Command, mut confinement: Confinement) -> io::Result<Launch> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: this process has one thread, so its child may do whatever this process may.
    unsafe { command.pre_exec(move || confinement.enter()) };
    let mut child = command.spawn()?;
    let pid = child.id() as i32;
    let stdout = OwnedFd::from(child.stdout.take().expect("it is a pipe"));
    let stderr = OwnedFd::from(child.stderr.take().expect("it is a pipe"));
    for stream in [&stdout, &stderr] {
        ioctl_fionbio(stream, true)?;
    }
    Ok(Launch { pid, handle: handle_of(pid)?, stdout, stderr, bubblewrap: None })
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

fn threads_of(uid: u32) -> u64 {
    processes_of(uid).iter().map(|process| process.threads).sum()
}
