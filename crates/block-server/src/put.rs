//! PUT: an object, whole under its name or not at all.

use crate::conditions;
use crate::disk::{Disk, ObjectStatus};
use crate::disks::{Disks, Survey};
use crate::error::RequestError;
use crate::get::add_validators;
use crate::new_object::NewObject;
use crate::object_file::PIECE_BYTES;
use crate::object_path::ObjectPath;
use crate::request_record::RequestRecord;
use crate::rooms::RoomId;
use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    CONTENT_RANGE, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
};
use hyper::{Response, StatusCode};
use std::sync::Arc;
use std::time::{Duration, Instant};
use swathe_net::server::{Body, Pace, plain_answer};
use swathe_store_api::CRC32_HEADER;
use tokio::time::timeout;

/// Shorter frames of a body are copied: each keeps the buffer it came in.
const SMALL_BYTES: usize = 64 << 10;

/// Answer PUT.
pub(crate) async fn put(
    disks: &Arc<Disks>,
    headers: HeaderMap,
    path: ObjectPath,
    body: &mut Incoming,
    record: &Arc<RequestRecord>,
) -> Result<Response<Body>, RequestError> {
    let refuse = |status, why: &str| Err(RequestError::refuse(status, format!("{path}: {why}")));
    if path.names_folder || path.is_root() {
        return refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "expected the name of an object, found a folder",
        );
    }
    if headers.contains_key(CONTENT_RANGE) {
        return refuse(StatusCode::BAD_REQUEST, "PUT writes whole objects: no Content-Range");
    }
    let mut survey = disks.survey(record, &path).await;
    check(&mut survey, &headers, &path)?;
    let length = body.size_hint().exact();
    let (disk, mut object) = match RoomId::of(&headers)? {
        Some(room) => use_room(disks, room, survey, &path, length, record).await?,
        None => {
            let disk = choose(survey, &path, length, record).await?;
            let target = path.clone();
            let create = disk.run(record, move |disk| NewObject::create(disk, &target, length));
            let object = create.await?;
            (disk, object)
        }
    };
    record.set_disk(&disk.name);
    let mut pace = Pace::default();
    let mut pieces = receive(body, &mut pace, &path, record).await?;
    while !pieces.is_empty() {
        // The next bytes come while these are written.
        let work = record.work().clone();
        let write = disk.run(record, move |_| {
            pieces.iter().try_for_each(|piece| object.write(piece, &work))?;
            Ok(object)
        });
        let (write, receive) =
            (with_time(write), with_time(receive(body, &mut pace, &path, record)));
        let ((result, write_time), (next, receive_time)) = join(write, receive).await;
        record.count_aside(write_time.min(receive_time));
        (object, pieces) = (result?, next?);
    }
    let work = record.work().clone();
    let seal = disk.run(record, move |_| {
        object.seal(&work)?;
        Ok(object)
    });
    let object = seal.await?;
    let crc = object.crc32();
    // To its end, also if the client goes away.
    let (disks, record) = (disks.clone(), record.clone());
    let commit = async move { commit(&disks, &headers, path, object, &disk, &record).await };
    let (status, is_new) = tokio::spawn(commit).await.map_err(|error| {
        RequestError::refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    })??;
    Ok(answer(&status, is_new, crc))
}

/// The answer to a request that wrote an object.
pub(crate) fn answer(status: &ObjectStatus, is_new: bool, crc: u32) -> Response<Body> {
    let code = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    let mut response = plain_answer(code, Bytes::new());
    add_validators(response.headers_mut(), status);
    let crc = HeaderValue::try_from(format!("{crc:08x}")).expect("hexadecimal digits");
    response.headers_mut().insert(CRC32_HEADER, crc);
    response
}

/// The result of work, and how long it took.
pub(crate) async fn with_time<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    (work.await, start.elapsed())
}

