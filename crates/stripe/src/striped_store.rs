//! Several servers as one store.

use crate::combined_costs::combine;
use crate::hedge::Hedges;
use crate::layout::{Layout, MOST_PARTS};
use crate::listing::list_objects;
use crate::marks::{WORK_MEMORY, compare_marks, mark_servers};
use crate::minority::roll_forward;
use crate::object::Object;
use crate::object_records::Records;
use crate::parity::code_name;
use crate::question::majority;
use crate::read_events::in_stripe;
use crate::record_format::{Generation, Header, PartEntry, is_name};
use crate::server::{MARK_PATH, Server};
use crate::server_places::{allow_new_folders, refuse_same_places};
use crate::striped_copy::{copy_parts, refusal};
use crate::striped_room::StripedRoom;
use crate::striped_sink::{StripedSink, WRITE_GRACE, put_or_take_back, remove_parts};
use crate::striped_source::StripedSource;
use crate::write_events::record_write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use swathe_plan::{Connections, Costs};
use swathe_store_api::{
    CopyRefusal, CopySource, ListOptions, Listing, ObjectName, Room, ServerCopy, Sink, Source,
    Store, StoreError, StoreSettings,
};

/// Root of striped stores: `striped://NAME`.
pub(crate) const SCHEME: &str = "striped";
/// Bytes of a block, if the store does not say.
const BLOCK_BYTES: u64 = 1 << 20;
/// Longest path: the names of parts are longer, and file systems allow 255 bytes.
const LONGEST_NAME: usize = 170;

/// A store whose objects are striped over others.
#[derive(Clone, Debug)]
pub(crate) struct StripedStore {
    settings: StoreSettings,
    pub(crate) servers: Vec<Arc<Server>>,
    layout: Result<Layout, String>,
    pub(crate) hedges: Arc<Hedges>,
    /// How long a part that is written is waited for, when it is later than the others.
    pub(crate) late: Duration,
    /// Whether no two servers are one place.
    is_apart: Arc<AtomicBool>,
    /// Whether servers without a mark were given one.
    is_marked: Arc<Mutex<bool>>,
}

impl StripedStore {
    /// A store of these settings over stores that `connect` makes.
    pub(crate) fn new(
        settings: StoreSettings,
        connect: fn(StoreSettings) -> Arc<dyn Store>,
    ) -> StripedStore {
        let servers = settings.over.iter();
        let servers = servers
            .map(|place| Arc::new(Server::new(connect(place.store.clone()), &place.prefix)))
            .collect();
        StripedStore::of_servers(settings, servers)
    }

    pub(crate) fn of_servers(settings: StoreSettings, servers: Vec<Arc<Server>>) -> StripedStore {
        let layout = layout_of(&settings, servers.len());
        let stripe = settings.options.get("stripe").filter(|name| is_name(name));
        servers.iter().for_each(|server| server.identity().known_stripe = stripe.cloned());
        let costs = match &layout {
            Ok(layout) if !settings.is_measured => costs_of(&servers, *layout),
            _ => settings.costs.clone(),
        };
        let settings = StoreSettings { costs, ..settings };
        let first = servers.first().map(|server| server.url()).unwrap_or_default();
        let hedges = Hedges::of(&format!("{} {first}", settings.root));
        let (is_apart, is_marked) = (Arc::default(), Arc::default());
        StripedStore { settings, servers, layout, hedges, late: WRITE_GRACE, is_apart, is_marked }
    }

    /// The layout of an object of this size.
    pub(crate) fn layout(&self, url: &str, path: &str, size: u64) -> Result<Layout, StoreError> {
        let refuse = |why: String| StoreError::Unsupported { url: url.to_string(), why };
        let layout = self.layout.clone().map_err(refuse)?;
        layout.of_object(path, size).check().map_err(|error| refuse(error.to_string()))
    }

