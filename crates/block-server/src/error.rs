//! Errors: of requests, each with its status; of the start.

use hyper::StatusCode;
use std::io;
use std::sync::Arc;

/// Why a request is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// The request itself.
    #[error("{1}")]
    Refusal(StatusCode, String),
    #[error("{path}: not found")]
    NotFound { path: String },
    #[error("{path}: it leads out of disk {disk}")]
    LeadsOut { path: String, disk: Arc<str> },
    #[error("disk {disk}: missing: {why}")]
    DiskMissing { disk: Arc<str>, why: String },
    #[error("disk {disk}: {why}")]
    DiskBusy { disk: Arc<str>, why: String },
    #[error("disk {disk}: full: {why}")]
    DiskFull { disk: Arc<str>, why: String },
    #[error(
        "{path}: byte {byte}: expected checksum {expected:08x}, found {found:08x}; a block of 4096 bytes on \
         disk {disk} is damaged"
    )]
    DamagedBlock { path: String, disk: Arc<str>, byte: u64, expected: u32, found: u32 },
    #[error("{path}: byte {byte}: expected {expected}, found {found}; damaged on disk {disk}")]
    Damaged { path: String, disk: Arc<str>, byte: u64, expected: String, found: String },
    #[error("{path}: disk {disk}: {source}")]
    Io { path: String, disk: Arc<str>, source: io::Error },
    #[error("disk {disk}: internal error; the message is on standard error")]
    Panic { disk: Arc<str> },
}

impl RequestError {
    pub(crate) fn refuse(status: StatusCode, text: impl Into<String>) -> RequestError {
        RequestError::Refusal(status, text.into())
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            RequestError::Refusal(status, _) => *status,
            RequestError::NotFound { .. } => StatusCode::NOT_FOUND,
            RequestError::LeadsOut { .. } => StatusCode::FORBIDDEN,
            RequestError::DiskMissing { .. } | RequestError::DiskBusy { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            RequestError::DiskFull { .. } => StatusCode::INSUFFICIENT_STORAGE,
            RequestError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                StatusCode::FORBIDDEN
            }
            RequestError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidFilename => {
                StatusCode::BAD_REQUEST
            }
            RequestError::DamagedBlock { .. }
            | RequestError::Damaged { .. }
            | RequestError::Io { .. }
            | RequestError::Panic { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether a disk does not say what it has.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, RequestError::DiskMissing { .. } | RequestError::DiskBusy { .. })
    }

    /// The byte of an object near which a disk does not have what was written there.
    pub(crate) fn damage(&self) -> Option<u64> {
        match self {
            RequestError::DamagedBlock { byte, .. } | RequestError::Damaged { byte, .. } => {
                Some(*byte)
            }
            _ => None,
        }
    }
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A disk cannot be used.
    #[error("disk {path}: {why}")]
    Disk {
        /// Its folder.
        path: String,
        /// Why not.
        why: String,
    },
    /// The address cannot be used.
    #[error("{address}: {why}")]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        why: String,
    },
    /// The certificate or its key cannot be used.
    #[error("{why}")]
    Certificate {
        /// Why not.
        why: String,
    },
    /// The system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
}
