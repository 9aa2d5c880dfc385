//! Events of reads of a striped object: windows, parts of them, and what is rebuilt. Requests that
//! are sent meanwhile carry the store as STRIPE and the part as PART.

use crate::object::Object;
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Level, Record, Scope, event, is_on};

/// Run a read of a striped store; its requests carry the store.
pub(crate) fn in_stripe<T>(stripe: &str, work: impl FnOnce() -> T) -> T {
    if !is_on() {
        return work();
    }
    Scope::current().with(&[("STRIPE", stripe)]).run(work)
}

/// Run the read of a part; its requests carry the part.
pub(crate) fn in_part<T>(part: u32, work: impl FnOnce() -> T) -> T {
    if !is_on() {
        return work();
    }
    Scope::current().with(&[("PART", &part.to_string())]).run(work)
}

/// A stage with a recorded start. Dropped before its end, it counts as cancelled.
pub(crate) struct StageEvents {
    name: &'static str,
    about: Ids,
    is_ended: bool,
}

impl StageEvents {
    /// Record the start of a stage of an object.
    pub(crate) fn start(
        name: &'static str,
        object: &Object,
        fill: impl FnOnce(&mut Ids),
    ) -> StageEvents {
        let mut stage = StageEvents { name, about: Ids::default(), is_ended: !is_on() };
        if !stage.is_ended {
            stage.about.push("OBJECT", &object.label);
            fill(&mut stage.about);
            event(Level::Usage, &format!("{name}_START"), &stage.about, |_| {});
        }
        stage
    }

    /// Record its end: the number of bytes, or the error.
    pub(crate) fn end(mut self, result: Result<u64, &StoreError>) {
        let (level, word) = match result {
            Ok(_) => (Level::Usage, "ok"),
            Err(StoreError::Interrupted { .. }) => (Level::Usage, "cancelled"),
            Err(_) => (Level::Error, "error"),
        };
        self.record(level, |record| {
            record.number("BYTES", result.unwrap_or_default()).word("RESULT", word);
            if let Err(error) = result {
                record.text("REASON", &error.to_string());
            }
        });
    }

    fn record(&mut self, level: Level, fill: impl FnOnce(&mut Record<'_>)) {
        if !std::mem::replace(&mut self.is_ended, true) {
            event(level, &format!("{}_END", self.name), &self.about, fill);
        }
    }
}

impl Drop for StageEvents {
    fn drop(&mut self) {
        self.record(Level::Usage, |record| _ = record.word("RESULT", "cancelled"));
    }
}

/// Record what is decided about a part that is late.
pub(crate) fn record_hedge(name: &str, object: &Object, part: u32, bytes: u64) {
    event(Level::Usage, name, &Ids::default(), |record| {
        identify(record, object, part);
        record.number("BYTES", bytes);
    });
}

/// Record that bytes of a part are not what was written.
pub(crate) fn record_damage(object: &Object, part: u32, why: &str) {
    event(Level::Error, "STRIPE_DAMAGE", &Ids::default(), |record| {
        identify(record, object, part);
        record.text("WHY", why);
    });
}

fn identify(record: &mut Record<'_>, object: &Object, part: u32) {
    record
        .text("OBJECT", &object.label)
        .text("SERVER", &object.parts[part as usize].server_name())
        .number("PART", part.into());
}
