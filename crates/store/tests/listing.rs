//! Listings of folders and of HTTP servers; those of buckets are in `copies/bucket_listings.rs`.

mod server;

use server::{ConnectionEnd, Reply, Server, raw, reply};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;
use swathe_store_api::{
    ListItem, ListOptions, Listing, ObjectName, StoreError, StoreSettings, Stores,
};

fn stores(root: String) -> Stores {
    let settings = StoreSettings::new("here".into(), root, BTreeMap::new());
    swathe_store::stores(vec![settings])
}

fn list(stores: &Stores, place: &str) -> Result<Vec<ListItem>, StoreError> {
    rest_of(&mut *stores.list(place, ListOptions::default())?)
}

/// What the further pages of a listing have.
fn rest_of(listing: &mut dyn Listing) -> Result<Vec<ListItem>, StoreError> {
    let mut all = Vec::new();
    while let Some(page) = listing.next_page()? {
        all.extend(page);
    }
    Ok(all)
}

/// `path` of objects, `path: why` of what could not be listed.
fn texts(list: Vec<ListItem>) -> Vec<String> {
    let text = |each| match each {
        ListItem::Object(entry) => entry.path,
        ListItem::Unlisted { path, why } => format!("{path}: {why}"),
    };
    list.into_iter().map(text).collect()
}

const HTML: &str = "200 OK\nContent-Type: text/html; charset=utf-8";

fn page(links: &[&str]) -> Reply {
    let links: String = links.iter().map(|link| format!("<a href=\"{link}\">{link}</a>")).collect();
    reply(HTML, links.as_bytes())
}

#[test]
fn folders_of_a_server_are_asked_one_after_the_other_and_again_when_it_is_busy() {
    let server = Server::start(|request, number| match (request.target.as_str(), number) {
        ("/data/", 0) => reply("503 Service Unavailable\nRetry-After: 0", b""),
        ("/data/", _) => page(&["a.fits", "more/", "secret/", ".hidden/"]),
        ("/data/more/", _) => page(&["b%20c.fits"]),
        _ => reply("403 Forbidden", b""),
    });
    let names = texts(list(&stores(server.url("data")), "here:").unwrap());
    let why = ": access denied: its index may not be read: status 403";
    let secret = format!("secret: {}{why}", server.url("data/secret/"));
    assert_eq!(names, ["a.fits".to_string(), secret, "more/b c.fits".into()]);
    assert_eq!(server.requests().len(), 4);
}

/// Bytes that come one by one are too few for a listing, and for one property.
#[test]
fn an_answer_that_drips_is_given_up() {
    let server = Server::start(|_, _| {
        let mut drip = raw("207 Multi-Status\nContent-Type: application/xml", b"<a>");
        drip.then = ConnectionEnd::Repeat(" ");
        drip
    });
    let root = server.url("data").replace("http://", "dav://");
    let settings = StoreSettings::new("here".into(), root.clone(), BTreeMap::new());
    let store = swathe_store::connect_with_stall(settings, Duration::from_millis(300));
    let object = ObjectName { url: &format!("{root}/"), qualified_name: None };
    let error = store.has_folder(object).unwrap_err().to_string();
    assert!(error.contains("bytes of an answer in 0.3 s"), "{error}");
    assert!(store.space(object).is_err());
}

#[test]
fn what_is_no_index_is_an_error() {
    let server = Server::start(|request, _| match request.target.as_str() {
        "/page/" => reply("302 Found\nLocation: /login", b""),
        "/login" => reply(HTML, b"<a href=\"x\">who are you?</a>"),
        "/file/" => reply("200 OK\nContent-Type: image/png", b"x"),
        _ => reply("404 Not Found", b""),
    });
    let root = server.url("").trim_end_matches('/').to_string();
    let stores = stores(root);
    let error = |place: &str| list(&stores, place).unwrap_err();
    let redirect = error("here:page");
    assert!(matches!(redirect, StoreError::NoIndex { .. }), "{redirect:?}");
    assert!(redirect.to_string().contains("expected its index; found a redirect to http"));
    assert!(error("here:file").to_string().contains("as JSON or HTML; found image/png; give"));
    let missing = error("here:none");
    assert!(matches!(missing, StoreError::NotFound { .. }), "{missing:?}");
    let may_lack = ListOptions { may_lack: true, ..ListOptions::default() };
    let none = stores.list("here:none", may_lack).unwrap().next_page().unwrap();
    assert!(none.is_none_or(|page| page.is_empty()));
}

