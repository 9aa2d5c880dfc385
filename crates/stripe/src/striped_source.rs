//! A striped object as a source of bytes.

use crate::object::Object;
use crate::part::Part;
use crate::striped_read::StripedRead;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use swathe_plan::{Connections, Costs, Factors, Way};
use swathe_store_api::{
    Checksum, Interrupt, Pieces, RequestTiming, Source, StoreError, Traffic, Version, measure_reads,
};
use swathe_trace::Scope;

/// A striped object as a source.
pub(crate) struct StripedSource(pub(crate) Arc<Object>);

impl StripedSource {
    /// The first bytes, as many as opening another object brings: readers of headers read some of them,
    /// then more.
    fn first_bytes(&self, count: u64) -> Result<Bytes, StoreError> {
        if let Some(first) = self.0.first.get() {
            return Ok(first.clone());
        }
        let first = self.read(vec![0..count]).next().unwrap_or_else(|| Ok(Bytes::new()))?;
        Ok(self.0.first.get_or_init(|| first).clone())
    }

    fn read(&self, requests: Vec<Range<u64>>) -> Pieces {
        self.read_on(requests, u32::MAX)
    }

    fn read_on(&self, requests: Vec<Range<u64>>, most_streams: u32) -> Pieces {
        // Up to the first that cannot be.
        let good = requests.iter().take_while(|range| self.0.check(range).is_ok()).count();
        let error = requests.get(good).and_then(|range| self.0.check(range).err());
        let requests = requests.into_iter().take(good).collect();
        Box::new(StripedRead::new(self.0.clone(), requests, most_streams).chain(error.map(Err)))
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
        let first = self.0.costs.first_bytes().min(self.len());
        // If too many parts are lost for all of them, there may be enough for these.
        if !self.0.is_local
            && range.end <= first
            && let Ok(first) = self.first_bytes(first)
        {
            buffer.copy_from_slice(&first[range.start as usize..range.end as usize]);
            return Ok(());
        }
        if let Some(piece) = self.read(vec![range]).next() {
            buffer.copy_from_slice(&piece?);
        }
        Ok(())
    }

    /// The requests of each part are planned here. Only for requests with many ranges, the streams of
    /// `way` are a limit: the caller knows how many others read at the same time.
    fn fetch_by(&self, ranges: Vec<Range<u64>>, way: Way) -> Pieces {
        let is_vector = way.ranges_per_request > 1;
        self.read_on(ranges, if is_vector { way.streams } else { u32::MAX })
    }

    fn take_traffic(&self) -> Traffic {
        self.0.take_traffic()
    }

    /// That of its record.
    fn checksums(&self) -> Result<Vec<Checksum>, StoreError> {
        let (algorithm, value) = ("crc32".to_string(), format!("{:08x}", self.0.header.crc32));
        Ok(vec![Checksum { algorithm, value, is_exact: true }])
    }

    fn take_notes(&self) -> Vec<String> {
        let mut notes = self.0.take_notes();
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
        let (scope, interrupt) = (Scope::current(), Interrupt::current());
        measure_reads(requests, streams, |range| {
            scope.clone().enter();
            interrupt.enter();
            self.read(vec![range.clone()]).next().unwrap_or_else(|| Ok(Bytes::new()))
        })
    }
}
