//! Checksums that servers tell of objects: in `Digest` if it is asked for (RFC 3230), and in the
//! ETags of buckets.

use super::request_target::RequestTarget;
use super::response::{RequestSecrets, header};
use super::retry::copying;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderName;
use reqwest::{Client, Method};
use std::time::Duration;
use swathe_net::host;
use swathe_store_api::{Checksum, StoreError, Version};
use tokio::time::timeout;

const WANT_DIGEST: HeaderName = HeaderName::from_static("want-digest");
const DIGEST: HeaderName = HeaderName::from_static("digest");
/// The algorithms that are asked for, the surest first. XRootD takes the first that it has.
const ALGORITHMS: &str = "sha-256, md5, crc32c, adler32, crc32";
/// How long a server may take to compute them.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
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
        let limit = copying(version.size).min(LONGEST_WAIT);
        self.with_retries(async |_| {
            let request = self.writing(client, Method::HEAD, url).header(WANT_DIGEST, ALGORITHMS);
            let (host, secrets) = (host(url), RequestSecrets::default());
            let answer = self.exchange(request, &host, secrets, None);
            // One that is slow is not asked again.
            let Ok(response) = timeout(limit, answer).await else { return Ok(Vec::new()) };
            let response = response?;
            let digests = header(&response, DIGEST).filter(|_| response.status().is_success());
            Ok(digests.map(parse_digests).unwrap_or_default())
        })
        .await
    }
}

/// The checksum in the ETag of a bucket. Of an object of one part it is the MD5 of all bytes. Of an
/// object of more parts it is the MD5 of their MD5s. Equal checksums show that the bytes are equal.
/// Different ones show nothing: the parts may have other lengths, and a bucket that encrypts has other
/// ETags.
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

/// The checksums of a `Digest` header: those of algorithms that we know, with values of their length.
/// Their text becomes hexadecimal: servers have these in base64 or so.
fn parse_digests(text: &str) -> Vec<Checksum> {
    let digests = text.split(',').filter_map(|digest| {
        let (algorithm, value) = digest.trim().split_once('=')?;
        let algorithm = algorithm.trim().to_ascii_lowercase();
        let bytes = match algorithm.as_str() {
            "sha-256" => 32,
            "sha-512" => 64,
            "md5" => 16,
            "crc32c" | "adler32" | "crc32" => 4,
            _ => return None,
        };
        let value = value.trim();
        // Hexadecimal numbers may lack zeros at their start.
        let value = match algorithm == "adler32" && (1..=8).contains(&value.len()) {
            true => format!("{value:0>8}"),
            false => value.to_string(),
        };
        let is_hex = value.len() == 2 * bytes && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = if is_hex { value.to_ascii_lowercase() } else { hex_of_base64(&value, bytes)? };
        Some(Checksum { algorithm, value, is_exact: true })
    });
    digests.take(MOST).collect()
}

/// The hexadecimal text of `bytes` bytes in base64.
fn hex_of_base64(text: &str, bytes: usize) -> Option<String> {
    let value = STANDARD.decode(text).ok().filter(|value| value.len() == bytes)?;
    Some(value.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_by_their_algorithms() {
        let text = "ADLER32=a1b2c3,md5=HUXZLQLMuI/KZ5KDcJPcOA==, crc32c=AAECAw==, none";
        let expected = [
            ("adler32", "00a1b2c3"),
            ("md5", "1d45d92d02ccb88fca6792837093dc38"),
            ("crc32c", "00010203"),
        ];
        let expected = expected.map(|(algorithm, value)| Checksum {
            algorithm: algorithm.into(),
            value: value.into(),
            is_exact: true,
        });
        assert_eq!(parse_digests(text), expected);
    }

    #[test]
    fn digests_of_another_length_or_kind_prove_nothing() {
        for text in [
            "md5=",
            "adler32=",
            "adler32=zz",
            "adler32=123456789",
            "md5=1d45",
            "unixsum=12",
            "crc32c=zz",
            "sha-256=HUXZLQLMuI/KZ5KDcJPcOA==",
            "md5=HUXZLQLMuI/KZ5KDcJPcO===",
            "md5=HUXZLQLMuI/KZ5KDcJPc\u{fc}==",
            "sha-512",
            "=",
        ] {
            assert_eq!(parse_digests(text), [], "{text}");
        }
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
