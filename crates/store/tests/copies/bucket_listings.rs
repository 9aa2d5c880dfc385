//! Listings of buckets.

use super::server::{Reply, Server, reply};
use super::{bucket, folder};
use std::path::Path;
use swathe_store_api::{Entry, ListItem, ListOptions, StoreError, StoreSettings};

fn page(keys: &[&str], next: &str) -> Reply {
    let one = |key: &&str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2024-01-02T03:04:05.000Z</LastModified>\
             <ETag>\"one\"</ETag><Size>7</Size></Contents>"
        )
    };
    let objects: String = keys.iter().map(one).collect();
    let token = if next.is_empty() {
        String::new()
    } else {
        format!("<NextContinuationToken>{next}</NextContinuationToken>")
    };
    reply("200 OK", format!("<ListBucketResult>{objects}{token}</ListBucketResult>").as_bytes())
}

const ONE: &str = "200 OK\nLast-Modified: Tue, 02 Jan 2024 03:04:05 GMT\nETag: \"one\"";

fn entry(item: ListItem) -> Entry {
    match item {
        ListItem::Object(entry) => entry,
        ListItem::Unlisted { path, why } => panic!("{path}: {why}"),
    }
}

fn paths(page: Vec<ListItem>) -> Vec<String> {
    page.into_iter().map(|item| entry(item).path).collect()
}

#[test]
fn buckets_are_listed_page_by_page() {
    let server = Server::start(|request, _| {
        assert!(request.target.starts_with("/frames?") || request.target.starts_with("/frames/?"));
        assert!(request.target.contains("prefix=dr1%2Frun"), "{}", request.target);
        match request.target.contains("continuation-token=more") {
            false => page(&["dr1/run/a b.fits", "dr1/run/b.fits"], "more"),
            true => page(&["dr1/run/sub/c.fits"], ""),
        }
    });
    for scheme in ["s3", "gs"] {
        let stores = swathe_store::stores(vec![bucket(scheme, &server)]);
        let before = server.requests().len();
        let mut listing = stores.list("lake:run", ListOptions::default()).unwrap();
        assert_eq!(server.requests().len(), before, "nothing is asked yet");
        let first = listing.next_page().unwrap().unwrap();
        assert_eq!(server.requests().len(), before + 1, "nothing is asked ahead");
        let Entry { size, modified, etag, .. } = entry(first[0].clone());
        assert_eq!((size, etag.as_deref()), (Some(7), Some("one")));
        assert_eq!(modified.as_deref(), Some("2024-01-02T03:04:05+00:00"));
        assert_eq!(paths(first), ["run/a b.fits", "run/b.fits"]);
        assert_eq!(paths(listing.next_page().unwrap().unwrap()), ["run/sub/c.fits"]);
        assert!(listing.next_page().unwrap().is_none());
        assert!(listing.next_page().unwrap().is_none());
    }
}

#[test]
fn a_listing_in_circles_ends() {
    let server = Server::start(|_, _| page(&["dr1/run/a.fits"], "again"));
    let mut listing = swathe_store::stores(vec![bucket("s3", &server)])
        .list("lake:run", ListOptions::default())
        .unwrap();
    listing.next_page().unwrap();
    let error = listing.next_page().unwrap_err();
    assert!(error.to_string().contains("same page of its listing again"), "{error}");
}

#[test]
fn a_listing_in_a_long_circle_ends() {
    let server = Server::start(|request, _| {
        let next = [("token=a", "b"), ("token=b", "c"), ("token=c", "a")];
        let next = next.iter().find(|(token, _)| request.target.contains(token));
        page(&["dr1/run/a.fits"], next.map_or("a", |(_, token)| token))
    });
    let mut listing = swathe_store::stores(vec![bucket("s3", &server)])
        .list("lake:run", ListOptions::default())
        .unwrap();
    for _ in 0..3 {
        listing.next_page().unwrap();
    }
    let error = listing.next_page().unwrap_err();
    assert!(error.to_string().contains("same page of its listing again"), "{error}");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn refused_listings_say_why() {
    let message = "<Error><Message>Not for you</Message><Key>SECRET</Key></Error>";
    let server = Server::start(move |_, _| reply("403 Forbidden", message.as_bytes()));
    let stores =
        swathe_store::stores(vec![bucket("s3", &server), folder("disk", Path::new("/data"))]);
    let error = stores.list("lake:run", ListOptions::default()).unwrap().next_page().unwrap_err();
    assert!(matches!(error, StoreError::Forbidden { .. }));
    let expected = "s3://frames/dr1/run: access denied: 403 Forbidden: Not for you; asked anonymou";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(!error.to_string().contains("SECRET"));
    for place in ["nowhere://host/a", "lake:a//b", "lake:../b", "http://"] {
        let refusal = stores.list(place, ListOptions::default()).map(|_| ()).unwrap_err();
        assert!(matches!(refusal, StoreError::Unsupported { .. }), "{place}: {refusal}");
    }
}

#[test]
fn nothing_below_a_prefix_is_an_empty_page_and_no_bucket_an_error() {
    let server = Server::start(|request, _| match request.method.as_str() {
        "HEAD" if request.target.ends_with("/one") => reply(ONE, b""),
        "HEAD" => reply("404 Not Found", b""),
        _ if request.target.starts_with("/frames") => page(&[], ""),
        _ => reply("404 Not Found", b"<Error><Message>No such bucket</Message></Error>"),
    });
    let stores = swathe_store::stores(vec![bucket("s3", &server)]);
    let first = |place: &str| stores.list(place, ListOptions::default()).unwrap().next_page();
    let error = first("lake:run").unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(error.to_string().ends_with("no such folder"), "{error}");
    let whole = StoreSettings { root: "s3://frames".into(), ..bucket("s3", &server) };
    let whole = swathe_store::stores(vec![whole]).list("lake:", ListOptions::default());
    assert_eq!(whole.unwrap().next_page().unwrap().unwrap(), []);
    let may_lack = ListOptions { may_lack: true, ..ListOptions::default() };
    assert_eq!(stores.list("lake:run", may_lack).unwrap().next_page().unwrap().unwrap(), []);
    assert_eq!(paths(first("lake:one").unwrap().unwrap()), ["one"]);
    let mut elsewhere = bucket("s3", &server);
    elsewhere.root = "s3://nowhere".into();
    let error = swathe_store::stores(vec![elsewhere])
        .list("lake:", ListOptions::default())
        .unwrap()
        .next_page()
        .unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(error.to_string().contains("No such bucket"), "{error}");
}
