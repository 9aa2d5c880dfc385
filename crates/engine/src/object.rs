//! One open object: its compression, its HDUs, and what is needed to cut from each.

mod arrays;
mod companions;
mod events;

use crate::byte_source::ByteSource;
use crate::error::EngineError;
use crate::folder;
use crate::index_entry::{self, IndexEntry};
use crate::inflate::StreamReader;
use crate::selector::{Selector, is_image, list_hdus, numbers};
use crate::template::Template;
use crate::timing::about;
use crate::worker_context::Cancel;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use swathe_chunk_index::ChunkIndex;
use swathe_codecs::stream::{SeekTable, StreamKind};
use swathe_fits::{Hdu, Header, HeaderParse};
use swathe_plan::Connections;
use swathe_store_api::{Source, StoreError, Stores, Traffic};
use swathe_trace::Ids;

/// A file of FITS begins so.
const FITS_START: &[u8; 4] = b"SIMP";
/// First bytes read for a header; most headers are shorter.
const HEADER_BYTES: usize = 4 * 2880;
/// A header longer than this is refused (the parser's own limit on cards is lower).
const HEADER_LIMIT: usize = 16 << 20;
/// What follows this many bytes of headers is ignored, with a note: a few compressed kilobytes
/// could hold gigabytes of them.
const HEADERS_LIMIT: u64 = 64 << 20;
/// More HDUs than this are refused: a damaged file could promise one per 2880 bytes.
const HDU_LIMIT: usize = 100_000;

/// An open object.
pub struct Object {
    source: Arc<dyn Source>,
    /// `NAME:path`, if it was opened so.
    name: Option<String>,
    kind: Option<StreamKind>,
    /// Whether its first bytes are those of FITS, if they were read and are not compressed.
    begins_as_fits: Option<bool>,
    pub(crate) content: ByteSource,
    walk: Mutex<Walk>,
    /// Its arrays, if it is not FITS and they are known.
    chunks: Mutex<Option<Arc<ChunkIndex>>>,
    templates: Mutex<HashMap<Selector, Arc<Template>>>,
    notes: Mutex<Vec<String>>,
    /// Traffic of single reads so far.
    traffic: Mutex<Traffic>,
    /// Whether its version was taken from the index.
    is_assumed: bool,
    /// Whether reading headers is recorded as an event here; else the opener records it.
    tells: bool,
    cancel: Cancel,
}

#[derive(Default)]
struct Walk {
    hdus: Vec<Arc<Hdu>>,
    /// Where the next header would start; `None` when all were read.
    next: Option<u64>,
    /// Why what follows them is no HDU.
    warning: Option<String>,
    /// Whether more is known than the index holds.
    has_news: bool,
    /// Bytes of the headers read.
    header_bytes: u64,
}

impl Object {
    /// Open an object by path or URL. Reads its first bytes, or its index entry: for an
    /// object on a server that was read before no request is sent, and a cut is
    /// [`EngineError::Store`] with [`StoreError::Changed`] if it has changed since. `fresh`: ask in
    /// any case. `cancel` ends the reading of headers; cuts bring their own.
    ///
    /// # Errors
    /// As [`Stores::open`].
    pub fn open(
        url: &str,
        stores: &Stores,
        fresh: bool,
        cancel: Cancel,
    ) -> Result<Object, EngineError> {
        let name = stores.is_named(url).then(|| url.to_string());
        let server = if fresh { None } else { stores.server_of(url) };
        if let Some((key, _)) = server
            && let Some((version, mut entry)) = index_entry::load_last(&key)
            && let Some(source) = match entry.members.take() {
                Some(members) => folder::assume(url, stores, &version, members.into_vec().into()),
                // Its files may have changed: it is listed.
                None if folder::is_version(&version) => None,
                None => stores.assume(url, version)?,
            }
        {
            let kind = entry.seek.as_ref().map(|table| table.kind);
            return Ok(Object::new(source, name, kind, Some(entry), stores, true, cancel));
        }
        let (source, is_recalled) = folder::open(url, stores, fresh)?;
        let object = Object::of_source(source, name, stores, cancel)?;
        Ok(if is_recalled { object.of_before() } else { object })
    }

    /// The object of a source that is open; `name`: `NAME:path`, if it is called so.
    ///
    /// # Errors
    /// As [`Object::open`].
    pub fn of_source(
        source: Arc<dyn Source>,
        name: Option<String>,
        stores: &Stores,
        cancel: Cancel,
    ) -> Result<Object, EngineError> {
        let mut first = [0; 4];
        let length = source.len().min(4) as usize;
        if length == 0 {
            return Err(EngineError::Empty { url: source.url().to_string() });
        }
        source.read_exact_at(0, &mut first[..length])?;
        let kind = StreamKind::detect(&first[..length]);
        // The headers of a plain local file of FITS are as near as the index is.
        let worth_it = kind.is_some() || !source.is_local() || first != *FITS_START;
        let entry = if worth_it { index_entry::load(&*source) } else { None };
        let object = Object::new(source, name, kind, entry, stores, false, cancel);
        let begins_as_fits = kind.is_none().then_some(first == *FITS_START);
        Ok(Object { begins_as_fits, ..object })
    }