    /// The path of an object in the store.
    pub(crate) fn path_of<'a>(&self, url: &'a str) -> Result<&'a str, StoreError> {
        let refuse = |why: &str| StoreError::Unsupported { url: url.to_string(), why: why.into() };
        self.layout.as_ref().map_err(|why| refuse(why))?;
        let rest =
            url.strip_prefix(&self.settings.root).ok_or_else(|| refuse("not in this store"))?;
        let path = rest.trim_start_matches('/');
        if path.split('/').any(|name| name == ".." || name == ".") || path.contains('\0') {
            return Err(refuse("its path has a name that is '.' or '..', or a null character"));
        }
        if path.split('/').next() == Some(MARK_PATH) {
            return Err(refuse(&format!("{MARK_PATH} is a file of the store itself")));
        }
        if path.split('/').any(|name| name.len() > LONGEST_NAME) {
            let why = format!("a name of its path is longer than {LONGEST_NAME} bytes");
            return Err(refuse(&why));
        }
        Ok(path)
    }

    /// The path of an object, which is not a folder.
    fn object_path<'a>(&self, url: &'a str) -> Result<&'a str, StoreError> {
        match self.path_of(url)? {
            path if path.is_empty() || path.ends_with('/') => {
                let why = "a folder, not an object".to_string();
                Err(StoreError::Unsupported { url: url.to_string(), why })
            }
            path => Ok(path),
        }
    }

    /// Look at the places of the servers before something is written to them.
    fn check_places(&self, url: &str) -> Result<(), StoreError> {
        if !self.is_apart.load(Ordering::Relaxed) {
            let is_apart = refuse_same_places(&self.servers, url)?;
            self.is_apart.store(is_apart, Ordering::Relaxed);
        }
        allow_new_folders(&self.servers);
        self.mark_servers(url)
    }

    /// Give its servers marks where they need one, once, and compare those there are.
    ///
    /// # Errors
    /// As [`mark_servers`].
    pub(crate) fn mark_servers(&self, url: &str) -> Result<(), StoreError> {
        let mut is_marked = self.is_marked.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_marked {
            mark_servers(&self.servers, url)?;
            *is_marked = true;
        }
        drop(is_marked);
        compare_marks(&self.servers, WORK_MEMORY);
        Ok(())
    }

    fn costs(&self, layout: Layout) -> Costs {
        if self.settings.is_measured {
            return self.settings.costs.clone();
        }
        costs_of(&self.servers, layout)
    }

    /// Open an object with what is known of it.
    pub(crate) fn open_object(&self, url: &str) -> Result<Object, StoreError> {
        let path = self.object_path(url)?;
        let mut records = Records::read(&self.servers, path, false);
        if records.is_disputed() && records.count_statements() < majority(self.servers.len()) {
            records = Records::read(&self.servers, path, true);
        }
        let object = self.object_of(url, &records);
        let is_known = matches!(object, Ok(_) | Err(StoreError::NotFound { .. }));
        if is_known && records.is_disputed() {
            roll_forward(&self.servers, &records, url, object.as_ref().ok())?;
        }
        object
    }

    /// The object that these records are of.
    pub(crate) fn object_of(&self, url: &str, records: &Records) -> Result<Object, StoreError> {
        let header = records.current(&self.servers, url)?.header.clone();
        let same = records.records().filter(|record| record.header == header).cloned().collect();
        let costs = self.costs(header.layout);
        let url = url.to_string();
        let mut object = Object::of_records(&self.servers, url, header, same, costs, &self.hedges);
        object.stripe = self.settings.name.clone();
        Ok(object)
    }
}

fn costs_of(servers: &[Arc<Server>], layout: Layout) -> Costs {
    let costs: Vec<&Costs> =
        servers.iter().map(|server| &server.store().settings().costs).collect();
    combine(&costs, layout)
}

/// The layout of objects, from the options of the store: `parity` (0), `block_bytes` (1 MiB).
fn layout_of(settings: &StoreSettings, servers: usize) -> Result<Layout, String> {
    let number = |name: &str, default: u64| match settings.options.get(name) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| format!("the option {name}: expected a number, found {text:?}")),
    };
    let parity = number("parity", 0)?;
    let block_bytes = number("block_bytes", BLOCK_BYTES)?;
    if servers == 0 || servers > MOST_PARTS as usize || parity >= servers as u64 {
        let most = MOST_PARTS;
        return Err(format!(
            "a striped store: expected {} to {most} places for parity {parity}, found {servers}",
            parity.saturating_add(1)
        ));
    }
    let data = servers as u32 - parity as u32;
    let layout = Layout::new(0, block_bytes, data, parity as u32);
    layout.check().map_err(|error| error.to_string())
}

impl Store for StripedStore {
    fn settings(&self) -> &StoreSettings {
        &self.settings
    }

    fn object_key(&self, url: &str) -> String {
        url.to_string()
    }

    fn url_of(&self, path: &str) -> String {
        format!("{}/{}", self.settings.root, path.trim_start_matches('/'))
    }

    fn display_url(&self, url: &str) -> String {
        url.to_string()
    }

