//! What tests share.

/// Wait for work, on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().unwrap().block_on(work)
}
