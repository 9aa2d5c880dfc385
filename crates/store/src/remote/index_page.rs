//! Indexes of folders as servers of files write them: links in HTML, or nginx's JSON.

use crate::folder_walk::{EntryKind, FolderEntry};
use crate::redact::percent_decode;
use reqwest::Url;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::HashMap;
use swathe_store_api::StoreError;

/// Bytes of an answer other than an index that a message shows.
const SHOWN_BYTES: usize = 60;
/// No entity has a longer name or number.
const LONGEST_ENTITY: usize = 10;

/// An entry of nginx's `autoindex_format json`.
#[derive(Deserialize)]
struct JsonEntry<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    size: Option<u64>,
    mtime: Option<String>,
}

/// Reads one entry after the other: an index may have millions.
impl<'de> Deserialize<'de> for FolderEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FolderEntry, D::Error> {
        let JsonEntry { name, r#type, size, mtime } = JsonEntry::deserialize(deserializer)?;
        let name = name.trim_end_matches('/');
        let kind = if name.is_empty() || name.contains('/') {
            EntryKind::Unlisted(format!("expected the name of one entry, found {name:?}"))
        } else if r#type == "directory" {
            EntryKind::Folder
        } else {
            EntryKind::Object { size, modified: mtime, etag: None }
        };
        Ok(FolderEntry { name: name.replace('/', "?"), kind })
    }
}

/// The entries of an index.
///
/// # Errors
/// [`StoreError::NoIndex`].
pub(super) fn entries(
    url_text: &str,
    url: &Url,
    kind: &str,
    content: &[u8],
) -> Result<Vec<FolderEntry>, StoreError> {
    match kind {
        "application/json" => json_entries(url_text, content),
        "text/html" => html_entries(url_text, url, &String::from_utf8_lossy(content)),
        _ => {
            let expected = "an index of the folder, as JSON or HTML";
            let found = format!(
                "{kind}; give --objects FILE, a text file with the path of one object on each line"
            );
            Err(no_index(url_text, expected, found))
        }
    }
}

pub(super) fn no_index(url_text: &str, expected: &str, found: String) -> StoreError {
    StoreError::NoIndex { url: url_text.to_string(), expected: expected.to_string(), found }
}

/// The beginning of an answer, to be shown.
pub(super) fn beginning(content: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&content[..content.len().min(SHOWN_BYTES)]))
}

fn json_entries(url_text: &str, content: &[u8]) -> Result<Vec<FolderEntry>, StoreError> {
    serde_json::from_slice(content).map_err(|error| {
        let expected = "a list of name, type, size and mtime, as nginx writes";
        no_index(url_text, expected, format!("{}: {error}", beginning(content)))
    })
}

