//! What is where something is to be written or removed, as the server says before that is done.

use super::answer::{header, host};
use super::patience::{Failure, sending};
use super::percent_decode;
use super::putting::{DEPTH, method};
use super::target::Target;
use crate::error::StoreError;
use reqwest::header::{CONTENT_TYPE, SERVER};
use reqwest::{Client, Response, StatusCode, Url};
use tokio::time::timeout;

/// Of what a server says of one object, this much is read.
const LOOKED_BYTES: usize = 64 << 10;
/// What is asked of it (RFC 4918, 9.1).
const QUESTION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>";

/// What a server says of what is at a URL.
pub(super) struct There {
    pub(super) is_folder: bool,
    pub(super) is_xrootd: bool,
}

impl Target {
    /// Refuse a name that the server would cut: XRootD (5.5) takes what follows a `?` for a query,
    /// also where it is encoded.
    pub(super) fn check_uncut(&self, name: &Url, is_xrootd: bool) -> Result<(), StoreError> {
        match is_xrootd && has_mark(name) {
            true => Err(self.unsupported("the server would cut the name before the ?")),
            false => Ok(()),
        }
    }

    /// Ask what is there.
    pub(super) async fn look(&self, client: &Client, url: &Url) -> Result<There, Failure> {
        let request = self.writing(client, method("PROPFIND"), url).header(DEPTH, "0");
        let request = request.header(CONTENT_TYPE, "application/xml").body(QUESTION);
        let mut response = self.answer(request, url, Some(sending(0))).await?;
        let is_xrootd = is_xrootd(&response);
        match response.status() {
            StatusCode::MULTI_STATUS => {}
            StatusCode::TOO_MANY_REQUESTS => {
                return Err(self.refused(response, self.stall.most).await);
            }
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                return Err(self.refused(response, self.stall.most).await);
            }
            // Not all servers tell, or not everybody.
            _ => return Ok(There { is_folder: false, is_xrootd }),
        }
        let (mut said, host) = (Vec::new(), host(url));
        loop {
            match timeout(self.stall.most, response.chunk()).await {
                Err(_) => return Err(Failure::passing(self.stalled(&host, self.stall.most))),
                Ok(Err(_)) => {
                    let why = format!("the answer of {host} to PROPFIND broke off");
                    return Err(Failure::passing(self.network(why)));
                }
                Ok(Ok(None)) => break,
                Ok(Ok(Some(chunk))) => said.extend_from_slice(&chunk),
            }
            if said.len() > LOOKED_BYTES {
                let why =
                    format!("{host} answers PROPFIND of one object with {LOOKED_BYTES} bytes");
                return Err(self.network(why + " and more").into());
            }
        }
        let is_folder = is_collection(&String::from_utf8_lossy(&said));
        Ok(There { is_folder, is_xrootd })
    }
}

/// Whether a name has a question mark in it.
pub(super) fn has_mark(name: &Url) -> bool {
    percent_decode(name.path()).contains(&b'?')
}

pub(super) fn is_xrootd(response: &Response) -> bool {
    header(response, SERVER).is_some_and(|name| name.starts_with("XrootD"))
}

/// Whether the answer to `QUESTION` has a `collection` in it, which servers give any prefix.
fn is_collection(said: &str) -> bool {
    said.split('<').any(|tag| {
        let name = tag.split(|end: char| end.is_whitespace() || "/>".contains(end)).next();
        name.and_then(|name| name.rsplit(':').next()) == Some("collection")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_collections_by_any_prefix() {
        for (found, said) in [
            (true, "<D:resourcetype><D:collection/></D:resourcetype>"),
            (true, "<lp1:resourcetype><D:collection xmlns:D=\"DAV:\"></D:collection>"),
            (true, "<resourcetype>\n<collection\n/></resourcetype>"),
            (false, "<D:href>/collection</D:href><D:resourcetype/>"),
            (false, "<D:resourcetype/><lp1:iscollection>0</lp1:iscollection>"),
            (false, ""),
        ] {
            assert_eq!(is_collection(said), found, "{said}");
        }
    }
}
