//! Events of writes of a striped object. Requests that are sent meanwhile carry the store as STRIPE,
//! and those of a part PART.

use crate::read_events::in_stripe;
use bytes::Bytes;
use swathe_store_api::{Comparison, Failure, PartSums, Sink, StoreError};
use swathe_trace::{Ids, Level, Record, event, is_on};

/// An object that is being written, with events.
struct EventSink {
    stripe: String,
    about: Ids,
    inner: Option<Box<dyn Sink>>,
    bytes: u64,
}

/// Begin to write an object of a striped store, with events while they are recorded.
pub(crate) fn record_write(
    stripe: &str,
    object: &str,
    begin: impl FnOnce() -> Result<Box<dyn Sink>, StoreError>,
) -> Result<Box<dyn Sink>, StoreError> {
    if !is_on() {
        return begin();
    }
    let (stripe, mut about) = (stripe.to_string(), Ids::default());
    about.push("OBJECT", object);
    event(Level::Usage, "STRIPE_WRITE_START", &about, |_| {});
    let mut sink = EventSink { stripe, about, inner: None, bytes: 0 };
    match in_stripe(&sink.stripe, begin) {
        Ok(inner) => sink.inner = Some(inner),
        Err(error) => {
            sink.end(Err(&error));
            return Err(error);
        }
    }
    Ok(Box::new(sink))
}

impl EventSink {
    fn sink(&mut self) -> &mut dyn Sink {
        &mut **self.inner.as_mut().expect("an object is finished once")
    }

    fn end(&self, result: Result<(), &StoreError>) {
        let (level, word) = match result {
            Ok(()) => (Level::Usage, "ok"),
            Err(StoreError::Interrupted { .. }) => (Level::Usage, "cancelled"),
            Err(_) => (Level::Error, "error"),
        };
        self.record(level, |record| {
            record.number("BYTES", self.bytes).word("RESULT", word);
            if let Err(error) = result {
                record.text("REASON", &error.to_string());
            }
        });
    }

    fn record(&self, level: Level, fill: impl FnOnce(&mut Record<'_>)) {
        event(level, "STRIPE_WRITE_END", &self.about, fill);
    }
}

impl Sink for EventSink {
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        self.bytes += part.len() as u64;
        self.sink().write(part)
    }

    fn reserve(&mut self, bytes: u64) -> Result<bool, StoreError> {
        self.sink().reserve(bytes)
    }

    fn finish(
        mut self: Box<Self>,
        sums: &PartSums,
        part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        let inner = self.inner.take().expect("an object is finished once");
        let result = in_stripe(&self.stripe, || inner.finish(sums, part_bytes, replaces));
        self.end(result.as_ref().map(|_| ()).map_err(|failure| &failure.error));
        result
    }
}

impl Drop for EventSink {
    /// Record the end of a write that was given up.
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            in_stripe(&self.stripe, || drop(inner));
            self.record(Level::Usage, |record| _ = record.word("RESULT", "cancelled"));
        }
    }
}
