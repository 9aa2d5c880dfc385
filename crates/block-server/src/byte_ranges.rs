//! The header `Range` (RFC 9110, 14), and the answers with several ranges (14.6).

use std::ops::Range;

/// Most ranges of a request.
pub(crate) const MOST_RANGES: usize = 1024;
/// Ranges of a request may overlap: up to twice the object, and this beside.
const SPARE_BYTES: u64 = 64 << 10;
const CONTENT_TYPE: &str = "application/octet-stream";

/// What a request wants of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ByteRanges {
    /// All of it: there is no such header, or none that can be understood.
    Whole,
    /// One or more ranges, not empty, inside the object, in the order of the request.
    Some(Vec<Range<u64>>),
    /// Nothing that it has; or too much.
    Unsatisfiable(String),
}

/// The ranges of a header, of an object of `size` bytes.
pub(crate) fn parse(header: &str, size: u64) -> ByteRanges {
    let Some((unit, list)) = header.split_once('=') else { return ByteRanges::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return ByteRanges::Whole;
    }
    let mut ranges = Vec::new();
    let mut bytes: u64 = 0;
    for (number, text) in list.split(',').map(str::trim).filter(|t| !t.is_empty()).enumerate() {
        if number == MOST_RANGES {
            return ByteRanges::Unsatisfiable(format!("expected at most {MOST_RANGES} ranges"));
        }
        match parse_range(text, size) {
            None => return ByteRanges::Whole,
            Some(range) if range.is_empty() => {}
            Some(range) => {
                bytes = bytes.saturating_add(range.end - range.start);
                ranges.push(range);
            }
        }
    }
    if ranges.is_empty() {
        return ByteRanges::Unsatisfiable(format!(
            "expected a range of {size} bytes, found {list}"
        ));
    }
    if ranges.len() > 1 && bytes > size.saturating_mul(2).saturating_add(SPARE_BYTES) {
        let text = format!("expected ranges of an object of {size} bytes, found {bytes} bytes");
        return ByteRanges::Unsatisfiable(text);
    }
    ByteRanges::Some(ranges)
}

/// One range; an empty one if the object has nothing of it.
fn parse_range(text: &str, size: u64) -> Option<Range<u64>> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // One that is too long is beyond every object.
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        return Some(size.saturating_sub(number(last)?)..size);
    }
    let first = number(first)?;
    let end = match last {
        "" => size,
        last => {
            let last = number(last)?;
            if last < first {
                return None;
            }
            last.saturating_add(1).min(size)
        }
    };
    Some(first.min(end)..end)
}

/// The text of `Content-Range`.
pub(crate) fn content_range(range: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", range.start, range.end - 1)
}

/// The lines before a part of an answer with several ranges.
pub(crate) fn part_head(boundary: &str, range: &Range<u64>, size: u64) -> String {
    let range = content_range(range, size);
    format!("\r\n--{boundary}\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Range: {range}\r\n\r\n")
}

/// The line after the last part.
pub(crate) fn part_end(boundary: &str) -> String {
    format!("\r\n--{boundary}--\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use swathe_store_api::Multipart;

    #[test]
    fn headers_as_in_the_standard() {
        let some = |ranges: &[Range<u64>]| ByteRanges::Some(ranges.to_vec());
        for (header, expected) in [
            ("bytes=0-0", some(&[0..1])),
            ("bytes=90-", some(&[90..100])),
            ("bytes=-10", some(&[90..100])),
            ("bytes=-1000", some(&[0..100])),
            ("bytes=95-1000", some(&[95..100])),
            ("Bytes=5-9, 0-1 ,,99-", some(&[5..10, 0..2, 99..100])),
            ("bytes=0-9,200-300", some(&[0..10])),
            ("bytes=0-99999999999999999999999", some(&[0..100])),
            ("items=0-1", ByteRanges::Whole),
            ("bytes=5-4", ByteRanges::Whole),
            ("bytes=a-b", ByteRanges::Whole),
            ("bytes=1", ByteRanges::Whole),
            ("bytes=--1", ByteRanges::Whole),
            ("0-1", ByteRanges::Whole),
        ] {
            assert_eq!(parse(header, 100), expected, "{header}");
        }
        for header in ["bytes=100-", "bytes=-0", "bytes=", "bytes=500-600,100-"] {
            let ranges = parse(header, 100);
            assert!(matches!(ranges, ByteRanges::Unsatisfiable(_)), "{header}: {ranges:?}");
        }
        assert!(matches!(parse("bytes=0-", 0), ByteRanges::Unsatisfiable(_)));
    }

    #[test]
    fn too_many_ranges_are_refused() {
        let list = |count: usize| format!("bytes={}", vec!["0-0"; count].join(","));
        assert!(matches!(parse(&list(MOST_RANGES), 9), ByteRanges::Some(_)));
        assert!(matches!(parse(&list(MOST_RANGES + 1), 9), ByteRanges::Unsatisfiable(_)));
        let whole = format!("bytes={}", ["0-"; 5].join(","));
        assert!(matches!(parse(&whole, 1 << 20), ByteRanges::Unsatisfiable(_)));
    }

    proptest! {
        #[test]
        fn no_header_panics(header in ".{0,60}", size in any::<u64>()) {
            let _ = parse(&header, size);
        }

        #[test]
        fn answers_are_read_by_our_own_client(steps in prop::collection::vec((1..50u64, 1..50u64), 2..9)) {
            let mut at = 0;
            let ranges: Vec<Range<u64>> = steps
                .iter()
                .map(|(gap, length)| {
                    let start = at + gap;
                    at = start + length;
                    start..at
                })
                .collect();
            let mut answer = Vec::new();
            for range in &ranges {
                answer.extend_from_slice(part_head("b0", range, at).as_bytes());
                answer.extend(range.clone().map(|byte| byte as u8));
            }
            answer.extend_from_slice(part_end("b0").as_bytes());
            let kind = "multipart/byteranges; boundary=b0";
            let mut parts = Multipart::new(kind, ranges.clone(), at).unwrap();
            let mut pieces = vec![Vec::new(); ranges.len()];
            parts.feed(&answer, &mut |number, bytes| pieces[number].extend_from_slice(bytes)).unwrap();
            prop_assert!(parts.is_complete() && parts.is_ended() && parts.is_ordered());
            for (range, piece) in ranges.into_iter().zip(pieces) {
                prop_assert_eq!(range.map(|byte| byte as u8).collect::<Vec<_>>(), piece);
            }
        }
    }
}
