//! An object that is open to be read: at any offset, or from a position on.

use crate::fault::Fault;
use crate::known_stores::known_stores;
use libc::c_int;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use swathe_engine::{Cancel, EngineError, Object};
use swathe_store_api::{Source, StoreError, Stores};

/// An open object, read by any number of threads.
pub(crate) struct Reader {
    pub(crate) stores: Stores,
    /// As it was opened.
    pub(crate) name: String,
    pub(crate) source: Arc<dyn Source>,
    /// Its headers, once something was cut from it.
    object: Mutex<Option<Arc<Object>>>,
}

impl Reader {
    pub(crate) fn open(name: &str) -> Result<Reader, Fault> {
        let stores = known_stores()?;
        let source = stores.open(name).map_err(|error| open_fault(&stores, name, error))?;
        Ok(Reader { stores, name: name.to_string(), source, object: Mutex::default() })
    }

    /// Fill a buffer from `offset`, up to the end of the object; returns how many bytes.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let rest = self.source.len().saturating_sub(offset);
        let count = rest.min(buffer.len() as u64) as usize;
        if count > 0 {
            let result = self.source.read_exact_at(offset, &mut buffer[..count]);
            result.map_err(|error| self.read_fault(error))?;
        }
        Ok(count)
    }

    /// Fill a buffer for each range, all with one plan. They end within the object.
    pub(crate) fn read_ranges(
        &self,
        ranges: &[Range<u64>],
        buffers: &mut [&mut [u8]],
    ) -> Result<(), Fault> {
        swathe_engine::read_ranges(&*self.source, ranges, buffers)
            .map_err(|error| self.engine_fault(error))
    }

    /// The object as one that holds images. Its headers are read once.
    pub(crate) fn object(&self) -> Result<Arc<Object>, Fault> {
        let mut object = self.object.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = &*object {
            return Ok(object.clone());
        }
        let name = self.stores.is_named(&self.name).then(|| self.name.clone());
        let source = self.source.clone();
        let new = Object::of_source(source, name, &self.stores, Cancel::default());
        let new = new.map_err(|error| self.engine_fault(error))?;
        Ok(object.insert(Arc::new(new)).clone())
    }

    /// The error of a read or a cut.
    pub(crate) fn engine_fault(&self, error: EngineError) -> Fault {
        match error {
            EngineError::Store(error) => self.read_fault(error),
            error => error.into(),
        }
    }

    /// A file that is shorter than when it was opened was changed.
    fn read_fault(&self, error: StoreError) -> Fault {
        match error {
            StoreError::ShortRead { .. } if self.source.is_local() => {
                Fault::new(libc::ESTALE, format!("{error}: it changed since it was opened"))
            }
            error => error.into(),
        }
    }
}

/// The error of opening an object. A folder, and a file in the place of one, are of their own.
pub(crate) fn open_fault(stores: &Stores, name: &str, error: StoreError) -> Fault {
    let is_folder = || stores.file_of(name).is_some_and(|path| path.is_dir());
    let is_through_file = || {
        let status = stores.file_of(name).map(|path| path.metadata());
        matches!(status, Some(Err(error)) if error.kind() == ErrorKind::NotADirectory)
    };
    match error {
        StoreError::Unsupported { .. } if is_folder() => {
            Fault::new(libc::EISDIR, error.to_string())
        }
        StoreError::NotFound { ref url, .. } if is_through_file() => {
            let text = format!("{url}: expected a folder in its path, found a file");
            Fault::new(libc::ENOTDIR, text)
        }
        error => error.into(),
    }
}

/// The position of a handle, and bytes around it that were read ahead.
#[derive(Default)]
pub(crate) struct Cursor {
    /// The handle that it is of; 0: none.
    pub(crate) handle: c_int,
    reader: Option<Arc<Reader>>,
    position: u64,
    /// Its bytes begin at `buffer_start` of the object.
    buffer: Vec<u8>,
    buffer_start: u64,
    buffer_bytes: usize,
}

impl Cursor {
    /// The beginning of an object.
    pub(crate) fn start(handle: c_int, reader: Arc<Reader>) -> Cursor {
        let buffer_bytes = reader.source.costs().buffer_bytes() as usize;
        Cursor { handle, reader: Some(reader), buffer_bytes, ..Cursor::default() }
    }

    /// Fill a buffer with bytes that were read ahead; `false`, and nothing is copied, if these are
    /// fewer than the buffer holds.
    #[inline]
    pub(crate) fn read_ready(&mut self, buffer: &mut [u8]) -> bool {
        let Some(bytes) = self.ready().get(..buffer.len()) else { return false };
        match (&mut *buffer, bytes) {
            // A copy of one byte is less than a call.
            ([byte], [ready]) => *byte = *ready,
            (buffer, bytes) => buffer.copy_from_slice(bytes),
        }
        self.position += buffer.len() as u64;
        true
    }

    /// The bytes from the position on that are in the buffer.
    #[inline]
    fn ready(&self) -> &[u8] {
        // For a position before the buffer the difference is larger than any buffer.
        let from = self.position.wrapping_sub(self.buffer_start);
        self.buffer.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default()
    }

    /// Read on; fewer bytes than the buffer holds only at the end of the object, or before what
    /// cannot be read.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Fault> {
        let Some(reader) = self.reader.clone() else { return Ok(0) };
        let mut count = 0;
        while count < buffer.len() {
            let rest = &mut buffer[count..];
            let ready = self.ready();
            let result = if !ready.is_empty() {
                let length = ready.len().min(rest.len());
                rest[..length].copy_from_slice(&ready[..length]);
                Ok(length)
            } else if rest.len() >= self.buffer_bytes {
                reader.read_at(self.position, rest)
            } else {
                match self.fill(&reader) {
                    Ok(0) => Ok(0),
                    Ok(_) => continue,
                    Err(fault) => Err(fault),
                }
            };
            match result {
                Ok(0) => break,
                Ok(length) => {
                    count += length;
                    self.position += length as u64;
                }
                // Bytes that were read are returned; the next call meets the error.
                Err(_) if count > 0 => break,
                Err(fault) => return Err(fault),
            }
        }
        Ok(count)
    }

    /// Fill the buffer from the position on; returns its bytes.
    fn fill(&mut self, reader: &Reader) -> Result<usize, Fault> {
        let rest = reader.source.len().saturating_sub(self.position);
        self.buffer.resize((self.buffer_bytes as u64).min(rest) as usize, 0);
        self.buffer_start = self.position;
        let result = reader.read_at(self.position, &mut self.buffer);
        if result.is_err() {
            self.buffer.clear();
        }
        result
    }

    /// Move the position; returns the new one.
    pub(crate) fn seek(&mut self, offset: i64, whence: c_int) -> Result<i64, Fault> {
        let size = self.reader.as_ref().map_or(0, |reader| reader.source.len());
        let from = match whence {
            libc::SEEK_SET => 0,
            libc::SEEK_CUR => self.position,
            libc::SEEK_END => size,
            _ => {
                let expected = "SEEK_SET, SEEK_CUR or SEEK_END";
                return Err(Fault::invalid(format!("whence: expected {expected}, found {whence}")));
            }
        };
        let position = i64::try_from(from).ok().and_then(|from| from.checked_add(offset));
        let position = position.ok_or_else(|| {
            let text =
                format!("offset: expected a position below 2^63, found {offset} from {from}");
            Fault::new(libc::EOVERFLOW, text)
        })?;
        self.position = u64::try_from(position).map_err(|_| {
            Fault::invalid(format!("offset: expected a position of 0 or more, found {position}"))
        })?;
        Ok(position)
    }
}