    fn new(
        source: Arc<dyn Source>,
        name: Option<String>,
        kind: Option<StreamKind>,
        entry: Option<IndexEntry>,
        stores: &Stores,
        is_assumed: bool,
        cancel: Cancel,
    ) -> Object {
        let mut walk = Walk { next: Some(0), ..Walk::default() };
        let (mut seek, mut chunks) = (None, None);
        if let Some(entry) = entry {
            // What cannot be read is made again.
            chunks = entry.chunks.and_then(|bytes| ChunkIndex::parse(bytes.into_vec().into()).ok());
            walk.hdus = entry.hdus.into_iter().map(Arc::new).collect();
            (walk.next, walk.warning) = (entry.next, entry.warning);
            seek = entry.seek;
        }
        let content = match kind {
            None => ByteSource::Plain(source.clone()),
            Some(kind) => {
                let table = seek.unwrap_or_else(|| SeekTable::new(kind));
                ByteSource::Stream(Box::new(Mutex::new(StreamReader::new(
                    source.clone(),
                    name.as_deref().unwrap_or(source.url()),
                    table,
                    stores.compute(),
                ))))
            }
        };
        let warning = walk.warning.clone();
        let object = Object {
            source,
            name,
            kind,
            begins_as_fits: None,
            content,
            walk: Mutex::new(walk),
            chunks: Mutex::new(chunks.map(Arc::new)),
            templates: Mutex::default(),
            notes: Mutex::default(),
            traffic: Mutex::default(),
            is_assumed,
            tells: false,
            cancel,
        };
        warning.into_iter().for_each(|note| object.note(note));
        object
    }

    /// The same, as one that was opened some time ago: at a version that is no more than assumed.
    pub(crate) fn of_before(self) -> Object {
        Object { is_assumed: true, ..self }
    }

    /// Whether no request was sent to the server when it was opened.
    pub(crate) fn is_assumed(&self) -> bool {
        self.is_assumed
    }

    /// Whether it can be opened another time without asking, once it is in the index.
    pub(crate) fn can_be_assumed(&self) -> bool {
        self.source.can_be_assumed()
    }

