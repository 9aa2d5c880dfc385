//! GET and HEAD: an object, ranges of it, or the index of a folder.

use crate::byte_ranges::{ByteRanges, content_range, parse, part_end, part_head};
use crate::conditions::{Verdict, judge, wants_ranges};
use crate::disk::{Disk, ObjectStatus};
use crate::disks::Disks;
use crate::error::RequestError;
use crate::folder::index;
use crate::identity::random_number;
use crate::object_file::{ObjectFile, Reading, Segment, Target};
use crate::object_path::ObjectPath;
use crate::request_record::{RequestRecord, WorkRecord};
use bytes::Bytes;
use futures_util::stream::{StreamExt, poll_fn};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, LAST_MODIFIED, LOCATION, RANGE,
};
use hyper::{Response, StatusCode};
use std::io;
use std::sync::Arc;
use swathe_net::server::{Body, full_body, plain_answer};
use swathe_store_api::{
    CONTENT_DIGEST, ContentDigest, JOINED_HEADER, VERIFICATION_HEADER, WANT_CONTENT_DIGEST,
};
use tokio::sync::mpsc;

/// Whether all bytes of an answer were verified.
pub(crate) const VERIFICATION: HeaderName = HeaderName::from_static(VERIFICATION_HEADER);

/// Whether the ranges of an answer have nothing between them.
const JOIN_HEADER: HeaderName = HeaderName::from_static(JOINED_HEADER);

/// Checksums of the whole object, and the question for them (RFC 3230).
const DIGEST: HeaderName = HeaderName::from_static("digest");
const WANT_DIGEST: HeaderName = HeaderName::from_static("want-digest");

/// An answer whose first bytes are read.
enum FirstAnswer {
    Folder,
    Object(Box<ObjectAnswer>),
}

struct ObjectAnswer {
    response: Response<()>,
    first: Bytes,
    rest: Option<Reading>,
}

/// Answer GET, or HEAD.
pub(crate) async fn get(
    disks: &Disks,
    headers: HeaderMap,
    path: ObjectPath,
    is_head: bool,
    record: &Arc<RequestRecord>,
) -> Result<Response<Body>, RequestError> {
    let target = path.clone();
    // In one piece of work: small reads have one wait for the disk.
    let look = {
        let (headers, record) = (Arc::new(headers), record.work().clone());
        move |disk: &Arc<Disk>| start(disk, &target, &headers, is_head, &record)
    };
    let (disk, answer) = match disks.find(record, &path, look).await? {
        Some((disk, answer)) => (disk, answer),
        None => return Err(RequestError::NotFound { path: path.to_string() }),
    };
    match answer {
        FirstAnswer::Folder if !path.names_folder && !path.is_root() => {
            let mut response = plain_answer(StatusCode::MOVED_PERMANENTLY, "");
            let location = path.url_path() + "/";
            let location = HeaderValue::try_from(location).expect("percent-encoded text");
            response.headers_mut().insert(LOCATION, location);
            Ok(response)
        }
        FirstAnswer::Folder => index(disks, &path, record).await,
        FirstAnswer::Object(answer) => {
            let ObjectAnswer { response, first, rest } = *answer;
            record.set_disk(&disk.name);
            let body = match rest {
                None => full_body(first),
                Some(rest) => stream(disk, first, rest, record.clone()),
            };
            Ok(response.map(|()| body))
        }
    }
}

/// Open an object, judge the request, and read the first piece of the answer.
fn start(
    disk: &Arc<Disk>,
    path: &ObjectPath,
    headers: &HeaderMap,
    is_head: bool,
    record: &Arc<WorkRecord>,
) -> Result<Option<FirstAnswer>, RequestError> {
    let object = match ObjectFile::open(disk, path)? {
        None => return Ok(None),
        Some(Target::Folder) => return Ok(Some(FirstAnswer::Folder)),
        Some(Target::Object(_)) if path.names_folder => return Ok(None),
        Some(Target::Object(object)) => *object,
    };
    let mut response = Response::new(());
    add_validators(response.headers_mut(), &object.status);
    let answer = |response, first, rest| {
        Ok(Some(FirstAnswer::Object(Box::new(ObjectAnswer { response, first, rest }))))
    };
    match judge(headers, Some(&object.status), true) {
        Verdict::Proceed => {}
        verdict => {
            let is_same = verdict == Verdict::NotModified;
            *response.status_mut() =
                if is_same { StatusCode::NOT_MODIFIED } else { StatusCode::PRECONDITION_FAILED };
            return answer(response, Bytes::new(), None);
        }
    }
    let size = object.status.id.size;
    let segments = match ranges(headers, &object.status) {
        ByteRanges::Whole if size == 0 => Vec::new(),
        ByteRanges::Whole => vec![Segment::Range(0..size)],
        ByteRanges::Some(ranges) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            match &ranges[..] {
                [range] => {
                    insert(&mut response, CONTENT_RANGE, content_range(range, size));
                    vec![Segment::Range(range.clone())]
                }
                _ if are_in_order(&ranges) && wants_sequence(headers) => {
                    insert(&mut response, JOIN_HEADER, size.to_string());
                    ranges.into_iter().map(Segment::Range).collect()
                }
                _ => multipart(disk, path, &mut response, ranges, size)?,
            }
        }
        ByteRanges::Unsatisfiable(why) => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            insert(&mut response, CONTENT_RANGE, format!("bytes */{size}"));
            let first = Bytes::from(if is_head { String::new() } else { why + "\n" });
            return answer(response, first, None);
        }
    };
    let length = segments.iter().map(Segment::length).sum::<u64>();
    insert(&mut response, CONTENT_LENGTH, length.to_string());
    if !response.headers().contains_key(CONTENT_TYPE) {
        insert(&mut response, CONTENT_TYPE, "application/octet-stream".into());
    }
    let answer_text = if object.is_verified() { "yes" } else { "no" };
    response.headers_mut().insert(VERIFICATION, HeaderValue::from_static(answer_text));
    if is_head {
        if wants_crc32(headers)
            && let Some(crc) = object.crc32()?
        {
            insert(&mut response, DIGEST, format!("crc32={crc:08x}"));
        }
        return answer(response, Bytes::new(), None);
    }
    let is_verified = object.is_verified();
    let mut reading = Reading::new(object, segments, record);
    let first = reading.next_piece()?;
    let rest = (!reading.is_at_end()).then_some(reading);
    // Headers go out before the rest of a long answer is read, so only short answers get a checksum.
    if rest.is_none() && is_verified && wants_content_digest(headers) {
        let name = HeaderName::from_static(CONTENT_DIGEST);
        insert(&mut response, name, ContentDigest::of(&first).to_string());
    }
    answer(response, first, rest)
}

