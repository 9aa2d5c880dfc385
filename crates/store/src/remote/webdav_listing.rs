//! The entries of a folder, as a WebDAV server answers to PROPFIND with depth 1 (RFC 4918).

use super::index_page::beginning;
use crate::folder_walk::{EntryKind, FolderEntry};
use crate::redact::percent_decode;
use quick_xml::NsReader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;
use quick_xml::name::{Namespace, ResolveResult};
use reqwest::Url;
use std::borrow::Cow;

/// The question about a folder and each of its entries.
pub(super) const QUESTION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\
    <propfind xmlns=\"DAV:\"><prop>\
    <resourcetype/><getcontentlength/><getlastmodified/><getetag/></prop></propfind>";
const DAV: Namespace<'_> = Namespace(b"DAV:");
/// Characters that a message shows of the statuses in an answer.
const REASON_CHARS: usize = 200;
/// Elements within each other; a listing has five, and servers may add properties of their own.
const MOST_LEVELS: usize = 32;
/// Names of namespaces that an element declares. With the levels this bounds the time for a name.
const MOST_NAMESPACES: usize = 16;

/// Properties of one entry.
#[derive(Clone, Debug, Default, PartialEq)]
struct Properties {
    has_type: bool,
    is_collection: bool,
    size: Option<String>,
    modified: Option<String>,
    etag: Option<String>,
}

/// The answer about one entry.
#[derive(Default)]
struct Response {
    href: String,
    /// Status of the whole response, if it is not divided by status.
    status: String,
    properties: Properties,
    refusals: Vec<String>,
}

/// The entries of a folder; `is_encoded`: whether names are percent-encoded. XRootD does not encode
/// them.
///
/// # Errors
/// Why it is not an answer about that folder.
pub(super) fn entries(
    url: &Url,
    content: &[u8],
    is_encoded: bool,
) -> Result<Vec<FolderEntry>, String> {
    let responses = parse(content).map_err(|why| {
        format!("expected the entries of the folder, as XML: {why}; found {}", beginning(content))
    })?;
    let folder = path_of(url.path(), true).into_owned();
    let count = responses.len();
    let (mut entries, mut is_described) = (Vec::new(), false);
    for response in responses {
        let path = path_of(&response.href, is_encoded);
        if path == folder {
            is_described = true;
            if let EntryKind::Unlisted(why) = kind_of(response) {
                return Err(why);
            }
        } else if let Some(name) =
            path.strip_prefix(&*folder).and_then(|rest| rest.strip_prefix('/'))
            && !name.contains('/')
            // In a URL they are the folder itself and the one above.
            && !matches!(name, "." | "..")
        {
            let name = name.to_string();
            entries.push(FolderEntry { name, kind: kind_of(response) });
        }
    }
    // An answer about another folder would make all objects of this one look deleted.
    match is_described {
        true => Ok(entries),
        false => Err(format!("expected an answer about {folder}/; found {count} others")),
    }
}

/// The path of a name, with single slashes and none at its end.
fn path_of(href: &str, is_encoded: bool) -> Cow<'_, str> {
    let path = if is_encoded {
        // A space that belongs to a name must stay.
        let href = href.trim();
        let path = match href.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
            None => href,
        };
        String::from_utf8_lossy(&percent_decode(path)).into_owned()
    } else {
        href.to_string()
    };
    // In the root, names of XRootD begin with two slashes.
    let mut single = String::with_capacity(path.len());
    for char in path.chars() {
        if char != '/' || !single.ends_with('/') {
            single.push(char);
        }
    }
    Cow::Owned(single.trim_end_matches('/').to_string())
}

