//! DELETE, MOVE and MKCOL: names of objects and folders.

use crate::conditions;
use crate::disk::{Disk, ObjectStatus};
use crate::disks::{Disks, NameLocks, Survey};
use crate::error::RequestError;
use crate::file_names::{note_time, remove_object, rename};
use crate::get::add_validators;
use crate::new_object::NewObject;
use crate::object_file::{ObjectFile, Reading, Segment, Target};
use crate::object_path::ObjectPath;
use crate::request_record::RequestRecord;
use bytes::Bytes;
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode, Uri};
use rustix::fs::{AtFlags, OFlags, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use swathe_net::server::{Body, plain_answer};
use swathe_store::sync_folder;

/// Answer DELETE: of an object, or of an empty folder.
pub(crate) async fn delete(
    disks: &Disks,
    headers: &HeaderMap,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Response<Body>, RequestError> {
    if path.is_root() {
        return Err(RequestError::refuse(StatusCode::FORBIDDEN, "/: the root cannot be removed"));
    }
    let locks = disks.lock(&[path]).await?;
    let mut survey = disks.survey(record, path).await;
    let is_object = survey.object.is_some() && !path.names_folder;
    // A disk that is missing may have it, or another of the name. What is being written has no
    // other, and its client goes on without.
    if !(is_object && path.is_part)
        && let Some(failure) = survey.take_failure()
    {
        return Err(failure);
    }
    if !is_object && !survey.is_folder {
        return Err(RequestError::NotFound { path: path.to_string() });
    }
    conditions::check(headers, survey.object.as_ref().map(|(_, status)| status))?;
    for (disk, look) in survey.looks {
        let Ok(look) = look else { continue };
        let has_it = if is_object { look.object.is_some() } else { look.is_folder };
        if has_it {
            record.set_disk(&disk.name);
            let target = path.clone();
            let locks = locks.clone();
            let work = move |disk: &Arc<Disk>| (remove(disk, &target, is_object), locks).0;
            disk.run(record, work).await?;
        }
    }
    Ok(plain_answer(StatusCode::NO_CONTENT, Bytes::new()))
}

fn remove(disk: &Disk, path: &ObjectPath, is_object: bool) -> Result<(), RequestError> {
    let Some(folder) = disk.open_folder(path)? else { return Ok(()) };
    if is_object {
        return remove_object(disk, &folder, path);
    }
    match unlinkat(&folder, path.name(), AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            let text = format!("{path}: expected an empty folder; remove what is in it first");
            Err(RequestError::refuse(StatusCode::CONFLICT, text))
        }
        result => {
            result.map_err(|error| disk.fail(path, error.into()))?;
            sync_folder(&folder).map_err(|error| disk.fail(path, error))
        }
    }
}

/// Answer MKCOL: a folder on every disk.
pub(crate) async fn make_folder(
    disks: &Disks,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Response<Body>, RequestError> {
    if path.is_root() {
        return Err(RequestError::refuse(StatusCode::METHOD_NOT_ALLOWED, "/: exists already"));
    }
    if path.is_part {
        return Err(RequestError::NotFound { path: path.to_string() });
    }
    let _locks = disks.lock(&[path]).await?;
    let mut survey = disks.survey(record, path).await;
    if survey.is_folder || survey.object.is_some() {
        let text = format!("{path}: exists already");
        return Err(RequestError::refuse(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    // There may be an object of this name on a disk that is missing.
    if let Some(failure) = survey.take_failure() {
        return Err(failure);
    }
    if !survey.has_parent {
        let text = format!("{path}: expected the folder above; make it first (MKCOL)");
        return Err(RequestError::refuse(StatusCode::CONFLICT, text));
    }
    for (disk, _) in survey.looks {
        let target = path.clone();
        disk.run(record, move |disk| make(disk, &target)).await?;
    }
    Ok(plain_answer(StatusCode::CREATED, Bytes::new()))
}

fn make(disk: &Disk, path: &ObjectPath) -> Result<(), RequestError> {
    disk.make_folder(path, path.as_path())?;
    let above = disk.make_folder(path, path.folder())?;
    sync_folder(&above).map_err(|error| disk.fail(path, error))
}

/// Answer MOVE of an object.
pub(crate) async fn rename_object(
    disks: &Disks,
    headers: &HeaderMap,
    from: &ObjectPath,
    record: &RequestRecord,
) -> Result<Response<Body>, RequestError> {
    let (to, replaces) = new_name(headers, from, "move")?;
    let locks = disks.lock(&[from, &to]).await?;
    let mut source = disks.begin_change(record, from, &locks).await?.survey;
    let (disk, status) = take_source(&mut source, from)?;
    conditions::check(headers, Some(&status))?;
    // It would still have its old name on a disk that is missing. What is being written has not.
    if !from.is_part
        && let Some(failure) = source.take_failure()
    {
        return Err(failure);
    }
    let mut change = disks.begin_change(record, &to, &locks).await?;
    let target = &mut change.survey;
    check_target(target, &to, &disk, replaces)?;
    source.learn_times();
    target.learn_times();
    let absences = disks.absences(target);
    let is_new = target.object.is_none();
    let to_disk = target.object.as_ref().map_or(disk.clone(), |(to_disk, _)| to_disk.clone());
    record.set_disk(&to_disk.name);
    let (from, target_path, guards) = (from.clone(), to.clone(), locks.clone());
    let status = match Arc::ptr_eq(&disk, &to_disk) {
        true => {
            let work = move |disk: &Arc<Disk>| {
                let _locks = guards;
                disk.note_absences(&absences)?;
                rename_on(disk, &from, &target_path, replaces)
            };
            disk.run(record, work).await?
        }
        false => {
            to_disk.run(record, move |disk| disk.note_absences(&absences)).await?;
            let status = copy(&disk, &to_disk, &from, &to, (replaces, &locks), record).await?;
            disk.run(record, move |disk| (remove(disk, &from, true), guards).0).await?;
            status
        }
    };
    disks.end_change(&change, &to, &locks).await?;
    let code = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    let mut response = plain_answer(code, Bytes::new());
    add_validators(response.headers_mut(), &status);
    Ok(response)
}

/// The new name of an object that is to be moved or copied, and whether it may replace an object that
/// has it. A copy may have a name of an upload.
pub(crate) fn new_name(
    headers: &HeaderMap,
    from: &ObjectPath,
    verb: &str,
) -> Result<(ObjectPath, bool), RequestError> {
    let to = destination(headers)?;
    let refuse = |status, why: String| Err(RequestError::refuse(status, why));
    if to.names_folder || to.is_root() || to.is_part && verb == "move" {
        return refuse(StatusCode::CONFLICT, format!("{to}: expected the name of an object"));
    }
    if to == *from {
        return refuse(
            StatusCode::FORBIDDEN,
            format!("{from}: expected another name to {verb} it to"),
        );
    }
    match headers.get("overwrite").map(HeaderValue::as_bytes) {
        None | Some(b"T") => Ok((to, true)),
        Some(b"F") => Ok((to, false)),
        Some(_) => refuse(StatusCode::BAD_REQUEST, "Overwrite: expected T or F".into()),
    }
}

/// The object to move, and its disk.
fn take_source(
    source: &mut Survey,
    from: &ObjectPath,
) -> Result<(Arc<Disk>, ObjectStatus), RequestError> {
    match source.object.take().filter(|_| !from.names_folder) {
        Some(object) => Ok(object),
        None if source.is_folder => {
            let text = format!("{from}: folders are not moved, only objects");
            Err(RequestError::refuse(StatusCode::NOT_IMPLEMENTED, text))
        }
        None => {
            let missing = RequestError::NotFound { path: from.to_string() };
            Err(source.take_failure().unwrap_or(missing))
        }
    }
}

/// Check that an object of a disk may get a name.
fn check_target(
    target: &mut Survey,
    to: &ObjectPath,
    disk: &Arc<Disk>,
    replaces: bool,
) -> Result<(), RequestError> {
    let refuse = |status, why: String| Err(RequestError::refuse(status, why));
    if target.is_folder {
        return refuse(
            StatusCode::CONFLICT,
            format!("{to}: expected an object or nothing, found a folder"),
        );
    }
    if target.object.is_some() && !replaces {
        return refuse(StatusCode::PRECONDITION_FAILED, format!("{to}: exists already"));
    }
    // A disk that is missing may have an object of that name, and would show it in place of this.
    let limit = if replaces && target.has_parent { Some(disk) } else { None };
    if target.object.is_none()
        && let Some(failure) = target.take_failure_before(limit)
    {
        return Err(failure);
    }
    if !target.has_parent {
        let text = format!("{to}: expected its folder; make it first (MKCOL)");
        return refuse(StatusCode::CONFLICT, text);
    }
    Ok(())
}

fn rename_on(
    disk: &Disk,
    from: &ObjectPath,
    to: &ObjectPath,
    replaces: bool,
) -> Result<ObjectStatus, RequestError> {
    let no_object = |path: &ObjectPath| RequestError::NotFound { path: path.to_string() };
    let from_folder = disk.open_folder(from)?.ok_or_else(|| no_object(from))?;
    let to_folder = disk.make_folder(to, to.folder())?;
    note_time(&from_folder, from).map_err(|error| disk.fail(from, error))?;
    rename(disk, (&from_folder, Path::new(from.name())), (&to_folder, to), replaces)?;
    sync_folder(&from_folder).map_err(|error| disk.fail(from, error))?;
    let file = disk.open(to, OFlags::PATH)?.ok_or_else(|| no_object(to))?;
    let status = File::from(file).metadata().map_err(|error| disk.fail(to, error))?;
    Ok(ObjectStatus::of(&status))
}

/// Copy an object to the disk where another of its new name is.
async fn copy(
    from_disk: &Arc<Disk>,
    to_disk: &Arc<Disk>,
    from: &ObjectPath,
    to: &ObjectPath,
    (replaces, locks): (bool, &NameLocks),
    record: &RequestRecord,
) -> Result<ObjectStatus, RequestError> {
    let source = from.clone();
    let open = move |disk: &Arc<Disk>| match ObjectFile::open(disk, &source)? {
        Some(Target::Object(object)) => Ok(*object),
        _ => Err(RequestError::NotFound { path: source.to_string() }),
    };
    let object = from_disk.run(record, open).await?;
    let size = object.status.id.size;
    let segments = if size > 0 { vec![Segment::Range(0..size)] } else { Vec::new() };
    let mut reading = Reading::new(object, segments, record.work());
    let target = to.clone();
    let create = move |disk: &Arc<Disk>| NewObject::create(disk, &target, Some(size));
    let mut copy = to_disk.run(record, create).await?;
    while !reading.is_at_end() {
        let read =
            from_disk.run(record, move |_| reading.next_piece().map(|piece| (piece, reading)));
        let (piece, rest) = read.await?;
        reading = rest;
        let work = record.work().clone();
        copy = to_disk.run(record, move |_| copy.write(&piece, &work).map(|()| copy)).await?;
    }
    let (locks, work) = (locks.clone(), record.work().clone());
    let name = move |_: &Arc<Disk>| {
        let _locks = locks;
        copy.seal(&work)?;
        copy.name(replaces)
    };
    to_disk.run(record, name).await
}

/// The path in the header `Destination`, which must be of this server.
fn destination(headers: &HeaderMap) -> Result<ObjectPath, RequestError> {
    let bad = |found: &str| {
        let text =
            format!("Destination: expected the URL of an object on this server, found {found}");
        RequestError::refuse(StatusCode::BAD_REQUEST, text)
    };
    let value = headers.get("destination").ok_or_else(|| bad("none"))?;
    let uri = Uri::try_from(value.as_bytes()).map_err(|error| bad(&error.to_string()))?;
    let host = headers.get(HOST).map(HeaderValue::as_bytes);
    match uri.authority() {
        Some(to) if host.is_some_and(|host| !is_host(to.as_str(), host)) => {
            let text = format!("Destination: {} is another server", to.host());
            Err(RequestError::refuse(StatusCode::BAD_GATEWAY, text))
        }
        _ => ObjectPath::parse(uri.path()),
    }
}

/// Whether an authority, perhaps with a user, is a host.
fn is_host(authority: &str, host: &[u8]) -> bool {
    let name = authority.rsplit('@').next().unwrap_or_default();
    name.as_bytes().eq_ignore_ascii_case(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(destination_text: &str) -> Result<String, u16> {
        let header = |text: &str| HeaderValue::from_str(text).unwrap();
        let headers = HeaderMap::from_iter([
            (HOST, header("h:8430")),
            ("destination".parse().unwrap(), header(destination_text)),
        ]);
        destination(&headers).map(|path| path.to_string()).map_err(|e| e.status().as_u16())
    }

    #[test]
    fn destinations_are_of_this_server() {
        assert_eq!(path("http://h:8430/a%20b/c").as_deref(), Ok("/a b/c"));
        assert_eq!(path("https://H:8430/a?x=1").as_deref(), Ok("/a"));
        assert_eq!(path("/a").as_deref(), Ok("/a"));
        assert_eq!(path("http://other:8430/a"), Err(502));
        assert_eq!(path("http://h:8430/../a"), Err(400));
        assert_eq!(path("http://h:8430/.swathe/disk"), Err(404));
        assert_eq!(path("a b"), Err(400));
        assert_eq!(destination(&HeaderMap::new()).unwrap_err().status().as_u16(), 400);
    }
}
