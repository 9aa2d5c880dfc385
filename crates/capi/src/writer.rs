//! An object that is written: part after part, seen under its name when it is closed.

use crate::fault::Fault;
use crate::known_stores::known_stores;
use crate::reader::open_fault;
use libc::c_int;
use std::fs::File;
use std::io::Write;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;
use swathe_store::{Copies, CopyOrder, MOST_PARTS, ObjectWriter, PART_BYTES};
use swathe_store_api::{Room, StoreError, Stores};
use tempfile::NamedTempFile;

/// While a whole object is sent, how often to look whether it is there.
const STEP: Duration = Duration::from_secs(1);

/// An object that is being written. Dropped before it is closed, it leaves nothing behind.
pub(crate) struct Writer {
    stores: Stores,
    name: String,
    replaces: bool,
    is_bucket: bool,
    /// The part that is not full yet.
    part: Vec<u8>,
    /// Parts that were full.
    parts: u64,
    bytes: u64,
    target: Target,
    /// Room for the whole object, on servers.
    room: Option<Box<dyn Room>>,
    /// Once a write has failed, nothing more is written.
    failure: Option<Fault>,
}

/// Where full parts go.
enum Target {
    /// There was none yet.
    Nowhere,
    Store(Box<ObjectWriter>),
    /// A store that must know the size first is sent the whole file.
    File(NamedTempFile),
}

impl Writer {
    /// Begin to write an object, with the flags of `open(2)`. An object that exists is replaced
    /// with `O_TRUNC` and without `O_EXCL`.
    pub(crate) fn open(name: &str, flags: c_int) -> Result<Writer, Fault> {
        let creates = flags & libc::O_CREAT != 0;
        let replaces = flags & libc::O_TRUNC != 0 && flags & libc::O_EXCL == 0;
        let stores = known_stores()?;
        if !(creates && replaces) {
            check_existence(&stores, name, creates, replaces)?;
        }
        Writer::create(stores, name, replaces)
    }

    /// Begin to write an object.
    pub(crate) fn create(stores: Stores, name: &str, replaces: bool) -> Result<Writer, Fault> {
        let store = stores.locate(name).0;
        if !store.is_writable() {
            let (url, why) = (stores.display_name(name), "its store is read only".to_string());
            return Err(StoreError::Unsupported { url, why }.into());
        }
        let mut writer = Writer {
            name: name.to_string(),
            replaces,
            is_bucket: store.is_bucket(),
            part: Vec::new(),
            parts: 0,
            bytes: 0,
            target: Target::Nowhere,
            room: None,
            failure: None,
            stores,
        };
        if store.is_local() {
            // What the file system refuses is known now, and not when the file is closed.
            writer.begin()?;
        }
        Ok(writer)
    }

    /// Bytes that were written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Append bytes: all, or none of them counts.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let count = bytes.len() as u64;
        while !bytes.is_empty() {
            let room = PART_BYTES as usize - self.part.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.part.extend_from_slice(now);
            bytes = rest;
            if self.part.len() as u64 == PART_BYTES {
                // Also if it panics, a part is lost.
                self.failure = Some(Fault::new(libc::EIO, "writing it was interrupted"));
                self.flush().inspect_err(|fault| self.failure = Some(fault.clone()))?;
                self.failure = None;
            }
        }
        self.bytes += count;
        Ok(())
    }

    /// Reserve room for `bytes` bytes in all.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), Fault> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.stores.locate(&self.name).0.takes_any_size()
            && matches!(self.target, Target::Nowhere)
        {
            self.begin()?;
        }
        if let Target::Store(writer) = &mut self.target {
            return Ok(writer.reserve(bytes)?);
        }
        match &mut self.room {
            Some(room) => room.grow(bytes)?,
            room => *room = Some(self.stores.reserve(&self.name, bytes)?),
        }
        if bytes <= PART_BYTES {
            return Ok(());
        }
        if matches!(self.target, Target::Nowhere) {
            self.begin()?;
        }
        // It waits in this file until its size is known.
        match &self.target {
            Target::File(file) => reserve_file(file.as_file(), bytes),
            _ => Ok(()),
        }
    }

    /// Give the object its name. An object that cannot be written whole is removed.
    pub(crate) fn close(mut self) -> Result<(), Fault> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let part = mem::take(&mut self.part);
        let mut writer = match mem::replace(&mut self.target, Target::Nowhere) {
            Target::Store(writer) => *writer,
            Target::File(file) => return self.send(file, &part),
            Target::Nowhere => {
                let (stores, name, size) = (&self.stores, &self.name, part.len() as u64);
                match self.room.take() {
                    Some(room) => ObjectWriter::fill(stores, name, room, size, PART_BYTES)?,
                    None => ObjectWriter::create(stores, name, size, false, PART_BYTES)?,
                }
            }
        };
        if !part.is_empty() {
            writer.write(part.into())?;
        }
        writer.finish(self.replaces)?.verify(|| false)?;
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Fault> {
        self.target = if self.stores.locate(&self.name).0.takes_any_size() {
            let writer = ObjectWriter::create(&self.stores, &self.name, 0, true, PART_BYTES)?;
            Target::Store(Box::new(writer))
        } else {
            Target::File(tempfile::Builder::new().prefix("swathe-write-").tempfile().map_err(
                |error| file_fault("cannot make a file in the folder for temporary files", error),
            )?)
        };
        Ok(())
    }

    /// Write the full part.
    fn flush(&mut self) -> Result<(), Fault> {
        self.parts += 1;
        if self.is_bucket && self.parts >= MOST_PARTS {
            let most = (MOST_PARTS * PART_BYTES) >> 30;
            let url = self.stores.display_name(&self.name);
            let text = format!("{url}: expected at most {most} GiB in a bucket, found more");
            return Err(Fault::new(libc::EFBIG, text));
        }
        if matches!(self.target, Target::Nowhere) {
            self.begin()?;
        }
        let part = mem::take(&mut self.part);
        match &mut self.target {
            Target::Store(writer) => writer.write(part.into())?,
            Target::File(file) => file.write_all(&part).map_err(|error| {
                file_fault("cannot write to the folder for temporary files", error)
            })?,
            Target::Nowhere => {}
        }
        self.part.reserve_exact(PART_BYTES as usize);
        Ok(())
    }

    /// Send a file with the rest of the object to its store.
    fn send(&mut self, mut file: NamedTempFile, rest: &[u8]) -> Result<(), Fault> {
        let fail = |error| file_fault("cannot write to the folder for temporary files", error);
        file.write_all(rest).map_err(fail)?;
        if let Some(room) = self.room.take() {
            let (stores, name, size) = (&self.stores, &self.name, self.bytes);
            let mut writer = ObjectWriter::fill(stores, name, room, size, PART_BYTES)?;
            let mut at = 0;
            while at < size {
                let mut part = vec![0; (size - at).min(PART_BYTES) as usize];
                file.as_file().read_exact_at(&mut part, at).map_err(|error| {
                    file_fault("cannot read from the folder for temporary files", error)
                })?;
                at += part.len() as u64;
                writer.write(part.into())?;
            }
            writer.finish(self.replaces)?.verify(|| false)?;
            return Ok(());
        }
        let from = file.path().display().to_string();
        let (to, replaces) = (self.name.clone(), self.replaces);
        let order = CopyOrder { from, version: None, to, replaces };
        let copies = Copies::start(self.stores.clone(), vec![order], 1)?;
        while let Some(outcomes) = copies.poll(STEP) {
            for outcome in outcomes {
                outcome.outcome?;
            }
        }
        Ok(())
    }
}

