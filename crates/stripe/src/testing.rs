//! Servers that fail, for tests.

use crate::server::{MARK_PATH, Server};
use crate::striped_store::StripedStore;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use swathe_plan::{Costs, Curve, Way};
use swathe_store_api::{
    Interrupt, ListItem, ListOptions, Listing, ObjectName, PartSums, Pieces, RequestTiming, Sink,
    Source, Store, StoreError, StoreSettings, Version,
};

/// What each of several threads waits at until all are there.
#[derive(Debug)]
pub(crate) struct Gate {
    needed: usize,
    arrivals: Mutex<usize>,
    change: Condvar,
    /// Whether one waited in vain.
    pub(crate) is_missed: AtomicBool,
}

impl Gate {
    pub(crate) fn new(needed: usize) -> Arc<Gate> {
        let (arrivals, change) = (Mutex::new(0), Condvar::new());
        Arc::new(Gate { needed, arrivals, change, is_missed: AtomicBool::new(false) })
    }

    fn wait(&self) {
        let mut arrivals = self.arrivals.lock().expect("no panic");
        *arrivals += 1;
        self.change.notify_all();
        let limit = Duration::from_secs(30);
        let wait = self.change.wait_timeout_while(arrivals, limit, |count| *count < self.needed);
        self.is_missed.fetch_or(wait.expect("no panic").1.timed_out(), Ordering::Relaxed);
    }
}

/// How a server behaves.
#[derive(Debug, Default)]
pub(crate) struct Behaviour {
    /// Nothing can be asked of it.
    pub(crate) is_dead: AtomicBool,
    /// It says nothing.
    pub(crate) is_hanging: AtomicBool,
    /// It cannot be listed.
    pub(crate) refuses_listing: AtomicBool,
    /// It cannot be connected to, and its requests wait to try again.
    pub(crate) is_unreachable: AtomicBool,
    /// It proves what it sends,
    pub(crate) is_proving: AtomicBool,
    /// but for its answers.
    pub(crate) lacks_proof: AtomicBool,
    /// It finds that its block with the first byte of a read is damaged, if that is proven.
    pub(crate) finds_damage: AtomicBool,
    /// Its block with this byte of each part is damaged.
    pub(crate) damaged_byte: Mutex<Option<u64>>,
    /// It says of each read of a part that another byte is damaged.
    pub(crate) is_lying: AtomicBool,
    /// How often it did.
    pub(crate) lies: AtomicU64,
    /// Bytes that it proved.
    pub(crate) proven_bytes: AtomicU64,
    /// Its sources that were made to prove what they send.
    pub(crate) proof_sources: AtomicU64,
    /// It says nothing to a writer.
    pub(crate) is_deaf: AtomicBool,
    /// What it was asked.
    pub(crate) questions: AtomicU64,
    /// Nothing can be written to it.
    pub(crate) is_full: AtomicBool,
    /// No record can be written to it.
    pub(crate) is_full_of_records: AtomicBool,
    /// It refuses records.
    pub(crate) refuses_records: AtomicBool,
    /// What it says of a record is lost on the way.
    pub(crate) loses_answers: AtomicBool,
    /// Records that were to be written to it.
    pub(crate) record_puts: AtomicU64,
    /// It dies when it has the next record, before it says so.
    pub(crate) dies_of_record: AtomicBool,
    /// Each opening takes so long,
    pub(crate) open_delay_ms: AtomicU64,
    /// and each read.
    pub(crate) delay_ms: AtomicU64,
    /// Each of its exact reads waits for others.
    pub(crate) gate: Mutex<Option<Arc<Gate>>>,
    /// Bytes read.
    pub(crate) read_bytes: AtomicU64,
    /// Objects opened.
    pub(crate) opens: AtomicU64,
}

/// A folder that fails as told.
#[derive(Debug)]
pub(crate) struct FlakyStore {
    inner: Arc<dyn Store>,
    pub(crate) behaviour: Arc<Behaviour>,
    is_remote: bool,
}

impl FlakyStore {
    fn check(&self, url: &str) -> Result<(), StoreError> {
        if self.behaviour.is_dead.load(Ordering::Relaxed) {
            let why = "connection refused".to_string();
            return Err(StoreError::Network { url: url.to_string(), why });
        }
        self.behaviour.questions.fetch_add(1, Ordering::Relaxed);
        hang_while(&self.behaviour.is_hanging, url)
    }
}