fn kind_of(response: Response) -> EntryKind {
    let Response { status, properties, refusals, .. } = response;
    // XRootD gives no resource type for entries that are not folders.
    if !properties.has_type && properties.size.is_none() {
        let reasons: Vec<String> = std::iter::once(status).chain(refusals).collect();
        let reasons: Vec<&str> =
            reasons.iter().map(|reasons| reasons.trim()).filter(|s| !s.is_empty()).collect();
        let reasons = if reasons.is_empty() { "nothing".to_string() } else { reasons.join("; ") };
        let reasons: String = reasons.chars().take(REASON_CHARS).collect();
        return EntryKind::Unlisted(format!(
            "cannot tell whether it is a folder: expected its type, found {reasons}"
        ));
    }
    if properties.is_collection {
        return EntryKind::Folder;
    }
    // A weak ETag does not identify every byte.
    let etag = properties.etag.filter(|tag| !tag.starts_with("W/"));
    EntryKind::Object {
        size: properties.size.and_then(|size| size.parse().ok()),
        modified: properties.modified,
        etag: etag.map(|tag| tag.trim_matches('"').to_string()).filter(|tag| !tag.is_empty()),
    }
}

/// An element of an answer, as far as it matters.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    Root,
    Response,
    Href,
    Status,
    Propstat,
    PropstatStatus,
    Prop,
    Type,
    Collection,
    Size,
    Modified,
    Etag,
    Other,
}

/// The element of a name inside of another.
fn element(parent: Option<Element>, name: &[u8], is_dav: bool) -> Element {
    match (parent, name) {
        (None, _) => Element::Root,
        _ if !is_dav => Element::Other,
        (Some(Element::Root), b"response") => Element::Response,
        (Some(Element::Response), b"href") => Element::Href,
        (Some(Element::Response), b"status") => Element::Status,
        (Some(Element::Response), b"propstat") => Element::Propstat,
        (Some(Element::Propstat), b"status") => Element::PropstatStatus,
        (Some(Element::Propstat), b"prop") => Element::Prop,
        (Some(Element::Prop), b"resourcetype") => Element::Type,
        (Some(Element::Type), b"collection") => Element::Collection,
        (Some(Element::Prop), b"getcontentlength") => Element::Size,
        (Some(Element::Prop), b"getlastmodified") => Element::Modified,
        (Some(Element::Prop), b"getetag") => Element::Etag,
        _ => Element::Other,
    }
}

/// The answer as far as it is read.
#[derive(Default)]
struct Parser {
    open: Vec<Element>,
    text: String,
    has_root: bool,
    responses: Vec<Response>,
    properties: Properties,
    status: String,
}

fn parse(content: &[u8]) -> Result<Vec<Response>, String> {
    // A NUL means UTF-16.
    if content.contains(&0) {
        return Err("it has null characters".into());
    }
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8 text")?;
    let mut reader = NsReader::from_str(text);
    reader.resolver_mut().set_max_declarations_per_element(MOST_NAMESPACES);
    let mut parser = Parser::default();
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|error| error.to_string())?;
        let is_dav = namespace == ResolveResult::Bound(DAV);
        match event {
            Event::Start(tag) => parser.start(tag.local_name().as_ref(), is_dav)?,
            Event::Empty(tag) => {
                parser.start(tag.local_name().as_ref(), is_dav)?;
                parser.end();
            }
            Event::End(_) => parser.end(),
            Event::Text(text) => parser.add(&text.decode().map_err(|error| error.to_string())?)?,
            Event::CData(text) => parser.add(&text.decode().map_err(|error| error.to_string())?)?,
            Event::GeneralRef(entity) => {
                let number = entity.resolve_char_ref().map_err(|error| error.to_string())?;
                let name = entity.decode().map_err(|error| error.to_string())?;
                match (number, resolve_predefined_entity(&name)) {
                    (Some(char), _) => parser.add(char.encode_utf8(&mut [0; 4]))?,
                    (None, Some(text)) => parser.add(text)?,
                    (None, None) => return Err(format!("it has an unknown entity {name}")),
                }
            }
            // Entity declarations could expand without bounds.
            Event::DocType(_) => return Err("it has a document type".into()),
            Event::Eof if parser.open.is_empty() && parser.has_root => return Ok(parser.responses),
            Event::Eof => return Err("it breaks off".into()),
            _ => {}
        }
    }
}

