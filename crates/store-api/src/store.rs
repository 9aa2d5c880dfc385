//! What keeps objects.

use crate::error::StoreError;
use crate::failure::Failure;
use crate::listing::{ListOptions, Listing};
use crate::part_sums::{PartAlgorithm, PartSums};
use crate::server_copy::{CopyRefusal, ServerCopy};
use crate::settings::StoreSettings;
use crate::source::{Source, Version};
use crate::space::Space;
use bytes::Bytes;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use swathe_plan::Connections;

/// Which object of a store is meant.
#[derive(Clone, Copy, Debug)]
pub struct ObjectName<'a> {
    /// Its URL, or the path of a file.
    pub url: &'a str,
    /// `NAME:path`, if it was named by its store.
    pub qualified_name: Option<&'a str>,
}

impl<'a> ObjectName<'a> {
    /// The name in the request.
    pub fn name(&self) -> &'a str {
        self.qualified_name.unwrap_or(self.url)
    }
}

/// A storage: a root below which objects lie. Wrappers (a cache) are stores of what they wrap.
pub trait Store: Debug + Send + Sync {
    /// The settings.
    fn settings(&self) -> &StoreSettings;

    /// The key of measurements of it, or of a part of it: the URL, with the server if
    /// something else sets the server.
    fn measured_key(&self, url: &str) -> String {
        url.to_string()
    }

    /// The key of its measurements.
    fn key(&self) -> String {
        self.measured_key(&self.settings().root)
    }

    /// The key of an object's cache entries, as [`Source::key`].
    fn object_key(&self, url: &str) -> String;

    /// The URL or file path of the object at `path` in it.
    fn url_of(&self, path: &str) -> String;

    /// An object as users may see it: an absolute path, or a URL without credentials.
    fn display_url(&self, url: &str) -> String;

    /// Whether its objects are read without a server.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether it is a bucket, or a part of one.
    fn is_bucket(&self) -> bool {
        false
    }

    /// Whether its server speaks WebDAV, as the URL says.
    fn is_webdav(&self) -> bool {
        false
    }

    /// Whether objects can be written to it, as far as is known without asking.
    fn is_writable(&self) -> bool {
        false
    }

    /// Whether an object can be begun before its size is known: [`Store::create`] takes 0 for it.
    fn takes_any_size(&self) -> bool {
        false
    }

    /// The path of an object that is a file of this machine.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] for a URL of no file.
    fn local_path(&self, _url: &str) -> Result<Option<PathBuf>, StoreError> {
        Ok(None)
    }

    /// Whether an object is on a server of this machine, which then shares its cores with us.
    fn is_served_here(&self, _url: &str) -> bool {
        false
    }

    /// Whether its server could not be connected to when that was last tried. Requests may still be
    /// waiting to try again.
    fn is_unreachable(&self) -> bool {
        false
    }

    /// Connections that are open to it.
    fn connections(&self) -> Connections {
        Connections::default()
    }

