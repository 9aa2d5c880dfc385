//! COPY: an object under another name, of this server. Each block is verified when it is read, and
//! the copy has checksums of its own when it gets its name.

use crate::conditions;
use crate::disk::Disk;
use crate::disks::Disks;
use crate::error::RequestError;
use crate::get::VERIFICATION;
use crate::names::new_name;
use crate::new_object::NewObject;
use crate::object_file::{ObjectFile, Reading, Segment, Target};
use crate::object_path::ObjectPath;
use crate::put::{answer, check, choose, commit, use_room, with_time};
use crate::request_record::RequestRecord;
use crate::rooms::RoomId;
use bytes::Bytes;
use futures_util::future::join;
use hyper::header::{HeaderMap, HeaderValue, IF_NONE_MATCH};
use hyper::{Response, StatusCode};
use std::sync::Arc;
use swathe_net::server::Body;

/// Answer COPY of an object.
pub(crate) async fn copy_object(
    disks: &Arc<Disks>,
    headers: &HeaderMap,
    from: &ObjectPath,
    record: &Arc<RequestRecord>,
) -> Result<Response<Body>, RequestError> {
    let (to, replaces) = new_name(headers, from, "copy")?;
    let (from_disk, object) = open(disks, from, record).await?;
    conditions::check(headers, Some(&object.status))?;
    let (size, is_verified) = (object.status.id.size, object.is_verified());
    // Those of the request are for the source.
    let mut conditions = HeaderMap::new();
    if !replaces {
        conditions.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
    }
    let mut survey = disks.survey(record, &to).await;
    check(&mut survey, &conditions, &to)?;
    let (disk, copy) = match RoomId::of(headers)? {
        Some(room) => use_room(disks, room, survey, &to, Some(size), record).await?,
        None => {
            let disk = choose(survey, &to, Some(size), record).await?;
            let target = to.clone();
            let create = disk.run(record, move |disk| NewObject::create(disk, &target, Some(size)));
            let copy = create.await?;
            (disk, copy)
        }
    };
    record.set_disk(&disk.name);
    let copy = write_copy((&from_disk, object), (&disk, copy), record).await?;
    let crc = copy.crc32();
    // To its end, also if the client goes away.
    let (disks, record) = (disks.clone(), record.clone());
    let commit = async move { commit(&disks, &conditions, to, copy, &disk, &record).await };
    let (status, is_new) = tokio::spawn(commit).await.map_err(|error| {
        RequestError::refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    })??;
    let mut response = answer(&status, is_new, crc);
    let answer_text = HeaderValue::from_static(if is_verified { "yes" } else { "no" });
    response.headers_mut().insert(VERIFICATION, answer_text);
    Ok(response)
}

/// The object to copy, and its disk.
async fn open(
    disks: &Disks,
    from: &ObjectPath,
    record: &Arc<RequestRecord>,
) -> Result<(Arc<Disk>, ObjectFile), RequestError> {
    let target = from.clone();
    let look = move |disk: &Arc<Disk>| ObjectFile::open(disk, &target);
    match disks.find(record, from, look).await? {
        Some((_, Target::Folder)) => {
            let text = format!("{from}: folders are not copied, only objects");
            Err(RequestError::refuse(StatusCode::NOT_IMPLEMENTED, text))
        }
        Some((disk, Target::Object(object))) if !from.names_folder => Ok((disk, *object)),
        _ => Err(RequestError::NotFound { path: from.to_string() }),
    }
}

/// Write all of an object to another, which is sealed then.
async fn write_copy(
    (from_disk, object): (&Arc<Disk>, ObjectFile),
    (to_disk, mut copy): (&Arc<Disk>, NewObject),
    record: &Arc<RequestRecord>,
) -> Result<NewObject, RequestError> {
    let size = object.status.id.size;
    let segments = if size > 0 { vec![Segment::Range(0..size)] } else { Vec::new() };
    let mut reading = Reading::new(object, segments, record.work());
    let mut piece = Bytes::new();
    while !piece.is_empty() || !reading.is_at_end() {
        // The next piece is read while this one is written.
        let work = record.work().clone();
        let write = to_disk.run(record, move |_| copy.write(&piece, &work).map(|()| copy));
        let read = from_disk.run(record, move |_| match reading.is_at_end() {
            true => Ok((Bytes::new(), reading)),
            false => reading.next_piece().map(|piece| (piece, reading)),
        });
        let ((result, write_time), (next, read_time)) =
            join(with_time(write), with_time(read)).await;
        record.count_aside(write_time.min(read_time));
        copy = result?;
        (piece, reading) = next?;
    }
    let work = record.work().clone();
    to_disk.run(record, move |_| copy.seal(&work).map(|()| copy)).await
}
