//! Errors as a C program sees them: a number of `errno`, and a text.

use libc::c_int;
use std::io;
use swathe_array::RegionError;
use swathe_engine::EngineError;
use swathe_store_api::{Failure, StoreError};
use swathe_trace::StartError;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) errno: c_int,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(errno: c_int, text: impl Into<String>) -> Fault {
        Fault { errno, text: text.into() }
    }

    /// A wrong argument.
    pub(crate) fn invalid(text: impl Into<String>) -> Fault {
        Fault::new(libc::EINVAL, text)
    }
}

fn errno_of_io(error: &io::Error) -> c_int {
    match error.kind() {
        // Of the sort that no system call reports: another process writes the file, or a server says
        // so.
        io::ErrorKind::ResourceBusy => libc::EBUSY,
        kind => error.raw_os_error().unwrap_or(match kind {
            io::ErrorKind::StorageFull => libc::ENOSPC,
            io::ErrorKind::QuotaExceeded => libc::EDQUOT,
            io::ErrorKind::FileTooLarge => libc::EFBIG,
            io::ErrorKind::NotADirectory => libc::ENOTDIR,
            _ => libc::EIO,
        }),
    }
}

fn errno_of_store(error: &StoreError) -> c_int {
    match error {
        StoreError::NotFound { .. } => libc::ENOENT,
        StoreError::Forbidden { .. } => libc::EACCES,
        StoreError::Changed { .. } => libc::ESTALE,
        StoreError::Exists { .. } => libc::EEXIST,
        StoreError::Unsupported { .. } => libc::ENOTSUP,
        StoreError::Interrupted { .. } => libc::EINTR,
        StoreError::Io { source, .. } => errno_of_io(source),
        _ => libc::EIO,
    }
}

fn errno_of_engine(error: &EngineError) -> c_int {
    match error {
        EngineError::Store(error) => errno_of_store(error),
        EngineError::Shared { missing: true, .. } => libc::ENOENT,
        EngineError::Empty { .. }
        | EngineError::NotAnImage { .. }
        | EngineError::Truncated { .. }
        | EngineError::Stream { .. }
        | EngineError::Header { .. }
        | EngineError::LostHdus { .. }
        | EngineError::NotFits { .. }
        | EngineError::ChunkIndex { .. }
        | EngineError::Tile { .. } => libc::EBADMSG,
        EngineError::NoSuchHdu { .. } | EngineError::NoArray { .. } => libc::ENXIO,
        EngineError::Region { source, .. } => match source {
            RegionError::NoOverlap { .. } | RegionError::Partial { .. } => libc::EDOM,
            _ => libc::EINVAL,
        },
        EngineError::Planes { .. } | EngineError::Fill { .. } => libc::EINVAL,
        EngineError::TooLarge { .. }
        | EngineError::MostlyOutside { .. }
        | EngineError::TooMany { .. } => libc::EFBIG,
        EngineError::Memory { .. } => libc::ENOMEM,
        EngineError::OutputExists { .. } => libc::EEXIST,
        EngineError::Output { source, .. } => errno_of_io(source),
        EngineError::OutputIsSource { .. } | EngineError::OutputKind { .. } => libc::EINVAL,
        EngineError::Interrupted => libc::EINTR,
        _ => libc::EIO,
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::new(errno_of_store(&error), error.to_string())
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        failure.error.into()
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        Fault::new(errno_of_engine(&error), error.to_string())
    }
}

impl From<StartError> for Fault {
    fn from(error: StartError) -> Fault {
        let errno = match &error {
            StartError::Running { .. } | StartError::Busy => libc::EBUSY,
            StartError::Destination(_) => libc::EINVAL,
            StartError::Io { source, .. } => errno_of_io(source),
            _ => libc::EIO,
        };
        Fault::new(errno, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> String {
        "s:a".into()
    }

    #[test]
    fn errors_of_stores_are_those_of_files() {
        let (why, version) = (String::new(), String::new());
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        let said_by_server = io::Error::new(io::ErrorKind::StorageFull, "h answered 507");
        let through_a_file = io::Error::from_raw_os_error(libc::ENOTDIR);
        let errors = [
            (StoreError::NotFound { url: url(), why: why.clone() }, libc::ENOENT),
            (StoreError::Forbidden { url: url(), why: why.clone() }, libc::EACCES),
            (StoreError::Changed { url: url(), version }, libc::ESTALE),
            (StoreError::Exists { url: url() }, libc::EEXIST),
            (StoreError::Unsupported { url: url(), why: why.clone() }, libc::ENOTSUP),
            (StoreError::Network { url: url(), why }, libc::EIO),
            (StoreError::Io { url: url(), source: full }, libc::ENOSPC),
            (StoreError::Io { url: url(), source: io::ErrorKind::Other.into() }, libc::EIO),
            (StoreError::Io { url: url(), source: said_by_server }, libc::ENOSPC),
            (StoreError::Io { url: url(), source: through_a_file }, libc::ENOTDIR),
        ];
        for (error, errno) in errors {
            let text = error.to_string();
            let fault = Fault::from(error);
            assert_eq!((fault.errno, &fault.text), (errno, &text));
        }
    }

    #[test]
    fn a_region_beside_the_image_is_told_from_a_wrong_one() {
        let region = swathe_array::Region { start: vec![9], stop: vec![10] };
        let beside = RegionError::NoOverlap { region, shape: vec![1] };
        let wrong = RegionError::Empty { axis: 0, start: 0, stop: 0 };
        let error =
            |source| EngineError::Region { url: url(), part: swathe_engine::Part::hdu(0), source };
        assert_eq!(Fault::from(error(beside)).errno, libc::EDOM);
        assert_eq!(Fault::from(error(wrong)).errno, libc::EINVAL);
    }
}
