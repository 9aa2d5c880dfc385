//! The reported parts of an answer: its server, its headers, its reason, and not its secrets.

use reqwest::Response;
use reqwest::header::{AsHeaderName, CONTENT_TYPE};

/// Bytes of the answer to a refused request in which the reason is searched.
pub(super) const REASON_BYTES: usize = 4096;
/// At most this much of the reason is reported.
pub(super) const REASON_CHARS: usize = 200;

/// The secrets of a request, stored with its answer.
#[derive(Clone, Default)]
pub(super) struct RequestSecrets(pub(super) Vec<String>);

pub(super) fn hide(secrets: &[String], text: String) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text, |text, secret| text.replace(secret, "..."))
}

/// Why a request was refused: the message of a server of buckets, or the first line of plain text.
pub(super) async fn reason(mut response: Response) -> String {
    // XRootD says of its texts not what they are.
    let plain = header(&response, CONTENT_TYPE).map(|kind| kind.starts_with("text/plain"));
    let mut body = Vec::new();
    while body.len() < REASON_BYTES
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk[..chunk.len().min(REASON_BYTES - body.len())]);
    }
    let body = String::from_utf8_lossy(&body);
    reason_in(&body, plain.unwrap_or(!body.contains('<')))
}

/// The reason in the text of an answer.
pub(super) fn reason_in(body: &str, plain: bool) -> String {
    let message = ["Message", "Details"].map(|name| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        // Azure adds lines with an id and the time.
        rest.split_once(&format!("</{name}>"))?.0.lines().next()
    });
    let line = match message {
        [None, None] => body.lines().next().filter(|_| plain).unwrap_or_default().to_string(),
        parts => parts.into_iter().flatten().collect::<Vec<_>>().join(" "),
    };
    line.trim_end_matches('.').chars().filter(|char| !char.is_control()).collect()
}

pub(super) fn header(response: &Response, name: impl AsHeaderName) -> Option<&str> {
    response.headers().get(name)?.to_str().ok()
}
