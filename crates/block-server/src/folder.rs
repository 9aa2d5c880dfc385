//! Folders: their entries on all disks, as an index in HTML and as the answer to PROPFIND.

use crate::block_sums::ObjectId;
use crate::disk::{Disk, ObjectStatus};
use crate::disks::Disks;
use crate::error::RequestError;
use crate::object_path::{ObjectPath, encode, is_reserved_name};
use crate::request_record::RequestRecord;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, Stat, statat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::SystemTime;
use swathe_net::server::{Body, plain_answer};
use swathe_store_api::Space;

/// What a name in a folder leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Folder { modified: SystemTime },
    Object(ObjectStatus),
}

/// Names and what they lead to, in order.
type Items = BTreeMap<Vec<u8>, Item>;

/// The index of a folder, as nginx writes it.
pub(crate) async fn index(
    disks: &Disks,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Response<Body>, RequestError> {
    let items = items(disks, path, record).await?;
    let mut response = plain_answer(StatusCode::OK, index_page(path, &items));
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Answer PROPFIND, of depth 0 or 1.
pub(crate) async fn propfind(
    disks: &Disks,
    headers: &HeaderMap,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Response<Body>, RequestError> {
    let depth = headers.get("depth").map(HeaderValue::as_bytes);
    let (Some(b"0") | Some(b"1")) = depth else {
        let text = format!("{path}: PROPFIND: expected the header Depth: 0 or 1");
        return Err(RequestError::refuse(StatusCode::FORBIDDEN, text));
    };
    let target = path.clone();
    let look = move |disk: &Arc<Disk>| item(disk, &target);
    let item = match disks.find(record, path, look).await? {
        Some((_, Item::Object(_))) if path.names_folder => None,
        Some((_, item)) => Some(item),
        None => None,
    };
    let item = item.ok_or_else(|| RequestError::NotFound { path: path.to_string() })?;
    let url_path = path.url_path();
    let mut page = String::from(MULTISTATUS_START);
    let room = match &item {
        Item::Folder { .. } if depth == Some(b"0") => Some(disks.space(record).await),
        _ => None,
    };
    push_response(&mut page, &url_path, &item, room.as_ref());
    if depth == Some(b"1".as_slice()) && matches!(item, Item::Folder { .. }) {
        for (name, item) in &items(disks, path, record).await? {
            let mut url = url_path.clone() + "/";
            encode(name, &mut url);
            push_response(&mut page, &url, item, None);
        }
    }
    page.push_str(MULTISTATUS_END);
    let mut response = plain_answer(StatusCode::MULTI_STATUS, page);
    let kind = HeaderValue::from_static("application/xml; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// The entries of a folder on all disks. A disk that is missing may have more: that is an error.
async fn items(
    disks: &Disks,
    path: &ObjectPath,
    record: &RequestRecord,
) -> Result<Items, RequestError> {
    let target = path.clone();
    let lists = disks.each(record, path, move |disk| list(disk, &target, Entries::OfClients)).await;
    let mut items = Items::new();
    for (_, list) in lists {
        for (name, item) in list? {
            match items.entry(name) {
                Entry::Vacant(free) => drop(free.insert(item)),
                // A folder of all disks has the time of its last change on any. Of objects on two
                // disks the newer counts.
                Entry::Occupied(mut entry) => {
                    let is_newer = match (entry.get(), &item) {
                        (Item::Folder { modified: old }, Item::Folder { modified }) => {
                            old < modified
                        }
                        (Item::Object(old), Item::Object(new)) => old.modified_ns < new.modified_ns,
                        _ => false,
                    };
                    if is_newer {
                        entry.insert(item);
                    }
                }
            }
        }
    }
    Ok(items)
}

/// What a path leads to on a disk.
fn item(disk: &Disk, path: &ObjectPath) -> Result<Option<Item>, RequestError> {
    let Some(file) = disk.open(path, OFlags::PATH)? else { return Ok(None) };
    let status = File::from(file).metadata().map_err(|error| disk.fail(path, error))?;
    Ok(match (status.is_dir(), status.is_file()) {
        (true, _) => {
            Some(Item::Folder { modified: status.modified().unwrap_or(SystemTime::UNIX_EPOCH) })
        }
        (_, true) => Some(Item::Object(ObjectStatus::of(&status))),
        _ => None,
    })
}

/// Which entries of a folder are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// All that clients may see.
    OfClients,
    /// Files and folders, also objects that are being written, but no links.
    OfDisk,
}

/// The entries of a folder on a disk; none if it is not there.
pub(crate) fn list(
    disk: &Disk,
    path: &ObjectPath,
    entries: Entries,
) -> Result<Vec<(Vec<u8>, Item)>, RequestError> {
    let Some(folder) = disk.open(path, OFlags::RDONLY | OFlags::DIRECTORY)? else {
        return Ok(Vec::new());
    };
    let fail = |error: Errno| disk.fail(path, error.into());
    let mut items = Vec::new();
    for entry in Dir::read_from(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_bytes();
        let child = path.child(name);
        if is_reserved_name(name) && !(child.is_part && entries == Entries::OfDisk) {
            continue;
        }
        let item = match entry.file_type() {
            _ if entries == Entries::OfDisk => item_at(&folder, &child),
            FileType::Directory | FileType::RegularFile => item_at(&folder, &child),
            // Links, and what has no type: as a request for it would find it.
            _ => match item(disk, &child) {
                Err(RequestError::LeadsOut { .. }) => Ok(None),
                result => Ok(result?),
            },
        };
        let item = item.map_err(|error: io::Error| disk.fail(&child, error))?;
        items.extend(item.map(|item| (name.to_vec(), item)));
    }
    Ok(items)
}

/// What a name in an open folder is; `None`: it has just been removed.
fn item_at(folder: &OwnedFd, path: &ObjectPath) -> io::Result<Option<Item>> {
    let status = match statat(folder, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => status,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let object = status_of(&status);
    Ok(match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => Some(Item::Folder { modified: object.modified() }),
        FileType::RegularFile => Some(Item::Object(object)),
        _ => None,
    })
}

fn status_of(status: &Stat) -> ObjectStatus {
    let id = ObjectId { size: status.st_size as u64, inode: status.st_ino, birth_ns: 0 };
    let ns = i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec);
    ObjectStatus { id, modified_ns: ns }
}

/// A page with a link for each entry; times and sizes are as those of nginx.
fn index_page(path: &ObjectPath, items: &Items) -> String {
    let title = escape(&path.to_string());
    let mut page = format!(
        "<html>\n<head><meta charset=\"utf-8\"><title>Index of {title}</title></head>\n<body>\n\
         <h1>Index of {title}</h1><hr><pre><a href=\"../\">../</a>\n"
    );
    for (name, item) in items {
        let mut link = String::new();
        encode(name, &mut link);
        let mut text = escape(&String::from_utf8_lossy(name));
        let (modified, size) = match item {
            Item::Folder { modified } => (*modified, "-".to_string()),
            Item::Object(status) => (status.modified(), status.id.size.to_string()),
        };
        if matches!(item, Item::Folder { .. }) {
            link.push('/');
            text.push('/');
        }
        let date = index_date(modified);
        page.push_str(&format!("<a href=\"./{link}\">{text}</a> {date} {size:>20}\n"));
    }
    page + "</pre><hr></body>\n</html>\n"
}

/// A time as in `26-Nov-2026 09:16`, of UTC.
fn index_date(time: SystemTime) -> String {
    // Thu, 26 Nov 2026 09:16:00 GMT
    let date = httpdate::fmt_http_date(time);
    let words: Vec<&str> = date.split(' ').collect();
    match words[..] {
        [_, day, month, year, clock, _] => format!("{day}-{month}-{year} {}", &clock[..5]),
        _ => date,
    }
}

const MULTISTATUS_START: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
const MULTISTATUS_END: &str = "</D:multistatus>\n";

fn push_response(page: &mut String, url_path: &str, item: &Item, room: Option<&Space>) {
    let (slash, kind, modified) = match item {
        Item::Folder { modified } => ("/", "<D:collection/>", *modified),
        Item::Object(status) => ("", "", status.modified()),
    };
    page.push_str(&format!(
        "<D:response><D:href>{url_path}{slash}</D:href><D:propstat><D:prop>\
         <D:resourcetype>{kind}</D:resourcetype>\
         <D:getlastmodified>{}</D:getlastmodified>",
        httpdate::fmt_http_date(modified)
    ));
    if let Item::Object(status) = item {
        page.push_str(&format!(
            "<D:getcontentlength>{}</D:getcontentlength><D:getetag>{}</D:getetag>",
            status.id.size,
            status.etag()
        ));
    }
    if let Some(room) = room {
        let used_bytes = room.total_bytes.unwrap_or_default().saturating_sub(room.free_bytes);
        let disks = serde_json::to_string(&room.disks).expect("names and numbers are JSON");
        page.push_str(&format!(
            "<D:quota-available-bytes>{}</D:quota-available-bytes>\
             <D:quota-used-bytes>{used_bytes}</D:quota-used-bytes>\
             <S:disks xmlns:S=\"urn:swathe:block-server\">{}</S:disks>",
            room.free_bytes,
            escape(&disks)
        ));
    }
    page.push_str("</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>\n");
}

/// A text in HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use swathe_store_api::DiskSpace;

    fn items() -> Items {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let id = ObjectId { size: 1234, inode: 1, birth_ns: 0 };
        let object = Item::Object(ObjectStatus { id, modified_ns: 784_111_777_000_000_000 });
        Items::from([
            (b"a<b> \"c\".fits".to_vec(), object),
            (b"run:1".to_vec(), Item::Folder { modified }),
        ])
    }

    #[test]
    fn an_index_has_names_times_and_sizes() {
        let page = index_page(&ObjectPath::parse("/x&y/").unwrap(), &items());
        for line in [
            "<title>Index of /x&amp;y</title>",
            "<a href=\"./a%3Cb%3E%20%22c%22.fits\">a&lt;b&gt; &quot;c&quot;.fits</a> \
             06-Nov-1994 08:49                 1234\n",
            "<a href=\"./run%3A1/\">run:1/</a> 06-Nov-1994 08:49                    -\n",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }

    #[test]
    fn properties_are_those_of_rfc_4918() {
        let disk = DiskSpace {
            id: "1f".into(),
            name: "d<1".into(),
            is_up: true,
            free_bytes: 3,
            total_bytes: 5,
        };
        let room = Space::of_disks(vec![disk]);
        let mut page = String::new();
        items().values().for_each(|item| push_response(&mut page, "/a%20b", item, Some(&room)));
        for text in [
            "<D:href>/a%20b</D:href>",
            "<D:href>/a%20b/</D:href>",
            "<D:resourcetype><D:collection/></D:resourcetype>",
            "<D:resourcetype></D:resourcetype>",
            "<D:getcontentlength>1234</D:getcontentlength>",
            "<D:quota-available-bytes>3</D:quota-available-bytes><D:quota-used-bytes>2</D:quota-used",
            "{&quot;id&quot;:&quot;1f&quot;,&quot;name&quot;:&quot;d&lt;1&quot;,&quot;is_up&quot;:true,",
            "<D:getlastmodified>Sun, 06 Nov 1994 08:49:37 GMT</D:getlastmodified>",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
    }
}