/// Links of nginx, Apache and others, each followed by time and size.
fn html_entries(url_text: &str, url: &Url, page: &str) -> Result<Vec<FolderEntry>, StoreError> {
    if find_ignoring_case(page, "<a").is_none() {
        let found = "a page without links".to_string();
        return Err(no_index(url_text, "an index of the folder", found));
    }
    let mut entries: Vec<FolderEntry> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (link, tail) in links(page) {
        let Some(entry) = linked_entry(url, &link, tail) else { continue };
        match numbers.get(&entry.name) {
            Some(&number) => entries[number] = entry,
            None => {
                numbers.insert(entry.name.clone(), entries.len());
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}

/// The target of a link, if it lies directly in the folder.
fn linked_entry(url: &Url, link: &str, tail: &str) -> Option<FolderEntry> {
    let target = url.join(&unescape(link)).ok()?;
    let is_same_server = target.host_str() == url.host_str()
        && target.port_or_known_default() == url.port_or_known_default();
    if !is_same_server || target.query().is_some_and(|query| !query.is_empty()) {
        return None;
    }
    let below = target.path().strip_prefix(url.path())?;
    let name = percent_decode(below.trim_end_matches('/'));
    if name.is_empty() || name.contains(&b'/') {
        return None;
    }
    let Ok(name) = String::from_utf8(name) else {
        let kind = EntryKind::Unlisted("its name is not UTF-8 text".into());
        return Some(FolderEntry { name: below.trim_end_matches('/').to_string(), kind });
    };
    let kind = if below.ends_with('/') {
        EntryKind::Folder
    } else {
        let (modified, size) = time_and_size(tail);
        EntryKind::Object { size, modified, etag: None }
    };
    Some(FolderEntry { name, kind })
}

/// The text of the time after a link, and the size if it is exact.
fn time_and_size(tail: &str) -> (Option<String>, Option<u64>) {
    let mut words = words(tail).peekable();
    while let Some((start, date)) = words.next() {
        let Some(&(at, time)) = words.peek() else { break };
        if is_date(date) && is_time(time) {
            let size = words.nth(1).filter(|(_, word)| word.bytes().all(|b| b.is_ascii_digit()));
            let modified = tail[start..at + time.len()].to_string();
            return (Some(modified), size.and_then(|(_, word)| word.parse().ok()));
        }
    }
    (None, None)
}

/// Words and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().map(move |word| (word.as_ptr() as usize - start, word))
}

/// Whether a word is a date: `2024-01-02`, `02-Jan-2024`.
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let [first, month, last] = parts[..] else { return false };
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    (1..=4).contains(&first.len())
        && is_number(first)
        && (2..=3).contains(&month.len())
        && month.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && (2..=4).contains(&last.len())
        && is_number(last)
}

/// Whether a word is a time of day: `03:04`, `03:04:05`.
fn is_time(word: &str) -> bool {
    let is_number = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    word.split(':').all(is_number) && (2..=3).contains(&word.split(':').count())
}

/// The target of each link, and the text that follows it up to the next tag.
fn links(page: &str) -> Vec<(String, &str)> {
    let (mut links, mut link, mut rest) = (Vec::new(), None, page);
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.get(..3).is_some_and(|tag| tag.eq_ignore_ascii_case("/a>")) {
            let text = rest[3..].split('<').next().unwrap_or_default();
            rest = &rest[3 + text.len()..];
            links.extend(link.take().map(|link| (link, text)));
        } else if let Some(inside) = rest.strip_prefix(['a', 'A'])
            && inside.starts_with(char::is_whitespace)
        {
            let attributes = inside.split('>').next().unwrap_or_default();
            rest = &inside[attributes.len()..];
            link = link.or_else(|| href(attributes));
        }
    }
    links
}

/// The value of the attribute `href`, in quotes of either kind.
fn href(attributes: &str) -> Option<String> {
    let mut rest = attributes;
    while let Some(at) = find_ignoring_case(rest, "href") {
        rest = &rest[at + 4..];
        let value = rest.trim_start().strip_prefix('=').map(str::trim_start);
        let quote = value.and_then(|value| value.strip_prefix(['"', '\'']));
        if let Some((link, _)) = quote.and_then(|text| text.split_once(['"', '\''])) {
            return Some(link.to_string());
        }
    }
    None
}

/// Where an ASCII word is in a text.
fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(word.len());
    windows.position(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// A value without character references: those by number, and those that XML has. Servers encode
/// all other characters of links in percent.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';');
        match end.and_then(|end| Some((end, resolve(&rest[..end])?))) {
            Some((end, char)) => {
                plain.push(char);
                rest = &rest[end + 1..];
            }
            None => plain.push('&'),
        }
    }
    plain + rest
}

