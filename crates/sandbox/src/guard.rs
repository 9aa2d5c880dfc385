//! Two processes look after a job: this one, which answers, and its guardian, which runs the job.
//! Each cleans up if the other is killed.

use crate::child::{fork, wait};
use crate::collect::Results;
use crate::error::{Context, Error};
use crate::folder::JobFolder;
use crate::inputs::{OpenInput, open_inputs};
use crate::report::{Reason, Report, Status};
use crate::request::Request;
use crate::start::Job;
use crate::supervise::{Surroundings, end_children, kill_tree, supervise};
use crate::users::User;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Mode, OFlags, open, unlinkat};
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Any process id says yes.
const IS_SUBREAPER: Option<rustix::process::Pid> = Some(rustix::process::Pid::INIT);

/// Run the program of a request, and return what became of it.
///
/// The job is cancelled at the end of `leash`, if it is given. The process must have one thread and
/// no children: at the end, all of them are killed.
pub fn run(request: &Request, leash: Option<BorrowedFd<'_>>) -> Report {
    Preparation::new(request)
        .and_then(|preparation| preparation.run(leash))
        .unwrap_or_else(|error| Report::failure(&error))
}

/// What a job needs before it starts; it is the same in both processes.
struct Preparation<'a> {
    request: &'a Request,
    user: User,
    inputs: Vec<OpenInput>,
    results: Option<OwnedFd>,
    folder: JobFolder,
}

impl<'a> Preparation<'a> {
    fn new(request: &'a Request) -> Result<Preparation<'a>, Error> {
        let user = User::choose(request.users)?;
        let inputs = open_inputs(&request.inputs)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open_results = |path| {
            open(path, flags, Mode::empty())
                .map_err(|error| Error::Request(format!("collect: {}", io::Error::from(error))))
        };
        let results = request.collect.as_deref().map(open_results).transpose()?;
        let folder = JobFolder::create(request.work.as_deref(), &user)?;
        Ok(Preparation { request, user, inputs, results, folder })
    }

    fn run(&self, leash: Option<BorrowedFd<'_>>) -> Result<Report, Error> {
        let pipes = || pipe_with(PipeFlags::CLOEXEC).context("pipe");
        let (their_leash, own_leash) = pipes()?;
        let (answers, their_answers) = pipes()?;
        let mut own_leash = Some(own_leash);
        // Orphans of a guardian that is killed become children of this process.
        rustix::process::set_child_subreaper(IS_SUBREAPER).context("subreaper")?;
        let guardian = fork(|| {
            // Only with this copy closed does the leash end with the other process.
            drop(own_leash.take());
            i32::from(self.guard(&their_leash, &their_answers).is_err())
        })
        .context("fork")?;
        drop((their_leash, their_answers));
        let answer = Answer::read(answers, leash, &mut own_leash).context("guardian")?;
        wait(guardian).context("guardian")?;
        answer.report.map_or_else(|| self.clean_up(answer.group), Ok)
    }

    /// Run the job in the guardian, and send what became of it.
    fn guard(&self, leash: &OwnedFd, answers: &OwnedFd) -> io::Result<()> {
        // Ctrl-C is for the other process, whose end this one notices.
        rustix::process::setsid()?;
        leave_streams()?;
        rustix::process::set_child_subreaper(IS_SUBREAPER)?;
        let answers = File::from(answers.try_clone()?);
        let results = self.request.collect.as_deref().zip(self.results.as_ref());
        let surroundings = Surroundings {
            job: Job {
                request: self.request,
                user: &self.user,
                folder: &self.folder,
                inputs: &self.inputs,
            },
            results: results.map(|(path, folder)| Results { path, folder }),
            leash,
            on_start: &|group| {
                // Without the other process nobody needs it.
                let _ = writeln!(&answers, "{group}");
            },
        };
        let mut report = supervise(&surroundings);
        if let Err(error) = self.folder.remove() {
            report.status = Status::Xx;
            report.reason = Some(Reason::Failure);
            report.message = format!("files of the job stay: {error}");
        }
        let text = serde_json::to_string(&report)?;
        writeln!(&answers, "{text}").inspect_err(|_| self.remove_results(&report))
    }

    /// Remove what was collected for a process that is gone.
    fn remove_results(&self, report: &Report) {
        for (output, folder) in report.outputs.iter().zip(self.results.iter().cycle()) {
            // Nobody is there to be told.
            let _ = unlinkat(folder, &output.name, AtFlags::empty());
        }
    }

    /// End the job of a guardian that was killed, and remove its files.
    fn clean_up(&self, group: Option<i32>) -> Result<Report, Error> {
        if let Some(group) = group {
            kill_tree(Some((&self.user, group)))?;
        }
        end_children()?;
        self.folder.remove()?;
        Err(Error::Io { what: "guardian".into(), source: io::Error::other("it was killed") })
    }
}

/// What a guardian says: the group of processes to kill, if there is one; then the report.
#[derive(Default)]
struct Answer {
    group: Option<i32>,
    report: Option<Report>,
}

impl Answer {
    /// Read until the guardian ends. If `leash` ends before, so does that of the guardian.
    fn read(
        answers: OwnedFd,
        mut leash: Option<BorrowedFd<'_>>,
        own_leash: &mut Option<OwnedFd>,
    ) -> io::Result<Answer> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            let mut files = vec![PollFd::new(&answers, PollFlags::IN)];
            files.extend(leash.iter().map(|leash| PollFd::new(leash, PollFlags::IN)));
            match poll(&mut files, None) {
                Err(Errno::INTR) => continue,
                other => other?,
            };
            let is_ready = |at: usize| files.get(at).is_some_and(|file| !file.revents().is_empty());
            let (has_answer, has_end) = (is_ready(0), is_ready(1));
            if let Some(file) = leash.filter(|_| has_end)
                && read(file, &mut buffer)? == 0
            {
                (leash, *own_leash) = (None, None);
            }
            if has_answer {
                match read(&answers, &mut buffer)? {
                    0 => break,
                    count => bytes.extend_from_slice(&buffer[..count]),
                }
            }
        }
        let mut answer = Answer::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            match std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()) {
                Some(group) => answer.group = Some(group),
                None if line.is_empty() => {}
                None => answer.report = Some(serde_json::from_slice(line)?),
            }
        }
        Ok(answer)
    }
}

/// Let go of standard input and output, which are the other process's.
fn leave_streams() -> io::Result<()> {
    let nothing = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for number in [0, 1] {
        // SAFETY: both descriptors are open, and nobody here owns the standard ones.
        if unsafe { libc::dup2(nothing.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
