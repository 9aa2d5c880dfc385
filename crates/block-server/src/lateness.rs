//! How late the server comes to its work: while other programs have its cores, or it is stopped, its
//! requests wait neither for a disk nor for a client.

use crate::request_record::RequestCounts;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use swathe_trace::{Ids, Level, event};
use tokio::time::{Instant, sleep_until};

/// The time between two looks at the clock while there are requests.
const BEAT: Duration = Duration::from_millis(10);
/// The time between two looks at the clock while the server rests.
const REST: Duration = Duration::from_millis(200);
/// The server rests when it had no request for this time.
const REST_AFTER: Duration = Duration::from_secs(1);
/// The shortest delay that counts.
const LEAST: Duration = Duration::from_millis(5);

/// Look at the clock again and again; count and record delays.
pub(crate) async fn watch(counts: Arc<RequestCounts>) {
    let (mut last_work, mut last_count) = (Instant::now(), 0);
    loop {
        // Most requests are shorter than the time between two looks.
        let count = counts.answers();
        if counts.in_flight.load(Ordering::Relaxed) > 0 || count != last_count {
            (last_work, last_count) = (Instant::now(), count);
        }
        let is_idle = last_work.elapsed() > REST_AFTER;
        let due = Instant::now() + if is_idle { REST } else { BEAT };
        sleep_until(due).await;
        let delay = due.elapsed();
        if delay >= LEAST {
            counts.late_ns.fetch_add(delay.as_nanos() as u64, Ordering::Relaxed);
            event(Level::Usage, "SERVER_LATE", &Ids::default(), |record| {
                record.seconds("DELAY_S", delay);
            });
        }
    }
}