/// Check that an object may be written here.
pub(crate) fn check(
    survey: &mut Survey,
    headers: &HeaderMap,
    path: &ObjectPath,
) -> Result<(), RequestError> {
    if survey.is_folder {
        let text = format!("{path}: expected an object or nothing, found a folder");
        return Err(RequestError::refuse(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    let has_condition = [IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE]
        .iter()
        .any(|name| headers.contains_key(name));
    let failure = match survey.object {
        Some(_) => None,
        // It may be on a disk that is missing.
        None if has_condition || !survey.has_parent => survey.take_failure(),
        None => None,
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    conditions::check(headers, survey.object.as_ref().map(|(_, status)| status))?;
    if !survey.has_parent {
        let text = format!("{path}: expected its folder; make it first (MKCOL)");
        return Err(RequestError::refuse(StatusCode::CONFLICT, text));
    }
    Ok(())
}

/// An object in room that was reserved, and its disk.
pub(crate) async fn use_room(
    disks: &Disks,
    room: RoomId,
    mut survey: Survey,
    path: &ObjectPath,
    length: Option<u64>,
    record: &RequestRecord,
) -> Result<(Arc<Disk>, NewObject), RequestError> {
    let disk = disks.rooms.disk(room)?;
    // A disk that is missing may have it: then it would be there twice.
    if survey.object.is_none()
        && let Some(failure) = survey.take_failure_before(Some(&disk))
    {
        return Err(failure);
    }
    match survey.object {
        Some((other, _)) if !Arc::ptr_eq(&other, &disk) => {
            let text = format!(
                "{path}: it is on disk {}, and the room on disk {}; reserve room for its name",
                other.name, disk.name
            );
            return Err(RequestError::refuse(StatusCode::CONFLICT, text));
        }
        _ => {}
    }
    let mut object = disks.rooms.take(room)?;
    let target = path.clone();
    let begin = move |_: &Arc<Disk>| {
        object.set_path(&target);
        object.reserve(length.unwrap_or(0))?;
        Ok(object)
    };
    let object = disk.run(record, begin).await?;
    Ok((disk, object))
}

/// The disk for an object: where it is, else the first in its order that has room.
pub(crate) async fn choose(
    survey: Survey,
    path: &ObjectPath,
    length: Option<u64>,
    record: &RequestRecord,
) -> Result<Arc<Disk>, RequestError> {
    if let Some((disk, _)) = survey.object {
        return Ok(disk);
    }
    let mut full = Vec::new();
    for (disk, look) in survey.looks {
        // A disk that is missing may have it: then it would be there twice.
        look?;
        let (free, _) = disk.run(record, |disk| disk.space()).await?;
        if free > length.unwrap_or(0) {
            return Ok(disk);
        }
        full.push((disk.name.clone(), free));
    }
    let Some((disk, _)) = full.first() else {
        return Err(RequestError::NotFound { path: path.to_string() });
    };
    let length = length.map_or("some".into(), |length| length.to_string());
    let disks: Vec<String> = full.iter().map(|(name, free)| format!("{name} {free}")).collect();
    let why = format!("{length} bytes are needed, free are: {}", disks.join(", "));
    Err(RequestError::DiskFull { disk: disk.clone(), why })
}

/// The next bytes of a body: about a piece; none at its end. Small frames are copied into one buffer:
/// a body in chunks of one byte takes no more memory than another.
async fn receive(
    body: &mut Incoming,
    pace: &mut Pace,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Vec<Bytes>, RequestError> {
    let (mut pieces, mut bytes, mut small) = (Vec::new(), 0, BytesMut::new());
    while bytes < PIECE_BYTES {
        let start = Instant::now();
        let frame = match timeout(pace.limit(), body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                let text = format!("{path}: expected the whole body, found: {error}");
                return Err(RequestError::refuse(StatusCode::BAD_REQUEST, text));
            }
            Err(_) => {
                let text = format!("{path}: the body comes too slowly");
                return Err(RequestError::refuse(StatusCode::REQUEST_TIMEOUT, text));
            }
        };
        if let Ok(data) = frame.into_data() {
            let wait = start.elapsed();
            pace.add(wait, data.len());
            record.count_body(data.len(), wait);
            bytes += data.len();
            if data.len() < SMALL_BYTES {
                small.extend_from_slice(&data);
                continue;
            }
            if !small.is_empty() {
                pieces.push(small.split().freeze());
            }
            pieces.push(data);
        }
    }
    if !small.is_empty() {
        pieces.push(small.freeze());
    }
    Ok(pieces)
}

/// Give an object its name, if it still may have it; whether it is new.
pub(crate) async fn commit(
    disks: &Disks,
    headers: &HeaderMap,
    path: ObjectPath,
    object: NewObject,
    disk: &Arc<Disk>,
    record: &RequestRecord,
) -> Result<(ObjectStatus, bool), RequestError> {
    let locks = disks.lock(&[&path]).await?;
    let mut change = disks.begin_change(record, &path, &locks).await?;
    check(&mut change.survey, headers, &path)?;
    let survey = &change.survey;
    if let Some((other, _)) = survey.object.as_ref().filter(|(other, _)| !Arc::ptr_eq(other, disk))
    {
        let text = format!("{path}: it was written to disk {} at the same time", other.name);
        return Err(RequestError::refuse(StatusCode::CONFLICT, text));
    }
    let replaces = survey.object.is_some() || !headers.contains_key(IF_NONE_MATCH);
    survey.learn_times();
    let absences = disks.absences(survey);
    let name_locks = locks.clone();
    let name = move |disk: &Arc<Disk>| {
        let _locks = name_locks;
        disk.note_absences(&absences)?;
        object.name(replaces)
    };
    let status = disk.run(record, name).await?;
    disks.end_change(&change, &path, &locks).await?;
    Ok((status, change.survey.object.is_none()))
}
