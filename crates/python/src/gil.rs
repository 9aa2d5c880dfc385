//! The way from Python into work: without the GIL, with errors mapped; into long work with Ctrl-C.

use crate::errors::to_python;
use crate::trace::scope_of;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use swathe_engine::{Cancel, EngineError, Turn};

/// How long Ctrl-C may go unnoticed.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// How long a thread looks for news before it sleeps. A small cut takes 20 us, to wake a thread of
/// an idle core takes 50, and each cut would wake two: 110 to 150 us, and 30 with this.
static AWAKE: LazyLock<Duration> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, usize::from);
    if cores > 1 { Duration::from_micros(100) } else { Duration::ZERO }
});

/// Of the threads that come back from `stay`.
static TURN: Turn = Turn::new();

/// Run `work` on another thread while this one waits for it or for a signal. On a signal
/// `cancel` is set and the signal's exception raised; the thread then ends by itself. Signals reach
/// only the main thread of Python: any other runs `work` itself. Its events have the ids of the
/// context of Python that it is called in.
pub(crate) fn enter<T: Send + 'static>(
    py: Python<'_>,
    cancel: &Cancel,
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> PyResult<T> {
    if !is_main(py)? {
        return stay(py, work);
    }
    let scope = scope_of(py)?;
    let (sender, mut receiver) = channel();
    let helper = match Helper::take() {
        Ok(helper) => helper,
        Err(source) => return Err(to_python(py, &no_thread(&source))),
    };
    let of_work = cancel.clone();
    let result = helper.send(Box::new(move || {
        scope.adopt();
        of_work.enter();
        // The receiver is gone only if a signal ended the wait: then nobody wants the result.
        let _ = sender.send(work());
    }));
    if let Err(source) = result {
        return Err(to_python(py, &no_thread(&source)));
    }
    loop {
        let (answer, receiver_back) = py.detach(move || {
            let answer = match try_receive(&receiver) {
                Err(TryRecvError::Empty) => receiver.recv_timeout(SIGNALS_EVERY),
                result => result.map_err(|_| RecvTimeoutError::Disconnected),
            };
            (answer, receiver)
        });
        match answer {
            Ok(result) => {
                helper.keep();
                return result.map_err(|error| to_python(py, &error));
            }
            Err(RecvTimeoutError::Timeout) => {
                receiver = receiver_back;
                if let Err(signal) = py.check_signals() {
                    cancel.cancel();
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Err(panic_error(py)),
        }
    }
}

/// Run brief `work` on this thread; signals wait for its end. On a busy machine another thread would
/// begin and end it milliseconds later.
pub(crate) fn stay<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, EngineError> + Send,
) -> PyResult<T> {
    scope_of(py)?.adopt();
    let result = py.detach(|| {
        TURN.leave();
        let result = catch_unwind(AssertUnwindSafe(work));
        TURN.take(*AWAKE);
        result
    });
    match result {
        Ok(result) => result.map_err(|error| to_python(py, &error)),
        Err(_) => Err(panic_error(py)),
    }
}

/// Receive a value that comes within a moment, without sleeping. Other threads that are ready run
/// meanwhile.
fn try_receive<T>(receiver: &Receiver<T>) -> Result<T, TryRecvError> {
    let start = Instant::now();
    loop {
        match receiver.try_recv() {
            Err(TryRecvError::Empty) if start.elapsed() < *AWAKE => std::thread::yield_now(),
            result => return result,
        }
    }
}

/// A thread that does one piece of work after the other: to begin one for each takes longer than
/// most cuts. Dropped, it ends once its work is done.
struct Helper {
    work: Sender<Work>,
    process: u32,
}

type Work = Box<dyn FnOnce() + Send>;

/// The one that waits for work. It is taken and put back by the main thread of Python, which holds
/// the GIL meanwhile: who forks holds that, too, so that a child never finds the lock taken.
static WAITING: Mutex<Option<Helper>> = Mutex::new(None);

impl Helper {
    /// The one that waits, else a new one. A child of a fork has none of the threads of its parent.
    fn take() -> io::Result<Helper> {
        let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner).take();
        match waiting {
            Some(helper) if helper.process == std::process::id() => Ok(helper),
            _ => Helper::start(),
        }
    }

    fn start() -> io::Result<Helper> {
        let (sender, receiver) = channel::<Work>();
        let work = move || {
            while let Ok(work) = try_receive(&receiver).or_else(|_| receiver.recv()) {
                work();
            }
        };
        std::thread::Builder::new().name("swathe".into()).spawn(work)?;
        Ok(Helper { work: sender, process: std::process::id() })
    }

    /// Have it do work.
    fn send(&self, work: Work) -> io::Result<()> {
        self.work.send(work).map_err(|_| io::Error::other("the helper thread has ended"))
    }

    /// Let it wait for more, now that its work is done.
    fn keep(self) {
        *WAITING.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }
}

fn no_thread(source: &io::Error) -> EngineError {
    EngineError::Internal { place: "starting a thread".into(), message: source.to_string() }
}

fn panic_error(py: Python<'_>) -> PyErr {
    to_python(
        py,
        &EngineError::Internal {
            place: "native code".into(),
            message: "a thread panicked; the message is on standard error".into(),
        },
    )
}

/// Whether this is the main thread of Python.
fn is_main(py: Python<'_>) -> PyResult<bool> {
    static ASK: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (main, current) = ASK.get_or_try_init(py, || -> PyResult<_> {
        let threading = py.import("threading")?;
        let function = |name| Ok::<_, PyErr>(threading.getattr(name)?.unbind());
        Ok((function("main_thread")?, function("get_ident")?))
    })?;
    main.bind(py).call0()?.getattr("ident")?.eq(current.bind(py).call0()?)
}
