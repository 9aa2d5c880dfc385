//! Conditions of requests (RFC 9110, 13), all of them on the version of an object.

use crate::disk::ObjectStatus;
use crate::error::RequestError;
use hyper::StatusCode;
use hyper::header::{
    HeaderMap, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE,
};
use std::time::SystemTime;

/// What the conditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Proceed,
    NotModified,
    Fail,
}

/// Judge the conditions for an object, or for none; `reads`: whether the request changes nothing.
pub(crate) fn judge(headers: &HeaderMap, object: Option<&ObjectStatus>, reads: bool) -> Verdict {
    if headers.contains_key(IF_MATCH) {
        if !matches_tag(headers, IF_MATCH, object) {
            return Verdict::Fail;
        }
    } else if let (Some(time), Some(object)) = (date(headers, IF_UNMODIFIED_SINCE), object)
        && seconds(object.modified()) > seconds(time)
    {
        return Verdict::Fail;
    }
    let refusal = if reads { Verdict::NotModified } else { Verdict::Fail };
    if headers.contains_key(IF_NONE_MATCH) {
        if matches_tag(headers, IF_NONE_MATCH, object) {
            return refusal;
        }
    } else if let (true, Some(time), Some(object)) =
        (reads, date(headers, IF_MODIFIED_SINCE), object)
        && seconds(object.modified()) <= seconds(time)
    {
        return refusal;
    }
    Verdict::Proceed
}

/// Check the conditions of a request that changes an object.
///
/// # Errors
/// With status 412 if they fail.
pub(crate) fn check(
    headers: &HeaderMap,
    object: Option<&ObjectStatus>,
) -> Result<(), RequestError> {
    match judge(headers, object, false) {
        Verdict::Proceed => Ok(()),
        _ => {
            let found = object.map_or("none".into(), ObjectStatus::etag);
            let text =
                format!("the version: expected one that the conditions allow, found {found}");
            Err(RequestError::refuse(StatusCode::PRECONDITION_FAILED, text))
        }
    }
}

/// Whether the ranges of a request are wanted of this version (`If-Range`).
pub(crate) fn wants_ranges(headers: &HeaderMap, object: &ObjectStatus) -> bool {
    match headers.get(IF_RANGE) {
        None => true,
        Some(value) if value.as_bytes() == object.etag().as_bytes() => true,
        Some(_) => {
            date(headers, IF_RANGE).is_some_and(|time| seconds(time) == seconds(object.modified()))
        }
    }
}

/// Whether a list of ETags has that of the object, or is `*` and there is one. Ours are strong and
/// without commas; a weak one equals none.
fn matches_tag(headers: &HeaderMap, name: HeaderName, object: Option<&ObjectStatus>) -> bool {
    let Some(etag) = object.map(ObjectStatus::etag) else { return false };
    headers.get_all(name).iter().any(|value| {
        let mut tags = value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        tags.any(|tag| tag == b"*" || tag == etag.as_bytes())
    })
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_sums::ObjectId;
    use hyper::header::HeaderValue;

    const OBJECT: ObjectStatus = ObjectStatus {
        id: ObjectId { size: 2, inode: 1, birth_ns: 0 },
        modified_ns: 784_111_777_500_000_000,
    };
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn conditions_as_in_the_standard() {
        use Verdict::{Fail, NotModified, Proceed};
        let tag = OBJECT.etag();
        let list = format!("\"a\", {tag}");
        let weak = format!("W/{tag}");
        for (name, value, of_get, of_put, without) in [
            (IF_MATCH, "*", Proceed, Proceed, Fail),
            (IF_MATCH, &list[..], Proceed, Proceed, Fail),
            (IF_MATCH, "\"a\"", Fail, Fail, Fail),
            (IF_MATCH, &weak[..], Fail, Fail, Fail),
            (IF_NONE_MATCH, "*", NotModified, Fail, Proceed),
            (IF_NONE_MATCH, &tag[..], NotModified, Fail, Proceed),
            (IF_NONE_MATCH, "\"a\"", Proceed, Proceed, Proceed),
            (IF_MODIFIED_SINCE, DATE, NotModified, Proceed, Proceed),
            (IF_MODIFIED_SINCE, BEFORE, Proceed, Proceed, Proceed),
            (IF_MODIFIED_SINCE, "yesterday", Proceed, Proceed, Proceed),
            (IF_UNMODIFIED_SINCE, DATE, Proceed, Proceed, Proceed),
            (IF_UNMODIFIED_SINCE, BEFORE, Fail, Fail, Proceed),
        ] {
            let headers = headers(name.clone(), value);
            assert_eq!(judge(&headers, Some(&OBJECT), true), of_get, "{name}: {value}");
            assert_eq!(judge(&headers, Some(&OBJECT), false), of_put, "{name}: {value}");
            assert_eq!(judge(&headers, None, false), without, "{name}: {value}");
            assert_eq!(check(&headers, Some(&OBJECT)).is_ok(), of_put == Proceed);
        }
    }

    #[test]
    fn ranges_are_wanted_of_the_same_version_only() {
        assert!(wants_ranges(&HeaderMap::new(), &OBJECT));
        for (value, expected) in
            [(&OBJECT.etag()[..], true), (DATE, true), (BEFORE, false), ("\"a\"", false)]
        {
            assert_eq!(wants_ranges(&headers(IF_RANGE, value), &OBJECT), expected, "{value}");
        }
    }
}