    fn is_local(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|server| server.store().is_local())
    }

    fn is_writable(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|server| server.store().is_writable())
    }

    fn is_served_here(&self, _url: &str) -> bool {
        self.servers.iter().any(|server| {
            let store = server.store();
            !store.is_local() && store.is_served_here(&store.url_of(""))
        })
    }

    fn connections(&self) -> Connections {
        Connections::ALL
    }

    fn open(&self, object: ObjectName<'_>) -> Result<Arc<dyn Source>, StoreError> {
        let name = object.qualified_name.unwrap_or(object.url);
        let open = || self.open_object(object.url);
        let mut object = in_stripe(&self.settings.name, open)?;
        object.label = name.to_string();
        Ok(Arc::new(StripedSource(Arc::new(object))))
    }

    fn list(
        &self,
        object: ObjectName<'_>,
        options: ListOptions,
    ) -> Result<Box<dyn Listing>, StoreError> {
        let path = self.path_of(object.url)?.to_string();
        Ok(list_objects(self.servers.clone(), path, object.url.to_string(), options))
    }

    fn create(
        &self,
        object: ObjectName<'_>,
        size: u64,
        _in_parts: bool,
    ) -> Result<Box<dyn Sink>, StoreError> {
        let path = self.object_path(object.url)?;
        let layout = self.layout(object.url, path, size)?;
        self.check_places(object.url)?;
        let (url, label) = (object.url.to_string(), object.qualified_name.unwrap_or(object.url));
        record_write(&self.settings.name, label, || {
            let mut sink = StripedSink::create(&self.servers, path, url, layout, Vec::new())?;
            sink.set_late(self.late);
            Ok(Box::new(sink))
        })
    }

    fn reserve(&self, object: ObjectName<'_>, bytes: u64) -> Result<Box<dyn Room>, StoreError> {
        self.check_places(object.url)?;
        let store = self.clone();
        let layout_of = Box::new(move |url: &str, size| {
            let path = store.object_path(url)?;
            Ok((path.to_string(), store.layout(url, path, size)?))
        });
        let name = self.settings.name.clone();
        Ok(Box::new(StripedRoom::create(&self.servers, (name, object.url), bytes, layout_of)?))
    }

    /// Within the store the server of each part copies it.
    fn copy_from(
        &self,
        object: ObjectName<'_>,
        source: &CopySource<'_>,
    ) -> Result<Box<dyn ServerCopy>, CopyRefusal> {
        let ours = (&self.settings.name, &self.settings.root);
        let theirs = source.store.settings();
        if ours != (&theirs.name, &theirs.root) {
            return Err(CopyRefusal::Unable("the copies are striped".into()));
        }
        in_stripe(&self.settings.name, || {
            let path = self.object_path(object.url).map_err(CopyRefusal::Failed)?;
            let from = self.open_object(source.object.url).map_err(CopyRefusal::Failed)?;
            if from.version != *source.version {
                let (url, version) = (source.object.url.into(), source.version.to_string());
                return Err(CopyRefusal::Failed(StoreError::Changed { url, version }));
            }
            let parity = self.layout(object.url, path, 0).map_err(CopyRefusal::Failed)?.parity;
            if let Some(why) = refusal(&from, &self.servers, parity) {
                return Err(CopyRefusal::Unable(why));
            }
            self.check_places(object.url).map_err(CopyRefusal::Failed)?;
            let (url, layout) = (object.url.to_string(), from.header.layout);
            let sink = StripedSink::begin(&self.servers, path, url, layout);
            copy_parts(&from, sink.map_err(CopyRefusal::Failed)?, source, object.url)
        })
    }

    /// A record that it is removed takes the place of its record: a server that is not reached now
    /// has an older one, which no longer counts.
    fn remove(&self, object: ObjectName<'_>) -> Result<(), StoreError> {
        let path = self.object_path(object.url)?;
        let records = Records::read(&self.servers, path, true);
        let last = records.current(&self.servers, object.url)?.header.clone();
        compare_marks(&self.servers, WORK_MEMORY);
        // A removal that a minority has would count later, though it is told to have failed.
        records.check_majority(&self.servers, object.url)?;
        let generation = Generation::after(Some(&last.generation));
        let layout = last.layout.with_size(0);
        let code = code_name(layout.parity).to_string();
        let parts = last.parts.iter().map(|part| PartEntry { version: None, ..part.clone() });
        let header = Header {
            path: path.to_string(),
            stripe: self.servers[0].stripe(),
            generation,
            is_removed: true,
            layout,
            code,
            crc32: 0,
            parts: parts.collect(),
        };
        put_or_take_back(&self.servers, object.url, &header, header.encode(&[]), &records)?;
        remove_parts(&self.servers, path, &last.generation, last.layout);
        Ok(())
    }
}
