//! The key of the measurements of a store whose URL does not name its server.

use reqwest::Url;

/// A URL with the server before the path: `s3://127.0.0.1:9000/bucket/a.fits`. No bucket has a colon
/// in its name.
pub(super) fn with_server(scheme: &str, server: &Url, path: &str) -> String {
    let host = server.host_str().unwrap_or_default();
    let port = server.port_or_known_default().unwrap_or_default();
    let folder = server.path().trim_end_matches('/');
    format!("{scheme}://{host}:{port}{folder}{path}")
}