    pub(crate) fn shared_source(&self) -> Arc<dyn Source> {
        self.source.clone()
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Connections to its storage that are open.
    pub(crate) fn connections(&self) -> Connections {
        self.source.connections()
    }

    /// End of the last HDU read so far, in the decompressed data.
    pub(crate) fn known_end(&self) -> u64 {
        lock(&self.walk).hdus.last().map_or(0, |hdu| hdu.end())
    }

    /// Whether no request was sent to the server when it was opened, and `error` says that one
    /// was needed.
    pub(crate) fn is_stale(&self, error: &EngineError) -> bool {
        self.is_assumed && matches!(error, EngineError::Store(StoreError::Changed { .. }))
    }

    /// The object's URL or path, without credentials.
    pub fn url(&self) -> &str {
        self.source.url()
    }

    /// The fields of its events; none while no events are recorded.
    pub(crate) fn about(&self) -> Ids {
        about(self.display_name())
    }

    /// `NAME:path`, if it was opened so, else its URL or path: what a cutout says of its source.
    pub(crate) fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.url())
    }

    /// Bytes of the object as stored.
    pub fn size(&self) -> u64 {
        self.source.stored_bytes()
    }

    /// The version that is read: every byte of every cut comes from it.
    pub fn version(&self) -> String {
        self.source.version().to_string()
    }

    /// How the object is compressed as a whole.
    pub fn kind(&self) -> Option<StreamKind> {
        self.kind
    }

    /// Whether it lies on a disk of this host.
    pub fn is_local(&self) -> bool {
        self.source.is_local()
    }

    /// Traffic of its storage that is not counted yet.
    pub(crate) fn take_traffic(&self) -> Traffic {
        let in_stream = self.content.stream_reader().map(|mut reader| reader.take_traffic());
        in_stream.unwrap_or_else(|| self.source.take_traffic())
    }

    /// Traffic of its storage since it was opened, opening included; that of batches counts there.
    pub fn traffic(&self) -> Traffic {
        let mut traffic = lock(&self.traffic);
        traffic.add(self.take_traffic());
        *traffic
    }

    /// Count the traffic of a single read.
    pub(crate) fn count(&self, traffic: Traffic) {
        lock(&self.traffic).add(traffic);
    }

    /// Warnings for the user about this object or its index entry; the work went on.
    pub fn take_notes(&self) -> Vec<String> {
        let mut notes = std::mem::take(&mut *lock(&self.notes));
        notes.extend(self.source.take_notes());
        notes
    }

    /// All HDUs, in order.
    ///
    /// # Errors
    /// If the first header cannot be read. What follows the last readable HDU is a warning.
    pub fn hdus(&self) -> Result<Vec<Arc<Hdu>>, EngineError> {
        let mut walk = lock(&self.walk);
        if walk.next.is_some() {
            self.opening(|| {
                while self.step(&mut walk)?.is_some() {}
                Ok(())
            })?;
        }
        Ok(walk.hdus.clone())
    }

    /// The HDU that is meant, if its header was read before and no thread reads headers now.
    pub fn known_hdu(&self, selector: &Selector) -> Option<Arc<Hdu>> {
        let walk = self.walk.try_lock().ok()?;
        walk.hdus.iter().find(|hdu| selector.matches(hdu)).cloned()
    }

    /// The HDU that is meant, reading no further than it.
    ///
    /// # Errors
    /// [`EngineError::NoSuchHdu`], [`EngineError::LostHdus`] if it might be behind damage, or
    /// as [`Object::hdus`].
    pub fn find(&self, selector: &Selector) -> Result<Arc<Hdu>, EngineError> {
        let mut walk = lock(&self.walk);
        if let Some(hdu) = walk.hdus.iter().find(|hdu| selector.matches(hdu)) {
            return Ok(hdu.clone());
        }
        let missing = |walk: &Walk| {
            let (url, name) = (self.url().to_string(), selector.to_string());
            if let Some(why) = walk.warning.clone() {
                return EngineError::LostHdus { url, selector: name, why };
            }
            EngineError::NoSuchHdu { url, selector: name, found: list_hdus(&walk.hdus, selector) }
        };
        if walk.next.is_none() {
            return Err(missing(&walk));
        }
        self.opening(|| {
            while let Some(hdu) = self.step(&mut walk)? {
                if selector.matches(&hdu) {
                    return Ok(hdu);
                }
            }
            Err(missing(&walk))
        })
    }

    /// The template to cut from an HDU or an array, computed once.
    ///
    /// # Errors
    /// If the HDU is no image, or its header or the tables its WCS needs cannot be used.
    pub fn template(&self, selector: &Selector) -> Result<Arc<Template>, EngineError> {
        let by_name;
        let selector = match (selector, self.chunk_index()) {
            (Selector::Array(path), Some(index)) => return self.array_template(&index, path),
            (Selector::FirstImage, Some(index)) => return self.array_template(&index, ""),
            // A path is the name of an HDU in a file of FITS.
            (Selector::Array(path), None) => {
                by_name = Selector::Name(path.clone(), None);
                &by_name
            }
            (selector, _) => selector,
        };
        let hdu = self.find(selector)?;
        let key = Selector::Index(hdu.index);
        if let Some(template) = lock(&self.templates).get(&key) {
            return Ok(template.clone());
        }
        if !is_image(&hdu) {
            return Err(self.not_an_image(&hdu));
        }
        let template = Arc::new(self.new_template(&hdu)?);
        lock(&self.templates).insert(key, template.clone());
        Ok(template)
    }

    /// The template of an HDU by its number, or of an array by its path, if it was made before.
    pub fn known_template(&self, selector: &Selector) -> Option<Arc<Template>> {
        lock(&self.templates).get(selector).cloned()
    }

    fn not_an_image(&self, hdu: &Hdu) -> EngineError {
        // Of a compressed file that are those met so far: to look for more may take long.
        let hdus = if self.kind.is_none() { self.hdus().ok() } else { None };
        let hdus = hdus.unwrap_or_else(|| lock(&self.walk).hdus.clone());
        let numbers = numbers(hdus.iter().filter(|hdu| is_image(hdu)).map(|hdu| hdu.index));
        let images = numbers.map(|numbers| format!("; images are in {numbers}"));
        EngineError::NotAnImage {
            url: self.url().to_string(),
            hdu: hdu.index,
            found: hdu.content(),
            images: images.unwrap_or_default(),
        }
    }

    /// Whether the bytes read now are verified only by [`Object::settle`]: the first read of a
    /// gzip stream, whose checksum stands at its end.
    pub fn is_unverified(&self) -> bool {
        self.kind == Some(StreamKind::Gzip)
            && self.content.stream_reader().is_some_and(|reader| reader.is_unfinished())
    }

    /// Finish a first read: go on to the end of a gzip or bzip2 stream that was begun, so that
    /// its checks hold and its seek points are known, and keep what was learnt.
    ///
    /// # Errors
    /// If the stream is damaged further on.
    pub fn settle(&self, cancel: &Cancel) -> Result<(), EngineError> {
        let mut more_points = false;
        if let Some(mut reader) = self.content.stream_reader() {
            // A bzip2 block carries its own checksum, so reading on is not needed.
            if self.kind == Some(StreamKind::Gzip) {
                reader.finish(cancel)?;
            }
            more_points = reader.take_has_new_points();
        }
        let mut walk = lock(&self.walk);
        let has_chunks = lock(&self.chunks).is_some();
        let worth_keeping = self.kind.is_some() || !self.source.is_local() || has_chunks;
        if !worth_keeping || !(walk.has_news || more_points) {
            return Ok(());
        }
        walk.has_news = false;
        let seek = self.content.stream_reader().map(|reader| reader.table());
        let hdus = walk.hdus.iter().map(|hdu| Hdu::clone(hdu)).collect();
        let chunks = self.chunk_index().map(|index| index.bytes().to_vec().into());
        let (next, warning) = (walk.next, walk.warning.clone());
        let members = self.members_to_keep();
        let mut entry = IndexEntry { hdus, next, warning, seek, chunks, members };
        if let Err(message) = index_entry::save(&*self.source, &mut entry) {
            self.note(format!("the index was not written: {message}"));
        }
        Ok(())
    }

    /// Seconds that decoding takes to start at each seek point of a stream: what this host costs.
    ///
    /// # Errors
    /// As [`Object::settle`].
    pub fn measure_restarts(&self, cancel: &Cancel) -> Result<Vec<f64>, EngineError> {
        let reader = self.content.stream_reader();
        reader.map_or(Ok(Vec::new()), |mut reader| reader.measure_restarts(cancel))
    }

    /// Read one more HDU.
    fn step(&self, walk: &mut Walk) -> Result<Option<Arc<Hdu>>, EngineError> {
        let Some(start) = walk.next else { return Ok(None) };
        let index = walk.hdus.len();
        let measure = |(header, bytes)| match Hdu::new(index, start, bytes, header) {
            Ok(hdu) => Ok((Arc::new(hdu), bytes)),
            Err(source) => Err(self.header_error(index, source)),
        };
        let header = self.read_header(index, start);
        let hdu = match header.and_then(|hdu| hdu.map(measure).transpose()) {
            Ok(hdu) => hdu,
            Err(error @ EngineError::Header { .. }) if index > 0 => {
                self.ignore(walk, index - 1, &error.to_string());
                None
            }
            Err(error) => return Err(error),
        };
        walk.has_news = true;
        walk.next = None;
        let Some((hdu, bytes)) = hdu else { return Ok(None) };
        walk.header_bytes += bytes;
        if walk.hdus.len() < HDU_LIMIT && walk.header_bytes < HEADERS_LIMIT {
            walk.next = Some(hdu.end());
        } else {
            self.ignore(walk, index, "too many headers");
        }
        walk.hdus.push(hdu.clone());
        Ok(Some(hdu))
    }

    /// The header that starts at `start`; `None` at the end of the object.
    fn read_header(&self, index: usize, start: u64) -> Result<Option<(Header, u64)>, EngineError> {
        let mut length = HEADER_BYTES;
        loop {
            let bytes = self.content.peek(start, length, &self.cancel)?;
            if bytes.is_empty() && index > 0 {
                return Ok(None);
            }
            let header =
                Header::parse(&bytes).map_err(|source| self.header_error(index, source))?;
            match header {
                HeaderParse::Complete { header, bytes } => return Ok(Some((header, bytes as u64))),
                HeaderParse::Incomplete if bytes.len() < length || length >= HEADER_LIMIT => {
                    return Err(EngineError::Truncated {
                        url: self.url().to_string(),
                        what: format!("the header of HDU {index} (no END card)"),
                        end: start + bytes.len() as u64,
                        start,
                        stop: start + length as u64,
                    });
                }
                HeaderParse::Incomplete => length *= 4,
            }
        }
    }

    pub(crate) fn header_error(&self, hdu: usize, source: swathe_fits::FitsError) -> EngineError {
        EngineError::Header { url: self.url().to_string(), hdu, source }
    }

    /// Stop at an HDU; the warning is repeated whenever the object is opened again.
    fn ignore(&self, walk: &mut Walk, last: usize, why: &str) {
        let note = format!("ignored what follows HDU {last}: {why}");
        walk.warning = Some(note.clone());
        self.note(note);
    }

    fn note(&self, note: String) {
        lock(&self.notes).push(format!("{}: {note}", self.url()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data behind these locks are whole between two statements, even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