/// Fill the first page of a listing with files. Sub-folders are read after it.
fn fill_first_page(folder: &Path) {
    for number in 0..5000 {
        fs::write(folder.join(format!("b{number}")), "").unwrap();
    }
}

#[test]
fn a_folder_that_is_removed_while_it_is_listed_is_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["gone/a", "stays/a"] {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        fs::write(folder.path().join(name), "x").unwrap();
    }
    fill_first_page(folder.path());
    let stores = stores(format!("file://{}", folder.path().display()));
    let mut listing = stores.list("here:", ListOptions::default()).unwrap();
    let first = texts(listing.next_page().unwrap().unwrap());
    assert!(first.iter().all(|name| name.starts_with('b')));
    fs::remove_dir_all(folder.path().join("gone")).unwrap();
    let mut rest = texts(rest_of(&mut *listing).unwrap());
    rest.retain(|name| !name.starts_with('b'));
    assert_eq!(rest, ["stays/a"]);
}

/// What is below is then not known to be removed.
#[test]
fn a_folder_that_is_away_while_it_is_listed_is_a_fault() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("data");
    fs::create_dir_all(root.join("a")).unwrap();
    fs::write(root.join("a/x"), "x").unwrap();
    fill_first_page(&root);
    let stores = stores(format!("file://{}", root.display()));
    let mut listing = stores.list("here:", ListOptions::default()).unwrap();
    listing.next_page().unwrap().unwrap();
    fs::rename(&root, parent.path().join("elsewhere")).unwrap();
    fs::create_dir(&root).unwrap();
    let mut rest = texts(rest_of(&mut *listing).unwrap());
    rest.retain(|name| !name.starts_with('b'));
    assert_eq!(rest, ["a: its folder cannot be listed: it cannot be opened"]);
}

#[test]
fn links_of_a_folder_lead_to_files_in_it_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["data/sub/b.fits", "data/a.fits", "data/.hidden/x", "outside/c.fits"] {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), name).unwrap();
    }
    symlink("a.fits", path("data/near")).unwrap();
    symlink("sub", path("data/loop")).unwrap();
    symlink("missing", path("data/nothing")).unwrap();
    symlink("../outside/c.fits", path("data/out")).unwrap();
    symlink("/nowhere/at/all", path("data/out of nothing")).unwrap();
    let stores = stores(format!("file://{}", path("data").display()));
    let out = "a link that leads out of its store";
    let expected = ["a.fits", "near", &format!("out: {out}"), &format!("out of nothing: {out}")];
    let names = texts(list(&stores, "here:").unwrap());
    assert_eq!(names[..4], expected.map(str::to_string));
    assert_eq!(names[4..], ["sub/b.fits"]);
    assert_eq!(texts(list(&stores, "here:sub/b.fits").unwrap()), ["sub/b.fits"]);
    let error = |place: &str| list(&stores, place).unwrap_err();
    assert!(matches!(error("here:../outside"), StoreError::Forbidden { .. }));
    assert!(matches!(error("here:none"), StoreError::NotFound { .. }));
    assert!(error("here:nothing").to_string().ends_with("a link that leads to nothing"));
    let absolute = format!("{}", path("outside").display());
    let names = texts(list(&swathe_store::stores(Vec::new()), &absolute).unwrap());
    assert_eq!(names, [path("outside/c.fits").display().to_string().trim_start_matches('/')]);
}