/// Reserve room in a file whose length stays.
fn reserve_file(file: &File, bytes: u64) -> Result<(), Fault> {
    let length = i64::try_from(bytes).unwrap_or(i64::MAX);
    // SAFETY: a descriptor that is open, and numbers.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, length) };
    let error = std::io::Error::last_os_error();
    match (result, error.raw_os_error()) {
        // A file system that cannot takes the bytes without.
        (0, _) | (_, Some(libc::EOPNOTSUPP)) => Ok(()),
        _ => Err(file_fault("cannot reserve room in the folder for temporary files", error)),
    }
}

fn file_fault(what: &str, error: std::io::Error) -> Fault {
    Fault::new(error.raw_os_error().unwrap_or(libc::EIO), format!("{what}: {error}"))
}

/// Check that an object is there to be replaced, or is not there.
fn check_existence(
    stores: &Stores,
    name: &str,
    creates: bool,
    replaces: bool,
) -> Result<(), Fault> {
    let url = stores.display_name(name);
    match stores.open(name) {
        Ok(_) if replaces => Ok(()),
        Ok(_) => {
            let text = format!("{url}: exists already; open it with O_TRUNC to replace it");
            Err(Fault::new(libc::EEXIST, text))
        }
        Err(StoreError::NotFound { .. }) if creates => Ok(()),
        Err(error) => Err(open_fault(stores, name, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use swathe_store_api::{
        Comparison, Failure, ObjectName, PartSums, Sink, Source, Store, StoreSettings,
    };

    /// A store whose sinks panic.
    #[derive(Debug)]
    struct PanicStore(StoreSettings);

    struct PanicSink;

    impl Sink for PanicSink {
        fn write(&mut self, _part: Bytes) -> Result<(), Failure> {
            panic!("on purpose")
        }

        fn finish(self: Box<Self>, _: &PartSums, _: u64, _: bool) -> Result<Comparison, Failure> {
            Ok(Comparison::ReadBack)
        }
    }

    impl Store for PanicStore {
        fn settings(&self) -> &StoreSettings {
            &self.0
        }

        fn object_key(&self, url: &str) -> String {
            url.into()
        }

        fn url_of(&self, path: &str) -> String {
            path.into()
        }

        fn display_url(&self, url: &str) -> String {
            url.into()
        }

        fn is_writable(&self) -> bool {
            true
        }

        fn takes_any_size(&self) -> bool {
            true
        }

        fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
            Err(StoreError::NotFound { url: object.url.into(), why: String::new() })
        }

        fn create(&self, _: ObjectName<'_>, _: u64, _: bool) -> Result<Box<dyn Sink>, StoreError> {
            Ok(Box::new(PanicSink))
        }
    }

    #[test]
    fn a_close_after_a_panic_in_a_write_is_an_error() {
        let stores = Stores::new(Vec::new(), |settings| Arc::new(PanicStore(settings)));
        let mut writer = Writer::create(stores, "s:a", true).expect("begun");
        let part = vec![0; PART_BYTES as usize];
        catch_unwind(AssertUnwindSafe(|| writer.write(&part))).expect_err("a panic");
        let fault = writer.write(b"more").expect_err("nothing more is written");
        assert_eq!((fault.errno, fault.text.as_str()), (libc::EIO, "writing it was interrupted"));
        assert_eq!(writer.reserve(1).expect_err("nor reserved").errno, libc::EIO);
        assert_eq!(writer.close().expect_err("it is not whole").errno, libc::EIO);
    }
}