impl FlakyStore {
    fn source(&self, inner: Arc<dyn Source>, proven: Option<Version>) -> FlakySource {
        let (costs, behaviour) = (self.settings().costs.clone(), self.behaviour.clone());
        FlakySource { inner, behaviour, costs, is_remote: self.is_remote, proven }
    }
}

/// Say nothing for a while, unless that is interrupted.
fn hang_while(is_hanging: &AtomicBool, url: &str) -> Result<(), StoreError> {
    while is_hanging.load(Ordering::Relaxed) {
        if Interrupt::current().is_set() {
            return Err(StoreError::Interrupted { url: url.to_string() });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

impl Store for FlakyStore {
    fn settings(&self) -> &StoreSettings {
        self.inner.settings()
    }

    fn object_key(&self, url: &str) -> String {
        self.inner.object_key(url)
    }

    fn url_of(&self, path: &str) -> String {
        self.inner.url_of(path)
    }

    fn display_url(&self, url: &str) -> String {
        self.inner.display_url(url)
    }

    fn is_local(&self) -> bool {
        !self.is_remote
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn is_unreachable(&self) -> bool {
        self.behaviour.is_unreachable.load(Ordering::Relaxed)
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        self.check(object.url)?;
        self.behaviour.opens.fetch_add(1, Ordering::Relaxed);
        let delay_ms = self.behaviour.open_delay_ms.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(delay_ms));
        let inner = self.inner.open(object)?;
        Ok(Arc::new(self.source(inner, None)))
    }

    fn is_proving(&self) -> bool {
        self.behaviour.is_proving.load(Ordering::Relaxed)
    }

    fn assume_with_proof(
        &self,
        object: ObjectName<'_>,
        version: Version,
    ) -> Result<Option<Arc<dyn Source>>, StoreError> {
        if !self.is_proving() {
            return Ok(None);
        }
        self.behaviour.proof_sources.fetch_add(1, Ordering::Relaxed);
        let inner = self.inner.open(object)?;
        Ok(Some(Arc::new(self.source(inner, Some(version)))))
    }

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        self.check(object.url)?;
        if self.behaviour.refuses_listing.load(Ordering::Relaxed) {
            let (url, why) = (object.url.to_string(), ": status 503".to_string());
            return Err(StoreError::Network { url, why });
        }
        self.inner.list(object, options)
    }

    fn has_folder(&self, folder: ObjectName<'_>) -> Result<bool, StoreError> {
        self.check(folder.url)?;
        self.inner.has_folder(folder)
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        size: u64,
        in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        self.check(object.url)?;
        let is_record = object.url.ends_with(".stripe");
        self.behaviour.record_puts.fetch_add(is_record.into(), Ordering::Relaxed);
        hang_while(&self.behaviour.is_deaf, object.url)?;
        let (url, is) = (object.url.to_string(), |flag: &AtomicBool| flag.load(Ordering::Relaxed));
        if is_record && is(&self.behaviour.refuses_records) {
            return Err(StoreError::Forbidden { url, why: "read only".into() });
        }
        if is_record && is(&self.behaviour.loses_answers) {
            return Err(StoreError::Network { url, why: "reset".into() });
        }
        if self.behaviour.is_full.load(Ordering::Relaxed)
            || is_record && self.behaviour.is_full_of_records.load(Ordering::Relaxed)
        {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(StoreError::Io { url: object.url.to_string(), source });
        }
        let sink = self.inner.create(object, size, in_parts)?;
        if is_record && self.behaviour.dies_of_record.swap(false, Ordering::Relaxed) {
            self.behaviour.is_dead.store(true, Ordering::Relaxed);
        }
        Ok(sink)
    }

    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        self.check(object.url)?;
        self.inner.remove(object)
    }
}

struct FlakySource {
    inner: Arc<dyn Source>,
    behaviour: Arc<Behaviour>,
    costs: Costs,
    is_remote: bool,
    /// The version at which its bytes must be proven.
    proven: Option<Version>,
}

impl FlakySource {
    /// Prove bytes, or say why not.
    fn prove(&self, requests: &[Range<u64>]) -> Result<(), StoreError> {
        let Some(version) = &self.proven else { return Ok(()) };
        let url = self.url().to_string();
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        if *version != *self.inner.version() {
            return Err(StoreError::Changed { url, version: version.to_string() });
        }
        if is(&self.behaviour.lacks_proof) {
            return Err(StoreError::Unsupported { url, why: "no proof".into() });
        }
        let byte = requests.first().map_or(0, |range| range.start);
        if is(&self.behaviour.finds_damage) {
            return Err(StoreError::Damaged { url, byte, why: "damaged".into() });
        }
        let bytes = requests.iter().map(|range| range.end - range.start).sum();
        self.behaviour.proven_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Source for FlakySource {
    fn url(&self) -> &str {
        self.inner.url()
    }

    fn version(&self) -> &Version {
        self.inner.version()
    }

    fn is_local(&self) -> bool {
        !self.is_remote
    }

    fn costs(&self) -> &Costs {
        &self.costs
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let gate = self.behaviour.gate.lock().expect("no panic").clone();
        if let Some(gate) = gate {
            gate.wait();
        }
        self.inner.read_exact_at(offset, buffer)
    }

    fn fetch_by(&self, requests: Vec<Range<u64>>, way: Way) -> Pieces {
        let (behaviour, url) = (self.behaviour.clone(), self.url().to_string());
        if behaviour.is_lying.load(Ordering::Relaxed) {
            let byte = 1 + 7 * behaviour.lies.fetch_add(1, Ordering::Relaxed);
            let why = "damaged".into();
            return Box::new(std::iter::once(Err(StoreError::Damaged { url, byte, why })));
        }
        let damaged = *behaviour.damaged_byte.lock().expect("no panic");
        if let Some(byte) = damaged.filter(|at| requests.iter().any(|range| range.contains(at))) {
            return Box::new(std::iter::once(Err(StoreError::Damaged {
                url,
                byte,
                why: "damaged".into(),
            })));
        }
        if let Err(error) = self.prove(&requests) {
            return Box::new(std::iter::once(Err(error)));
        }
        Box::new(self.inner.fetch_by(requests, way).map(move |piece| {
            std::thread::sleep(Duration::from_millis(behaviour.delay_ms.load(Ordering::Relaxed)));
            hang_while(&behaviour.is_hanging, &url)?;
            if behaviour.is_dead.load(Ordering::Relaxed) {
                return Err(StoreError::Network { url: url.clone(), why: "reset".into() });
            }
            let bytes = piece.as_ref().map_or(0, |piece| piece.len() as u64);
            behaviour.read_bytes.fetch_add(bytes, Ordering::Relaxed);
            piece
        }))
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        self.inner.measure(requests, streams, fresh)
    }
}

/// A striped store over folders of its own.
pub(crate) struct TestStripe {
    pub(crate) store: StripedStore,
    pub(crate) behaviours: Vec<Arc<Behaviour>>,
    pub(crate) folder: tempfile::TempDir,
}

/// Names and sizes, and notes.
type ListedNames = (Vec<(String, Option<u64>)>, Vec<String>);

pub(crate) const BLOCK: u64 = 8192;

impl TestStripe {
    /// Over `servers` folders, which are read as folders or, with `is_remote`, as servers.
    pub(crate) fn new(servers: usize, parity: u32, is_remote: bool) -> TestStripe {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut all, mut behaviours) = (Vec::new(), Vec::new());
        for number in 0..servers {
            let path = folder.path().join(format!("s{number}"));
            std::fs::create_dir(&path).expect("made");
            let settings = StoreSettings::new(
                format!("s{number}"),
                format!("file://{}", path.display()),
                BTreeMap::new(),
            );
            // Far slower than a folder, far quicker than the delays of tests.
            let costs = Costs { request: Curve::affine(1e-4, 1e9), streams: 2, ..Costs::remote() };
            let settings = if is_remote { StoreSettings { costs, ..settings } } else { settings };
            let behaviour: Arc<Behaviour> = Arc::default();
            let inner = swathe_store::connect(settings);
            let store = FlakyStore { inner, behaviour: behaviour.clone(), is_remote };
            all.push(Arc::new(Server::new(Arc::new(store), "")));
            behaviours.push(behaviour);
        }
        let options = BTreeMap::from([
            ("parity".to_string(), parity.to_string()),
            ("block_bytes".to_string(), BLOCK.to_string()),
        ]);
        let settings = StoreSettings::new("wide".into(), "striped://wide".into(), options);
        let store = StripedStore::of_servers(settings, all);
        TestStripe { store, behaviours, folder }
    }

    pub(crate) fn url(path: &str) -> String {
        format!("striped://wide/{path}")
    }

    pub(crate) fn create(&self, path: &str, size: u64) -> Result<Box<dyn Sink>, StoreError> {
        let url = TestStripe::url(path);
        self.store.create(ObjectName { url: &url, qualified_name: None }, size, true)
    }

    pub(crate) fn put(&self, path: &str, bytes: &[u8], replaces: bool) -> Result<(), StoreError> {
        let mut sink = self.create(path, bytes.len() as u64)?;
        for part in bytes.chunks(10_000) {
            sink.write(part.to_vec().into()).map_err(|failure| failure.error)?;
        }
        sink.finish(&PartSums::default(), 10_000, replaces)
            .map(drop)
            .map_err(|failure| failure.error)
    }

    pub(crate) fn open(&self, path: &str) -> Result<Arc<dyn Source>, StoreError> {
        let url = TestStripe::url(path);
        self.store.open(ObjectName { url: &url, qualified_name: None })
    }

    pub(crate) fn get(&self, path: &str) -> Result<Vec<u8>, StoreError> {
        let source = self.open(path)?;
        let mut bytes = vec![0; source.len() as usize];
        source.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn remove(&self, path: &str) -> Result<(), StoreError> {
        let url = TestStripe::url(path);
        self.store.remove(ObjectName { url: &url, qualified_name: None })
    }

    /// The names and sizes of a listing.
    pub(crate) fn list(&self, path: &str) -> Result<Vec<(String, Option<u64>)>, StoreError> {
        self.list_with_notes(path).map(|(all, _)| all)
    }

    /// The same, and the notes.
    pub(crate) fn list_with_notes(&self, path: &str) -> Result<ListedNames, StoreError> {
        let url = TestStripe::url(path);
        let options = ListOptions { may_lack: true, ..ListOptions::default() };
        let mut listing =
            self.store.list(ObjectName { url: &url, qualified_name: None }, options)?;
        let mut all = Vec::new();
        while let Some(page) = listing.next_page()? {
            all.extend(page.into_iter().map(|item| match item {
                ListItem::Object(entry) => (entry.path, entry.size),
                ListItem::Unlisted { path, .. } => (path, None),
            }));
        }
        Ok((all, listing.take_notes()))
    }

    /// Objects of servers that were opened.
    pub(crate) fn opens(&self) -> u64 {
        let each = self.behaviours.iter();
        each.map(|behaviour| behaviour.opens.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn kill(&self, server: usize, is_dead: bool) {
        self.behaviours[server].is_dead.store(is_dead, Ordering::Relaxed);
    }

    /// The files of a server: of parts, or of records.
    pub(crate) fn files(&self, server: usize, records: bool) -> Vec<PathBuf> {
        let folder = self.folder.path().join(format!("s{server}"));
        let entries =
            std::fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path());
        let mut files: Vec<PathBuf> = entries
            .filter(|path| !path.ends_with(MARK_PATH))
            .filter(|path| (path.extension().is_some_and(|end| end == "stripe")) == records)
            .collect();
        files.sort();
        files
    }

    pub(crate) fn part(&self, server: usize) -> PathBuf {
        self.files(server, false).remove(0)
    }

    pub(crate) fn record(&self, server: usize) -> PathBuf {
        self.files(server, true).remove(0)
    }
}

/// Bytes that differ from place to place.
pub(crate) fn bytes_of(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    (0..size).map(|_| next()).collect()
}

/// Flip a bit of a file.
pub(crate) fn flip(path: &PathBuf, at: usize) {
    let mut bytes = std::fs::read(path).expect("read");
    let at = at % bytes.len();
    bytes[at] ^= 4;
    std::fs::write(path, bytes).expect("written");
}

/// A server of a stripe with other settings.
pub(crate) fn with_settings(
    stripe: &TestStripe,
    number: usize,
    settings: StoreSettings,
) -> Arc<dyn Store> {
    let behaviour = stripe.behaviours[number].clone();
    Arc::new(FlakyStore { inner: swathe_store::connect(settings), behaviour, is_remote: true })
}