impl Parser {
    fn start(&mut self, name: &[u8], is_dav: bool) -> Result<(), String> {
        let parent = self.open.last().copied();
        if parent.is_none() && self.has_root {
            return Err("it has a second root".into());
        }
        let element = element(parent, name, is_dav);
        match element {
            Element::Root => self.has_root = true,
            Element::Response => self.responses.push(Response::default()),
            Element::Propstat => {
                self.properties = Properties::default();
                self.status.clear();
            }
            Element::Type => self.properties.has_type = true,
            Element::Collection => self.properties.is_collection = true,
            _ => {}
        }
        if element != Element::Other {
            self.text.clear();
        }
        if self.open.len() == MOST_LEVELS {
            return Err(format!("it has more than {MOST_LEVELS} levels"));
        }
        self.open.push(element);
        Ok(())
    }

    fn add(&mut self, text: &str) -> Result<(), String> {
        match self.open.last() {
            None if !text.trim().is_empty() => Err("it has text outside of its root".into()),
            None | Some(Element::Other) => Ok(()),
            Some(_) => {
                self.text.push_str(text);
                Ok(())
            }
        }
    }

    fn end(&mut self) {
        let (Some(element), Some(response)) = (self.open.pop(), self.responses.last_mut()) else {
            return;
        };
        let text = || Some(self.text.trim().to_string()).filter(|text| !text.is_empty());
        match element {
            Element::Href => response.href = std::mem::take(&mut self.text),
            Element::Status => response.status = std::mem::take(&mut self.text),
            Element::PropstatStatus => self.status = std::mem::take(&mut self.text),
            Element::Size => self.properties.size = text(),
            Element::Modified => self.properties.modified = text(),
            Element::Etag => self.properties.etag = text(),
            Element::Propstat if self.status.split_whitespace().nth(1) == Some("200") => {
                let new = std::mem::take(&mut self.properties);
                let old = &mut response.properties;
                old.has_type |= new.has_type;
                old.is_collection |= new.is_collection;
                old.size = new.size.or(old.size.take());
                old.modified = new.modified.or(old.modified.take());
                old.etag = new.etag.or(old.etag.take());
            }
            Element::Propstat => response.refusals.push(std::mem::take(&mut self.status)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "http://host:1094/a%20b/run/";
    const IS_FOLDER: &str = "<D:resourcetype><D:collection/></D:resourcetype>";
    const SIZE: &str = "<D:getcontentlength>7</D:getcontentlength>";

    fn multistatus(entries: &[(&str, &str)], more: &str) -> String {
        let one = |(href, properties): &(&str, &str)| {
            format!(
                "<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>\
                 <D:status>HTTP/1.1 200 OK</D:status></D:propstat>\n<D:propstat><D:prop><D:getetag/>\
                 </D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>"
            )
        };
        let entries: String = entries.iter().map(one).collect();
        format!(
            "<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{entries}{more}</D:multistatus>"
        )
    }

    fn read(answer: &str, is_encoded: bool) -> Result<Vec<FolderEntry>, String> {
        entries(&Url::parse(FOLDER).unwrap(), answer.as_bytes(), is_encoded)
    }

    fn object(name: &str, modified: Option<&str>, etag: Option<&str>) -> FolderEntry {
        let text = |text: Option<&str>| text.map(str::to_string);
        let kind = EntryKind::Object { size: Some(7), modified: text(modified), etag: text(etag) };
        FolderEntry { name: name.into(), kind }
    }

    #[test]
    fn what_webdav_says_of_a_folder() {
        let with = |more: &str| format!("{SIZE}<D:resourcetype/>{more}");
        let answer = multistatus(
            &[
                (FOLDER, IS_FOLDER),
                (
                    "//a b/run/plain+x&amp;&#x79;.fits",
                    &with("<D:getlastmodified>Sun</D:getlastmodified>"),
                ),
                ("/a%20b/run/%C3%84.fits", &with("<D:getetag>\"tag\"</D:getetag>")),
                ("/a%20b/run/weak.fits", &with("<D:getetag>W/\"tag\"</D:getetag>")),
                (
                    "<![CDATA[/a%20b/run/cdata]]>",
                    &with("<x:getetag xmlns:x=\"other:\">no</x:getetag>"),
                ),
                ("/a%20b/run/sub/", IS_FOLDER),
                ("/a%20b/run/sub/deeper.fits", &with("")),
                ("/a%20b/run/./", IS_FOLDER),
                ("/a%20b/run/%2E%2E/", IS_FOLDER),
                ("/elsewhere.fits", &with("")),
            ],
            "",
        );
        let folder = FolderEntry { name: "sub".into(), kind: EntryKind::Folder };
        let expected = [
            object("plain+x&y.fits", Some("Sun"), None),
            object("Ä.fits", None, Some("tag")),
            object("weak.fits", None, None),
            object("cdata", None, None),
            folder,
        ];
        assert_eq!(read(&answer, true).unwrap(), expected);
        let default =
            answer.replace("xmlns:D", "xmlns").replace("D:", "").replace("\"DAV\"", "\"DAV:\"");
        let default = default.replace("xmlns=\"AV:\"", "xmlns=\"DAV:\"");
        assert_eq!(read(&default, true).unwrap().len(), expected.len());
    }

    #[test]
    fn names_of_xrootd_stand_as_they_are() {
        let odd = ["a%20b", " two words ", "50%", "p?q#r"];
        let hrefs = odd.map(|name| format!("/a b/run/{name}"));
        let mut responses = vec![("/a b/run/", IS_FOLDER)];
        responses.extend(hrefs.iter().map(|href| (href.as_str(), SIZE)));
        let expected = odd.map(|name| object(name, None, None));
        assert_eq!(read(&multistatus(&responses, ""), false).unwrap(), expected);
    }

    #[test]
    fn what_webdav_does_not_tell_is_neither_object_nor_folder() {
        for (response, reason) in [
            ("<D:status>HTTP/1.1 403 Forbidden</D:status>", "found HTTP/1.1 403 Forbidden"),
            (
                "<D:propstat><D:prop><D:resourcetype/></D:prop>\
                 <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>",
                "found HTTP/1.1 404 Not Found",
            ),
            ("", "found nothing"),
        ] {
            let response = |name: &str| {
                format!("<D:response><D:href>/a%20b/run{name}</D:href>{response}</D:response>")
            };
            let entries =
                read(&multistatus(&[(FOLDER, IS_FOLDER)], &response("/sub")), true).unwrap();
            let [FolderEntry { name, kind: EntryKind::Unlisted(why) }] = &entries[..] else {
                panic!("{entries:?}")
            };
            assert!(name == "sub" && why.ends_with(reason), "{why}");
            let error = read(&multistatus(&[], &response("/")), true).unwrap_err();
            assert!(error.ends_with(reason), "{error}");
        }
    }

    #[test]
    fn what_is_no_answer_about_the_folder_is_an_error() {
        let other = multistatus(&[("/a%20b/run2/", IS_FOLDER), ("/a%20b/run2/x", "")], "");
        let whole = multistatus(&[(FOLDER, IS_FOLDER)], "");
        for (answer, reason) in [
            ("<html><p>welcome", "as XML"),
            ("", "as XML"),
            ("hello", "as XML"),
            (&whole[..whole.len() - 5], "as XML"),
            (&format!("{whole}<a/>"), "second root"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "document type"),
            ("<a>&b;</a>", "unknown entity"),
            ("<\0a\0>\0", "null characters"),
            (&multistatus(&[], ""), "0 others"),
            (&other, "2 others"),
        ] {
            let error = read(answer, true).unwrap_err();
            assert!(error.contains(reason), "{answer}: {error}");
        }
    }

    #[test]
    fn deep_answers_and_many_namespaces_are_refused() {
        let deep = "<x>".repeat(MOST_LEVELS) + &"</x>".repeat(MOST_LEVELS);
        let error = read(&multistatus(&[], &deep), true).unwrap_err();
        assert!(error.contains("more than 32 levels"), "{error}");
        let many: String =
            (0..=MOST_NAMESPACES).map(|number| format!(" xmlns:a{number}=\"u\"")).collect();
        let error = read(&multistatus(&[], &format!("<x{many}/>")), true).unwrap_err();
        assert!(error.contains("namespace"), "{error}");
    }
}
