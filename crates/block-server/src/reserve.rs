//! RESERVE: make room for an object before it is written, or change it.

use crate::disk::Disk;
use crate::disks::Disks;
use crate::error::RequestError;
use crate::identity::random_number;
use crate::new_object::NewObject;
use crate::object_path::ObjectPath;
use crate::put::choose;
use crate::request_record::RequestRecord;
use crate::rooms::{ROOM, RoomId};
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use swathe_net::server::{Body, plain_answer};
use tokio::time::Instant;

/// Bytes of a room; 0 gives it back.
const BYTES: HeaderName = HeaderName::from_static("swathe-bytes");
/// How long it is kept.
const SECONDS: HeaderName = HeaderName::from_static("swathe-seconds");
/// How long, if the client does not say.
const DEFAULT_S: u64 = 600;
const LONGEST_S: u64 = 3600;

/// Answer RESERVE: make room for an object of this path, or for any other; or change it.
pub(crate) async fn reserve(
    disks: &Arc<Disks>,
    headers: &HeaderMap,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Response<Body>, RequestError> {
    let bytes = number(headers, &BYTES, 0..=i64::MAX as u64)?.ok_or_else(|| {
        RequestError::refuse(StatusCode::BAD_REQUEST, "RESERVE: expected Swathe-Bytes, found none")
    })?;
    let seconds = number(headers, &SECONDS, 1..=LONGEST_S)?.unwrap_or(DEFAULT_S);
    let end = Instant::now() + Duration::from_secs(seconds);
    let rooms = &disks.rooms;
    let (id, status) = match RoomId::of(headers)? {
        Some(id) if bytes == 0 => {
            let (object, disk) = rooms.borrow(id, end)?;
            rooms.remove(id);
            let give_back = move |_: &Arc<Disk>| {
                drop(object);
                Ok(())
            };
            disk.run(record, give_back).await?;
            return Ok(plain_answer(StatusCode::NO_CONTENT, Bytes::new()));
        }
        Some(id) if rooms.renew(id, bytes, end) => (id, StatusCode::OK),
        Some(id) => {
            let (mut object, disk) = rooms.borrow(id, end)?;
            record.set_disk(&disk.name);
            let grow = disk.run(record, move |_| {
                let result = object.reserve(bytes);
                Ok((object, result))
            });
            let (object, result) = grow.await.inspect_err(|_| rooms.remove(id))?;
            rooms.put_back(id, object);
            result?;
            (id, StatusCode::OK)
        }
        None => {
            let object = create(disks, path, bytes, record).await?;
            let id = RoomId(random_number().map_err(|error| {
                RequestError::refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
            })?);
            rooms.add(id, object, end)?;
            (id, StatusCode::CREATED)
        }
    };
    let mut response = plain_answer(status, Bytes::new());
    let text = HeaderValue::try_from(format!("{:016x}", id.0)).expect("letters and digits");
    response.headers_mut().insert(ROOM, text);
    response.headers_mut().insert(SECONDS, seconds.into());
    Ok(response)
}

/// Room on the disk where the object is or would be.
async fn create(
    disks: &Disks,
    path: &ObjectPath,
    bytes: u64,
    record: &RequestRecord,
) -> Result<NewObject, RequestError> {
    if path.names_folder || path.is_root() || bytes == 0 {
        let text = format!("{path}: expected the name of an object, and 1 byte or more");
        return Err(RequestError::refuse(StatusCode::BAD_REQUEST, text));
    }
    let survey = disks.survey(record, path).await;
    let disk = choose(survey, path, Some(bytes), record).await?;
    record.set_disk(&disk.name);
    let target = path.clone();
    let create = move |disk: &Arc<Disk>| {
        let mut object = NewObject::create(disk, &target, None)?;
        object.reserve(bytes)?;
        Ok(object)
    };
    disk.run(record, create).await
}

/// The number in a header, if it is there.
fn number(
    headers: &HeaderMap,
    name: &HeaderName,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, RequestError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    match number.filter(|number| range.contains(number)) {
        Some(number) => Ok(Some(number)),
        None => {
            let (first, last) = (range.start(), range.end());
            let text = format!("{name}: expected a number from {first} to {last}, found {value:?}");
            Err(RequestError::refuse(StatusCode::BAD_REQUEST, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn numbers_are_within_their_range() {
        for (value, expected) in [
            ("1", Ok(Some(1))),
            ("3600", Ok(Some(3600))),
            ("0", Err(())),
            ("-1", Err(())),
            ("", Err(())),
        ] {
            let result = number(&headers(SECONDS, value), &SECONDS, 1..=LONGEST_S);
            assert_eq!(result.map_err(|_| ()), expected, "{value}");
        }
        assert!(matches!(number(&HeaderMap::new(), &SECONDS, 1..=1), Ok(None)));
    }
}
