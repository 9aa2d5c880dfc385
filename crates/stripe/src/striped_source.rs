//! A striped object as a source of bytes.

use crate::object::Object;
use crate::part::Part;
use crate::striped_read::StripedRead;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use swathe_plan::{Connections, Costs, Factors, Way};
use swathe_store_api::{Pieces, RequestTiming, Source, StoreError, Traffic, Version};

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
        self.0.take_traffic()
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
            let running: Vec<_> = (0..streams.max(1)).map(|_| threads.spawn(measure)).collect();
            running.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        let timings = timings.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(timings.into_iter().flatten().collect())
    }
}