/// Whether the client compares what arrives.
fn wants_content_digest(headers: &HeaderMap) -> bool {
    let questions = headers.get_all(WANT_CONTENT_DIGEST).iter();
    questions.filter_map(|question| question.to_str().ok()).any(ContentDigest::is_wanted)
}

/// Whether the client asked for ranges with nothing between them.
fn wants_sequence(headers: &HeaderMap) -> bool {
    headers.get(JOIN_HEADER).is_some_and(|value| value == "yes")
}

/// Whether ranges ascend and do not overlap: else a client cannot tell which was left out.
fn are_in_order(ranges: &[std::ops::Range<u64>]) -> bool {
    ranges.windows(2).all(|pair| pair[0].end <= pair[1].start)
}

/// Whether CRC-32 is among the checksums that a client would like to have.
fn wants_crc32(headers: &HeaderMap) -> bool {
    let names = headers.get(WANT_DIGEST).and_then(|names| names.to_str().ok()).unwrap_or_default();
    let mut names = names.split(',').map(|name| name.split(';').next().unwrap_or_default().trim());
    names.any(|name| name.eq_ignore_ascii_case("crc32"))
}

fn ranges(headers: &HeaderMap, status: &ObjectStatus) -> ByteRanges {
    match headers.get(RANGE).map(HeaderValue::to_str) {
        Some(Ok(range)) if wants_ranges(headers, status) => parse(range, status.id.size),
        _ => ByteRanges::Whole,
    }
}

/// The segments of an answer with several ranges.
fn multipart(
    disk: &Disk,
    path: &ObjectPath,
    response: &mut Response<()>,
    ranges: Vec<std::ops::Range<u64>>,
    size: u64,
) -> Result<Vec<Segment>, RequestError> {
    let number = random_number().map_err(|error| disk.fail(path, error))?;
    let boundary = format!("swathe-{number:016x}");
    insert(response, CONTENT_TYPE, format!("multipart/byteranges; boundary={boundary}"));
    let mut segments = Vec::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        segments.push(Segment::Text(part_head(&boundary, &range, size)));
        segments.push(Segment::Range(range));
    }
    segments.push(Segment::Text(part_end(&boundary)));
    Ok(segments)
}

/// The headers that name a version.
pub(crate) fn add_validators(headers: &mut HeaderMap, status: &ObjectStatus) {
    let modified = httpdate::fmt_http_date(status.modified());
    for (name, value) in [(ETAG, status.etag()), (LAST_MODIFIED, modified)] {
        headers.insert(name, HeaderValue::try_from(value).expect("letters and digits"));
    }
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}

fn insert(response: &mut Response<()>, name: HeaderName, value: String) {
    let value = HeaderValue::try_from(value).expect("letters and digits");
    response.headers_mut().insert(name, value);
}

/// A body whose next piece is read while one is sent. If that fails the connection is cut: its
/// client sees an answer that is too short.
fn stream(disk: Arc<Disk>, first: Bytes, mut rest: Reading, record: Arc<RequestRecord>) -> Body {
    let (sender, mut receiver) = mpsc::channel::<io::Result<Bytes>>(1);
    tokio::spawn(async move {
        let mut piece = first;
        loop {
            if sender.send(Ok(piece)).await.is_err() || rest.is_at_end() {
                return;
            }
            let result = disk.run(&record, move |_| rest.next_piece().map(|piece| (piece, rest)));
            match result.await {
                Ok((bytes, reading)) => (piece, rest) = (bytes, reading),
                Err(error) => {
                    drop(sender.send(Err(io::Error::other(error.to_string()))).await);
                    return;
                }
            }
        }
    });
    let pieces = poll_fn(move |context| receiver.poll_recv(context));
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}