fn resolve(entity: &str) -> Option<char> {
    match entity.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
        None => quick_xml::escape::resolve_xml_entity(entity)?.chars().next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FOLDER: &str = "http://h.example/x/";

    fn parse_as(kind: &str, page: &str) -> Result<Vec<FolderEntry>, StoreError> {
        entries(FOLDER, &Url::parse(FOLDER).unwrap(), kind, page.as_bytes())
    }

    fn object(name: &str, size: Option<u64>, modified: Option<&str>) -> FolderEntry {
        let kind = EntryKind::Object { size, modified: modified.map(str::to_string), etag: None };
        FolderEntry { name: name.into(), kind }
    }

    fn folder(name: &str) -> FolderEntry {
        FolderEntry { name: name.into(), kind: EntryKind::Folder }
    }

    #[test]
    fn indexes_as_apache_writes_them() {
        let page = r#"<html><h1>Index of /x</h1><pre><a href="?C=N;O=D">Name</a> <a href="/">Parent</a>
            <img src="i.gif"> <a href="a%20b.fits">a b.fits</a>   2024-01-02 03:04  1.2M
            <a href='sub/'>sub/</a>  2024-01-02 03:04  -
            <a href="http://other.example/x/c.fits">c</a> <a href="c.fits#top">c.fits</a></pre></html>"#;
        let expected = [
            object("a b.fits", None, Some("2024-01-02 03:04")),
            folder("sub"),
            object("c.fits", None, None),
        ];
        assert_eq!(parse_as("text/html", page).unwrap(), expected);
    }

    #[test]
    fn indexes_as_nginx_and_caddy_write_them() {
        let page = "<A class=n HREF = \"/x/a&amp;b&#233;.fits\" title='t'>a</A>  \t02-Jan-2024 03:04:05   17\n\
            <a href=\"./caddy.fits\"><svg></svg></a><a href=\"../up.fits\">u</a><a href=\"deep/er.fits\">d</a>\
            <a href=\"%FF.fits\">n</a><a href=\"a&b&nosuch;.fits\">b</a><a href=\"a&amp;b&#xE9;.fits\">again</a>";
        let kind = EntryKind::Unlisted("its name is not UTF-8 text".into());
        let expected = [
            object("a&bé.fits", None, None),
            object("caddy.fits", None, None),
            FolderEntry { name: "%FF.fits".into(), kind },
            object("a&b&nosuch;.fits", None, None),
        ];
        assert_eq!(parse_as("text/html", page).unwrap(), expected);
        let first = parse_as("text/html", page.lines().next().unwrap()).unwrap();
        assert_eq!(first, [object("a&bé.fits", Some(17), Some("02-Jan-2024 03:04:05"))]);
    }

    #[test]
    fn json_as_nginx_writes_it() {
        let page = r#"[{"name": "s", "type": "directory", "mtime": "m"}, {"name": "../a", "type": "file"},
            {"name": "a b", "type": "file", "size": 3, "mtime": "Tue", "more": [1]}]"#;
        let entries = parse_as("application/json", page).unwrap();
        assert_eq!(
            [&entries[0], &entries[2]],
            [&folder("s"), &object("a b", Some(3), Some("Tue"))]
        );
        assert!(matches!(&entries[1].kind, EntryKind::Unlisted(why) if why.contains("../a")));
    }

    #[test]
    fn what_is_no_index_is_an_error() {
        for (kind, page, expected) in [
            ("text/html", "<html>hello", "found a page without links"),
            ("application/json", "{\"a\": 1}", "expected a list of name, type, size and mtime"),
            ("application/json", "[{\"name\": \"a\"}]", "missing field `type`"),
            ("image/png", "", "found image/png; give --objects FILE"),
        ] {
            let error = parse_as(kind, page).unwrap_err();
            assert!(matches!(error, StoreError::NoIndex { .. }));
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_long_page_takes_no_time() {
        for part in ["<a href='", "<a ", "</a", "href=", "&#", "<a href=\"a\">", "1-02-03 "] {
            let page = format!("<a href='x'>{}", part.repeat(200_000));
            let began = std::time::Instant::now();
            let _ = parse_as("text/html", &page);
            assert!(began.elapsed().as_secs_f64() < 2.0, "{part}");
        }
    }

    proptest! {
        #[test]
        fn no_page_causes_a_panic(parts in prop::collection::vec(
            prop::sample::select(vec![
                "<a href='x'>", "<A\nclass=c HREF = \"y\" >", "<a name='n'>", "</a>", "</A>", "é", "<", "&#",
                "2024-01-02", " ", "03:04", "7", "\u{a0}", "%", "/", "://", "<a\u{3000}href='é'>",
            ]), 0..40)) {
            if let Ok(entries) = parse_as("text/html", &parts.concat()) {
                prop_assert!(entries.iter().all(|entry| !entry.name.contains('/')));
            }
        }
    }
}