    /// The URL to request an object from its server, with plain HTTP; `None` if that is not
    /// possible, or requests are signed.
    ///
    /// # Errors
    /// As [`Store::bearer`].
    fn http_url(&self, _url: &str) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// The bearer token that the server of an object is sent.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if its file cannot be read, the URL is invalid, or the token
    /// would go over http:// to another machine.
    fn bearer(&self, _url: &str) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Open an object, to read ranges of it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Forbidden`]; [`StoreError::Unsupported`] if it
    /// cannot be read; [`StoreError::Network`] if the server cannot be reached, fails, or sends
    /// nothing, try after try.
    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError>;

    /// Open an object, and say how many of its first bytes its reader needs. A store that opens an
    /// object by a request for its first bytes asks for that many.
    ///
    /// # Errors
    /// As [`Store::open`].
    fn open_for(
        &self,
        object: ObjectName<'_>,
        _first_bytes: u64,
    ) -> Result<Arc<dyn Source>, StoreError> {
        self.open(object)
    }

    /// An object of a server, assumed to be at a version seen before: no request is sent, and
    /// reading is [`StoreError::Changed`] if it is no longer true. `None` if reading could not
    /// check it, if hidden words of the URL may select the object and its readers, and for files.
    ///
    /// # Errors
    /// As [`Store::open`], but for what only the server knows.
    fn assume(
        &self,
        _object: ObjectName<'_>,
        _version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        Ok(None)
    }

    /// An object of a known size whose reader verifies all bytes itself: no request is sent, and reading
    /// is [`StoreError::Changed`] if its size is another. `None` as for [`Store::assume`], but for
    /// versions.
    ///
    /// # Errors
    /// As [`Store::assume`].
    fn assume_size(
        &self,
        _object: ObjectName<'_>,
        _size: u64,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        Ok(None)
    }

    /// Whether its server is known to verify what it sends, and to tell a checksum of that.
    fn is_proving(&self) -> bool {
        false
    }

    /// An object as with [`Store::assume`], whose reader verifies nothing itself: each answer must say
    /// that the server verified its bytes, and their checksum is compared. `None` also if the server is
    /// not known to do so. Requests are of at most [`PROVEN_BYTES`]; an answer without that is
    /// [`StoreError::Unsupported`].
    ///
    /// # Errors
    /// As [`Store::assume`].
    fn assume_with_proof(
        &self,
        _object: ObjectName<'_>,
        _version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        Ok(None)
    }

    /// List the objects at or below a URL, with a slash at its end only those below. No request
    /// is sent yet.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the store cannot list, or such an object cannot exist.
    fn list(
        &self,
        object: ObjectName<'_>,
        _options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        let url = object.url.trim_end_matches('/').to_string();
        Err(StoreError::Unsupported { url, why: "its store cannot be listed".into() })
    }

    /// The room where a folder lies; `None` if the store does not tell.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Forbidden`], [`StoreError::Network`].
    fn space(&self, _folder: ObjectName<'_>) -> Result<Option<Space>, StoreError> {
        Ok(None)
    }

    /// Whether a folder exists; true where folders are only beginnings of names, or the server does
    /// not tell.
    ///
    /// # Errors
    /// As [`Store::space`].
    fn has_folder(&self, _folder: ObjectName<'_>) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// Begin to write an object of `size` bytes, in one part or in more.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if nothing can be written; as writing has it.
    fn create(
        &self,
        object: ObjectName<'_>,
        _size: u64,
        _in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        Err(cannot_write(object.url))
    }

    /// Reserve room for an object of `bytes` bytes, before it is written.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`] if the store cannot; [`StoreError::Io`] if there is not so much.
    fn reserve(&self, object: ObjectName<'_>, _bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        let url = self.display_url(object.url);
        Err(StoreError::Unsupported { url, why: "its store cannot reserve room".into() })
    }

    /// Have servers copy an object of this or another store to the name `object`. The caller compares
    /// the copy before it finishes it.
    ///
    /// # Errors
    /// [`CopyRefusal::Unable`] if they cannot; [`CopyRefusal::Failed`] with
    /// [`StoreError::Exists`] if the name is taken, or [`StoreError::Interrupted`] if `progress` ended
    /// it.
    fn copy_from(
        &self,
        _object: ObjectName<'_>,
        _source: &CopySource<'_>,
    ) -> Result<Box<dyn ServerCopy>, CopyRefusal> {
        Err(CopyRefusal::Unable(match self.settings().over.is_empty() {
            true => "the servers of the copies do not copy objects".into(),
            false => "the copies are striped".into(),
        }))
    }

    /// Remove an object.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if it does not exist; [`StoreError::Forbidden`],
    /// [`StoreError::Network`], [`StoreError::Io`]: it may still exist;
    /// [`StoreError::Unsupported`] if the store is read only.
    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        Err(cannot_remove(object.url))
    }
}

/// An object that another store is to get from its own.
pub struct CopySource<'a> {
    /// Its store.
    pub store: &'a dyn Store,
    /// The object.
    pub object: ObjectName<'a>,
    /// The version it must have.
    pub version: &'a Version,
    /// Whether an object that has the name of the copy may be replaced.
    pub replaces: bool,
    /// Is told how many bytes are copied; returns whether to go on.
    pub progress: &'a (dyn Fn(u64) -> bool + Sync),
}

/// The error for an object of a store that is read only.
pub fn cannot_write(url: &str) -> StoreError {
    let why = "only folders, buckets, dav(s):// and root:// can be written to";
    StoreError::Unsupported { url: url.to_string(), why: why.into() }
}

/// The error for an object that is to be removed from a store that is read only.
pub fn cannot_remove(url: &str) -> StoreError {
    let why = "only objects of folders, buckets, dav(s):// and root:// are removed";
    StoreError::Unsupported { url: url.to_string(), why: why.into() }
}

/// An object that is being written. Dropped before it is finished, it leaves nothing behind that
/// can be seen.
pub trait Sink: Send {
    /// Write the next part.
    ///
    /// # Errors
    /// The failure says whether writing all of the object anew may help.
    fn write(&mut self, part: Bytes) -> Result<(), Failure>;

    /// By which checksums of its parts the object is compared with what was written.
    fn part_algorithm(&self) -> PartAlgorithm {
        PartAlgorithm::Crc32
    }

    /// Reserve room for an object of `bytes` bytes in all; returns whether the store can. What the
    /// object does not fill is free again when it is finished or dropped.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there is not so much room.
    fn reserve(&mut self, _bytes: u64) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Rename the object to its final name; `sums`: of its parts, all but the last of `part_bytes`.
    /// An object of this name is replaced only with `replaces`, if the server can tell.
    ///
    /// # Errors
    /// [`StoreError::Exists`]; else as [`Sink::write`].
    fn finish(
        self: Box<Self>,
        sums: &PartSums,
        part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure>;
}

/// How an object was compared with what was written, before it had its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It was not: who writes it reads it back.
    Missing,
    /// By a checksum that its server made of what it wrote.
    Checksum,
    /// It was read back.
    ReadBack,
}

/// Room that is reserved. Dropped, it is free again; so it is a while after its process ended.
pub trait Room: Send {
    /// Reserve room for `bytes` bytes in all. After an error there is what was there before.
    ///
    /// # Errors
    /// [`StoreError::Io`] if there is not so much; else as writing has it.
    fn grow(&mut self, bytes: u64) -> Result<(), StoreError>;

    /// Begin to write an object in it, as [`Store::create`]. What the object
    /// does not fill is free when it is finished.
    ///
    /// # Errors
    /// As [`Store::create`].
    fn fill(
        self: Box<Self>,
        object: ObjectName<'_>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError>;
}
