//! Checksums that servers tell of objects: in `Digest` if it is asked for (RFC 3230), and in the
//! ETags of buckets.

use super::request_target::RequestTarget;
use super::response::{RequestSecrets, header};
use super::retry::copying;
use reqwest::header::HeaderName;
use reqwest::{Client, Method};
use std::time::Duration;
use swathe_net::host;
use swathe_store_api::{Checksum, StoreError, Version};

const WANT_DIGEST: HeaderName = HeaderName::from_static("want-digest");
const DIGEST: HeaderName = HeaderName::from_static("digest");
/// The algorithms that are asked for, the surest first. XRootD takes the first that it has.
const ALGORITHMS: &str = "sha-256, md5, crc32c, adler32";
/// Most checksums that are read of an answer.
const MOST: usize = 16;

impl RequestTarget {
    /// The checksums that the server computes of an object; none if it does not.
    pub(super) async fn checksums(
        &self,
        client: &Client,
        version: &Version,
    ) -> Result<Vec<Checksum>, StoreError> {
        let Some(url) = self.endpoint.url() else { return Ok(etag_checksum(version)) };
        let limit: Duration = copying(version.size);
        self.with_retries(async |_| {
            let request = self.writing(client, Method::HEAD, url).header(WANT_DIGEST, ALGORITHMS);
            let secrets = RequestSecrets::default();
            let response = self.exchange(request, &host(url), secrets, Some(limit)).await?;
            let digests = header(&response, DIGEST).filter(|_| response.status().is_success());
            Ok(digests.map(parse_digests).unwrap_or_default())
        })
        .await
    }
}

/// The checksum in the ETag of a bucket: of one part it is the MD5 of all bytes, of more that of the
/// MD5s of the parts. Equal ones say that the bytes are equal. Others say nothing: the parts may have
/// other lengths, and a bucket that encrypts has other ETags.
fn etag_checksum(version: &Version) -> Vec<Checksum> {
    let etag = version.tag.trim_matches('"');
    let (sum, parts) = etag.split_once('-').unwrap_or((etag, "1"));
    let is_md5 = sum.len() == 32 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_md5 || !version.tag.starts_with('"') || !parts.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Vec::new();
    }
    let (algorithm, value) = ("etag".to_string(), etag.to_ascii_lowercase());
    vec![Checksum { algorithm, value, is_exact: false }]
}

/// The checksums of a `Digest` header. Hexadecimal numbers may lack zeros at their start.
fn parse_digests(text: &str) -> Vec<Checksum> {
    let digests = text.split(',').filter_map(|digest| {
        let (algorithm, value) = digest.trim().split_once('=')?;
        let algorithm = algorithm.trim().to_ascii_lowercase();
        let number = || u32::from_str_radix(value.trim(), 16).ok();
        // Of others the encoding differs, of crc32c too: XRootD (5.5) has it in base64.
        match algorithm.as_str() {
            "adler32" | "crc32" => {
                let value = format!("{:08x}", number()?);
                Some(Checksum { algorithm, value, is_exact: true })
            }
            _ => Some(Checksum { algorithm, value: value.trim().into(), is_exact: false }),
        }
    });
    digests.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_by_their_algorithms() {
        let text = "ADLER32=a1b2c3,md5=HUXZLQLMuI/KZ5KDcJPcOA==, crc32=zz, none";
        let expected = [("adler32", "00a1b2c3", true), ("md5", "HUXZLQLMuI/KZ5KDcJPcOA==", false)];
        let expected = expected.map(|(algorithm, value, is_exact)| Checksum {
            algorithm: algorithm.into(),
            value: value.into(),
            is_exact,
        });
        assert_eq!(parse_digests(text), expected);
    }

    #[test]
    fn only_etags_of_md5_are_checksums() {
        let sums = |tag: &str| etag_checksum(&Version { size: 1, tag: tag.into() });
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        assert_eq!(sums(&format!("\"{md5}\""))[0].value, md5);
        assert_eq!(sums(&format!("\"{md5}-2\""))[0].value, format!("{md5}-2"));
        for tag in ["\"0x8D4BCC2E4835CD0\"", "unversioned", md5, "W/\"abc\"", "\"kept\""] {
            assert_eq!(sums(tag), [], "{tag}");
        }
    }
}
