//! The progress of a copy that a server makes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use swathe_store_api::CopySource;
use tokio::time::sleep;

/// The time between two reports.
const STEP: Duration = Duration::from_millis(200);

/// Report again and again how many bytes were copied; return when the caller stops the copy.
pub(super) async fn report_progress(source: &CopySource<'_>, count: &AtomicU64) {
    while (source.progress)(count.load(Ordering::Relaxed)) {
        sleep(STEP).await;
    }
}
