//! A striped object that is open: a source of bytes.

use crate::hedge::Hedges;
use crate::layout::Layout;
use crate::names::part_path;
use crate::parity::Parity;
use crate::part::Part;
use crate::record::Header;
use crate::records::{Record, Records};
use crate::server::Server;
use crate::striped_read::StripedRead;
use crate::sums::Sums;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use swathe_plan::{Connections, Costs, Factors, Way};
use swathe_store_api::{Pieces, RequestTiming, Source, StoreError, Traffic, Version};

/// What is known of an open object.
pub(crate) struct Object {
    pub(crate) url: String,
    pub(crate) version: Version,
    pub(crate) header: Header,
    pub(crate) parts: Vec<Part>,
    pub(crate) parity: Parity,
    pub(crate) sums: Sums,
    pub(crate) hedges: Arc<Hedges>,
    servers: Vec<Arc<Server>>,
    records: Vec<Record>,
    costs: Costs,
    is_local: bool,
    notes: Mutex<Vec<String>>,
}

impl Object {
    /// Open the object at a path.
    pub(crate) fn open(
        servers: &[Arc<Server>],
        path: &str,
        url: String,
        costs: impl FnOnce(Layout) -> Costs,
        hedges: &Arc<Hedges>,
    ) -> Result<Object, StoreError> {
        let answers = Records::read(servers, path, false);
        let header = answers.current(servers, &url)?.header.clone();
        let same = answers.records().filter(|record| record.header == header);
        let records: Vec<Record> = same.cloned().collect();
        Ok(Object::of_records(servers, url, header, records, costs, hedges))
    }

    /// An object whose records were read.
    pub(crate) fn of_records(
        servers: &[Arc<Server>],
        url: String,
        header: Header,
        records: Vec<Record>,
        costs: impl FnOnce(Layout) -> Costs,
        hedges: &Arc<Hedges>,
    ) -> Object {
        let layout = header.layout;
        let parts = header.parts.iter().enumerate().map(|(number, entry)| {
            let number = number as u32;
            let path = part_path(&header.path, &header.generation, layout.size, number);
            Part::new(path, layout.part_bytes(number), entry, servers)
        });
        Object {
            version: Version { size: layout.size, tag: format!("\"{}\"", header.generation) },
            parts: parts.collect(),
            parity: Parity::new(layout.data, layout.parity),
            sums: Sums::new(records.clone()),
            hedges: hedges.clone(),
            is_local: servers.iter().all(|server| server.store().is_local()),
            costs: costs(layout),
            servers: servers.to_vec(),
            notes: Mutex::default(),
            url,
            header,
            records,
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        self.header.layout
    }

    /// The error if too few parts can be read: that it was replaced, if it was.
    pub(crate) fn too_few(&self, damages: &[String]) -> StoreError {
        let answers = Records::read(&self.servers, &self.header.path, true);
        if let Some(newest) = answers.newest()
            && newest.header.generation > self.header.generation
        {
            return StoreError::Changed {
                url: self.url.clone(),
                version: self.version.to_string(),
            };
        }
        let losses: Vec<String> = self.parts.iter().filter_map(Part::loss).collect();
        let (url, layout) = (self.url.clone(), self.layout());
        let (needed, all) = (layout.data, layout.parts());
        if losses.is_empty() {
            let expected = format!("bytes as they were written in {needed} of {all} parts");
            return StoreError::Differs { url, expected, found: damages.join("; ") };
        }
        let there = all as usize - losses.len();
        let all_losses: Vec<&str> = losses.iter().chain(damages).map(String::as_str).collect();
        let why = format!(
            "expected bytes of any {needed} of its {all} parts, found {there} parts; lost: {}",
            all_losses.join("; ")
        );
        StoreError::Network { url, why }
    }

    /// Remember a warning for the user.
    pub(crate) fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    fn check(&self, range: &Range<u64>) -> Result<(), StoreError> {
        let size = self.version.size;
        if range.end <= size && range.start <= range.end {
            return Ok(());
        }
        Err(StoreError::ShortRead {
            url: self.url.clone(),
            start: range.start,
            expected: range.end.saturating_sub(range.start),
            found: size.saturating_sub(range.start),
        })
    }
}

/// A striped object as a source.
pub(crate) struct StripedSource(pub(crate) Arc<Object>);

impl StripedSource {
    fn read(&self, requests: Vec<Range<u64>>) -> Pieces {
        // Up to the first that cannot be.
        let good = requests.iter().take_while(|range| self.0.check(range).is_ok()).count();
        let error = requests.get(good).and_then(|range| self.0.check(range).err());
        let requests = requests.into_iter().take(good).collect();
        Box::new(StripedRead::new(self.0.clone(), requests).chain(error.map(Err)))
    }
}

impl Source for StripedSource {
    fn url(&self) -> &str {
        &self.0.url
    }

    fn version(&self) -> &Version {
        &self.0.version
    }

    fn is_local(&self) -> bool {
        self.0.is_local
    }

    fn costs(&self) -> &Costs {
        &self.0.costs
    }

    fn connections(&self) -> Connections {
        Connections::ALL
    }

    fn factors(&self) -> Factors {
        // The slowest part is waited for.
        let factors = self.0.parts.iter().filter_map(|part| Some(part.source()?.factors()));
        factors.fold(Factors::default(), |all, of| Factors {
            line: all.line.max(of.line),
            latency: all.latency.max(of.latency),
        })
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        if let Some(piece) = self.read(vec![range]).next() {
            buffer.copy_from_slice(&piece?);
        }
        Ok(())
    }

    fn fetch_by(&self, ranges: Vec<Range<u64>>, _: Way) -> Pieces {
        self.read(ranges)
    }

    fn take_traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        self.0.records.iter().for_each(|record| traffic.add(record.source.take_traffic()));
        self.0.parts.iter().for_each(|part| traffic.add(part.take_traffic()));
        traffic
    }

    fn take_notes(&self) -> Vec<String> {
        let mut notes =
            std::mem::take(&mut *self.0.notes.lock().unwrap_or_else(PoisonError::into_inner));
        let sources = self.0.parts.iter().filter_map(Part::source);
        notes.extend(sources.flat_map(|source| source.take_notes()));
        notes
    }

    fn measure(
        &self,
        requests: &[Range<u64>],
        streams: u32,
        _fresh: bool,
    ) -> Result<Vec<RequestTiming>, StoreError> {
        let (began, next) = (Instant::now(), AtomicUsize::new(0));
        let timings = Mutex::new(vec![None; requests.len()]);
        let scope = swathe_trace::Scope::current();
        let interrupt = swathe_store_api::Interrupt::current();
        let measure = || -> Result<(), StoreError> {
            scope.clone().enter();
            interrupt.enter();
            while let Some((at, range)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                requests.get(at).map(|range| (at, range.clone()))
            } {
                let start_s = began.elapsed().as_secs_f64();
                let mut bytes =
                    vec![0; self.0.check(&range).map(|()| range.end - range.start)? as usize];
                self.read_exact_at(range.start, &mut bytes)?;
                let end_s = began.elapsed().as_secs_f64();
                let timing = RequestTiming {
                    bytes: bytes.len() as u64,
                    start_s,
                    first_byte_s: end_s,
                    end_s,
                };
                timings.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(timing);
            }
            Ok(())
        };
        std::thread::scope(|threads| {
            let running: Vec<_> = (0..streams.max(1)).map(|_| threads.spawn(&measure)).collect();
            running.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        let timings = timings.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(timings.into_iter().flatten().collect())
    }
}
