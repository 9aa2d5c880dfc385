//! HTTP sources against servers that do right and wrong.

#[path = "../server/mod.rs"]
mod server;

use bytes::Bytes;
use server::{ConnectionEnd, Reply, Request, Server, good, raw, reply};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use swathe_plan::Costs;
use swathe_store::{connect, open, open_with_stall};
use swathe_store_api::{Source, StoreError, StoreSettings, Version};

const SIZE: usize = 100_000;
const ETAG: &str = "ETag: \"one\"";

fn data() -> Vec<u8> {
    (0..SIZE as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// A server that does right but for what `wrong` answers.
fn server(wrong: impl Fn(&Request, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
    let data = data();
    Server::start(move |request, number| {
        wrong(request, number).unwrap_or_else(|| good(request, &data, ETAG))
    })
}

/// A server that is correct on opening and answers reads with `answer`.
fn reads(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    server(move |request, number| (number > 0).then(|| answer(request)))
}

const PART: &str = "206 Partial Content\nContent-Range: bytes 90010-90019/100000";

/// Where tests read: beyond the first bytes, which come with opening.
const AT: u64 = 90_010;

/// Read ten bytes, which must fail.
fn read_error(server: &Server) -> StoreError {
    open(&server.url("a.fits")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap_err()
}

fn fetch(
    source: &dyn Source,
    ranges: &[Range<u64>],
    streams: u32,
) -> Result<Vec<Bytes>, StoreError> {
    source.fetch(ranges.to_vec(), streams).collect()
}

fn open_error(url: &str) -> StoreError {
    open(url).map(|source| source.version().clone()).unwrap_err()
}

macro_rules! assert_error {
    ($error:expr, $variant:ident, $text:expr) => {
        let error = $error;
        assert!(matches!(error, StoreError::$variant { .. }), "{error:?}");
        assert!(error.to_string().contains(&$text as &str), "{error}");
    };
}

mod errors;
mod versions;

#[test]
fn ranges_come_in_order_over_few_connections() {
    let (server, data) = (server(|_, _| None), data());
    let url = server.url("folder/a%20b.fits?id=7");
    let source = open(&url).unwrap();
    assert_eq!(source.url(), url);
    assert_eq!((source.len(), source.version().tag.as_str()), (SIZE as u64, "\"one\""));
    assert!(!source.is_local());
    let mut buffer = [0; 500];
    source.read_exact_at(99_500, &mut buffer).unwrap();
    assert_eq!(buffer, data[99_500..]);
    let ranges = [95_005..95_010, 0..100_000, 7..7, 90_000..100_000, 5..10];
    for (range, bytes) in ranges.iter().zip(fetch(&*source, &ranges, 4).unwrap()) {
        assert_eq!(bytes, data[range.start as usize..range.end as usize]);
    }
    assert!(fetch(&*source, &[], 4).unwrap().is_empty());
    let requests = server.requests();
    // Opening, the end and the whole are asked for. While the whole is in flight, a part of it is
    // not; one that started before it is.
    let count = requests.len();
    assert!((3..=5).contains(&count), "an empty range and what opening brought: {count} requests");
    assert_eq!(requests[0].target, "/folder/a%20b.fits?id=7");
    assert!(requests.iter().all(|request| request.header("accept-encoding") == Some("identity")));
    assert!(requests[1..].iter().all(|request| request.header("if-match") == Some("\"one\"")));
    assert!(server.connections() <= 5, "{} connections", server.connections());
}

/// A server that closes the connection instead of an answer to some requests, by their numbers.
fn server_that_closes(closes: fn(usize) -> bool) -> Server {
    let nothing = Reply { bytes: Vec::new(), then: ConnectionEnd::Close };
    server(move |_, number| closes(number).then(|| nothing.clone()))
}

#[test]
fn a_measurement_goes_on_when_an_idle_connection_is_closed_as_it_is_used() {
    let server = server_that_closes(|number| number == 1);
    let timings = open(&server.url("a")).unwrap().measure(&[0..1000], 1, false).unwrap();
    assert_eq!(timings.iter().map(|timing| timing.bytes).collect::<Vec<_>>(), [1000]);
    assert_eq!(server.requests().len(), 3);
    let server = server_that_closes(|number| number > 0);
    let error = open(&server.url("a")).unwrap().measure(&[0..1000], 1, false).unwrap_err();
    assert_error!(error, Network, "closed");
}

#[test]
fn as_many_ranges_are_in_flight_as_asked_for() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (peak, limit) = (most.clone(), Instant::now() + Duration::from_secs(60));
    let server = server(move |_, number| {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Until all requests have arrived, besides the one for opening; and one more might.
        while number > 0 && most.load(Ordering::SeqCst) < 8 && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(50));
        now.fetch_sub(1, Ordering::SeqCst);
        None
    });
    let source = open(&server.url("a.fits")).unwrap();
    let ranges: Vec<_> = (50..74).map(|i| i * 1000..i * 1000 + 700).collect();
    let (pieces, data) = (fetch(&*source, &ranges, 8).unwrap(), data());
    assert!(
        ranges
            .iter()
            .zip(pieces)
            .all(|(range, bytes)| { bytes == data[range.start as usize..range.end as usize] })
    );
    assert_eq!(peak.load(Ordering::SeqCst), 8);
}

#[test]
fn many_threads_read_at_once() {
    let (server, data) = (server(|_, _| None), data());
    let source = open(&server.url("a.fits")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let (source, data) = (&source, &data);
            scope.spawn(move || {
                for i in 0..10 {
                    let start = 50_000 + thread * 1000 + i;
                    let mut buffer = [0; 100];
                    source.read_exact_at(start as u64, &mut buffer).unwrap();
                    assert_eq!(buffer, data[start..start + 100]);
                }
            });
        }
    });
}

#[test]
fn ranges_past_the_end_are_short_and_not_asked_for() {
    let server = server(|_, _| None);
    let source = open(&server.url("a.fits")).unwrap();
    assert_error!(source.read_exact_at(99_999, &mut [0; 2]).unwrap_err(), ShortRead, "found 1");
    #[allow(clippy::reversed_empty_ranges)]
    for range in [u64::MAX - 1..u64::MAX, 5..4] {
        assert_error!(fetch(&*source, &[range], 4).unwrap_err(), ShortRead, "expected");
    }
    source.read_exact_at(u64::MAX, &mut [0; 2]).unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn the_first_bytes_come_with_opening() {
    let server = server(|_, _| None);
    let source = open(&server.url("a.fits")).unwrap();
    let first = source.first();
    assert_eq!(first, data()[..first.len()]);
    let mut buffer = [0; 10];
    source.read_exact_at(10, &mut buffer).unwrap();
    assert_eq!(buffer, data()[10..20]);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].range(), Some((0, first.len() - 1)));
}

#[test]
fn an_assumed_version_asks_nothing_and_is_checked_by_the_first_read() {
    let server = server(|_, _| None);
    let url = server.url("a.fits");
    let version = open(&url).unwrap().version().clone();
    let before = server.requests().len();
    let assume = |version| swathe_store::stores(Vec::new()).assume(&url, version).unwrap();
    let source = assume(version.clone()).unwrap();
    assert_eq!(server.requests().len(), before);
    let mut buffer = [0; 10];
    source.read_exact_at(10, &mut buffer).unwrap();
    assert_eq!(buffer, data()[10..20]);
    let other = assume(Version { tag: "\"two\"".into(), ..version.clone() }).unwrap();
    assert_error!(other.read_exact_at(10, &mut buffer).unwrap_err(), Changed, "\"two\"");
    let larger = assume(Version { size: 100_001, ..version.clone() }).unwrap();
    assert_error!(larger.read_exact_at(10, &mut buffer).unwrap_err(), Changed, "100001");
    assert!(assume(Version { tag: "Mon".into(), ..version }).is_none());
}

#[test]
fn an_empty_object_is_empty() {
    let server = Server::start(|request, _| good(request, b"", ETAG));
    let source = open(&server.url("a.fits")).unwrap();
    assert_eq!(source.len(), 0);
    source.read_exact_at(0, &mut []).unwrap();
}

#[test]
fn a_server_without_ranges_is_named_so_and_nothing_is_downloaded() {
    // The body never comes: waiting for it would stall.
    let whole =
        || Reply { then: ConnectionEnd::Hang, ..raw("200 OK\nContent-Length: 100000", b"") };
    let began = Instant::now();
    assert_error!(read_error(&reads(move |_| whole())), Unsupported, "does not serve ranges");
    let server = Server::start(move |_, _| whole());
    assert_error!(open_error(&server.url("a.fits")), Unsupported, "does not serve ranges");
    assert!(began.elapsed() < Duration::from_secs(30));
    let small = Server::start(|_, _| reply("200 OK", &[7; 100]));
    let source = open(&small.url("a.fits")).unwrap();
    assert_eq!((source.len(), source.first()), (100, vec![7; 100].into()));
}

#[test]
fn a_server_of_this_machine_is_known_as_one() {
    let bucket = |name: &str, endpoint: &str| {
        let options = [("endpoint".to_string(), endpoint.to_string())].into();
        StoreSettings::new(name.into(), format!("s3://{name}"), options)
    };
    let stores = swathe_store::stores(vec![
        bucket("near", "http://127.0.0.1:9"),
        bucket("far", "http://10.0.0.1:9"),
    ]);
    for here in ["http://localhost/a", "https://127.8.9.1:80/a", "root://[::1]:1094//a", "near:a"] {
        assert!(stores.is_served_here(here), "{here}");
    }
    for elsewhere in ["http://localhost.org/a", "https://[::2]/a", "far:a", "/a", "relative"] {
        assert!(!stores.is_served_here(elsewhere), "{elsewhere}");
    }
}

#[test]
fn what_is_measured_is_filed_by_server() {
    let key = |root: &str, options: &[(&str, &str)]| {
        let options = options.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        connect(StoreSettings::new("named".into(), root.into(), options)).key()
    };
    for (root, options, expected) in [
        ("s3://b/dr1", ("endpoint", "http://[::1]:9000"), "s3://[::1]:9000/b/dr1"),
        ("gs://b", ("endpoint", "https://Gcs.example/x/"), "gs://gcs.example:443/x/b"),
        ("az://b", ("account", "survey"), "az://survey.blob.core.windows.net:443/b"),
        ("root://host//a", ("door", "http://door.example"), "root://door.example:80//a"),
        ("root://host", ("door", "https://host:8443"), "root://host:8443"),
        ("root://host//a", ("token_file", "/token"), "root://host//a"),
        ("https://host/a", ("token_file", "/token"), "https://host/a"),
        ("file:///a b", ("probe_object", "a"), "file:///a b"),
    ] {
        assert_eq!(key(root, &[options]), expected);
    }
    let costs = [("https://host/a", 0.25), ("https://host", 0.5), ("file://", 0.125)];
    let costs = costs.map(|(root, open_s)| (root.to_string(), Costs { open_s, ..Costs::remote() }));
    let store = StoreSettings::new("named".into(), "https://host/a/b".into(), BTreeMap::new());
    let stores = swathe_store::stores(vec![store]).with_costs(costs.into());
    for (object, key, open_s) in [
        ("https://host/x", "https://host", Some(0.5)),
        ("https://host/ab", "https://host", Some(0.5)),
        ("https://host/a/c", "https://host/a", Some(0.25)),
        ("named:c", "https://host/a/b", None),
        ("https://host/a/b/c", "https://host/a/b", None),
        ("https://host.org/a/c", "https://host.org", None),
        ("/a/c", "file://", Some(0.125)),
        ("file:///a/c", "file://", Some(0.125)),
    ] {
        let (store, _) = stores.locate(object);
        assert_eq!(store.key(), key, "{object}");
        let settings = store.settings();
        assert_eq!(settings.is_measured.then_some(settings.costs.open_s), open_s, "{object}");
    }
}

#[test]
fn a_server_that_falls_silent_is_an_error_in_time() {
    let silences = [
        Reply { bytes: vec![], then: ConnectionEnd::Hang },
        Reply { then: ConnectionEnd::Hang, ..raw(&format!("{PART}\nContent-Length: 10"), b"") },
        Reply {
            then: ConnectionEnd::Hang,
            ..raw("500 No\nContent-Length: 9\nContent-Type: text/plain", b"a")
        },
    ];
    for (i, silence) in silences.into_iter().enumerate() {
        let server = reads(move |_| silence.clone());
        let source = open_with_stall(&server.url("a"), Duration::from_millis(300)).unwrap();
        let began = Instant::now();
        let error = source.read_exact_at(AT, &mut [0; 10]).unwrap_err();
        let reason = if i < 2 { "sent nothing for 0.3 s" } else { "answered 500" };
        assert_error!(error, Network, format!("127.0.0.1:{} {reason}", server.port));
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[test]
fn a_slow_server_is_waited_for() {
    let server = reads(|request| {
        std::thread::sleep(Duration::from_millis(200));
        good(request, &data(), ETAG)
    });
    let source = open_with_stall(&server.url("a"), Duration::from_millis(2000)).unwrap();
    let ranges: Vec<_> = (AT..AT + 24).map(|i| i..i + 5).collect();
    fetch(&*source, &ranges, 8).unwrap();
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let target = server(|_, _| None);
    let to = target.url("real.fits?token=SECRETTOKEN");
    let start = Server::start(move |_, _| reply(&format!("302 Found\nLocation: {to}"), b""));
    let url = start.url("a.fits?key=SECRETKEY").replace("http://", "http://me:SECRETPASS@");
    let source = open(&url).unwrap();
    let mut buffer = [0; 100];
    source.read_exact_at(AT, &mut buffer).unwrap();
    assert_eq!(buffer, data()[90_010..90_110]);
    assert!(start.requests().iter().all(|request| request.header("authorization").is_some()));
    for request in target.requests() {
        assert_eq!(request.header("referer"), None);
        assert_eq!(request.header("authorization"), None);
        assert!([Some(0), Some(90_010)].contains(&request.range().map(|range| range.0)));
    }
    let circle = Server::start(|_, _| reply("302 Found\nLocation: /again?token=SECRETTOKEN", b""));
    let error = open_error(&circle.url("a"));
    assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    assert_error!(error, Network, "redirect");
    assert!(circle.requests().len() <= 6);
}

#[test]
fn compressed_answers_are_refused() {
    let always = Server::start(|_, _| reply("200 OK\nContent-Encoding: gzip", &[0; 10]));
    assert_error!(open_error(&always.url("a")), Unsupported, "Content-Encoding gzip");
    let later = reads(|_| reply(&format!("{PART}\nContent-Encoding: br"), &[0; 10]));
    assert_error!(read_error(&later), Unsupported, "Content-Encoding br");
    let server = reads(|_| reply(&format!("{PART}\nContent-Encoding: x-gzip"), &[0; 10]));
    open(&server.url("a.fit.gz")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
    let identity = reads(|_| reply(&format!("{PART}\nContent-Encoding: identity"), &[0; 10]));
    open(&identity.url("a")).unwrap().read_exact_at(AT, &mut [0; 10]).unwrap();
}

#[test]
fn secrets_of_the_url_are_sent_but_never_shown() {
    let secret_url = |url: String| {
        url.replace("http://", "http://USER:SE%2FCRETPASS@")
            + "?id=5&X-Amz-Signature=SECRETSIGNATURE&token=SECRET%2Btoken#SECRETPART"
    };
    // A server that repeats what it was sent.
    let echo = |status: &'static str| {
        move |request: &Request| {
            let text = format!("cannot serve {} to USER SE/CRETPASS SECRET+token", request.target);
            reply(&format!("{status}\nContent-Type: text/plain"), text.as_bytes())
        }
    };
    let check = |source: Result<Arc<dyn Source>, StoreError>| {
        let error = source
            .and_then(|source| {
                assert!(!source.url().contains("SECRET"), "{}", source.url());
                assert!(source.url().contains("?id=5&X-Amz-Signature=...&token=..."));
                source.read_exact_at(AT, &mut [0; 10])
            })
            .unwrap_err();
        for text in [error.to_string(), format!("{error:?}")] {
            for secret in ["SECRET", "USER", "CRETPASS"] {
                assert!(!text.contains(secret), "{text}");
            }
            assert!(text.contains("127.0.0.1") || text.contains("://..."), "{text}");
        }
    };
    let statuses =
        ["400 Bad", "401 No", "403 No", "404 No", "412 No", "416 No", "418 No", "500 No"];
    for status in statuses {
        let (on_open, on_read) = (echo(status), reads(echo(status)));
        let on_open = Server::start(move |request, _| on_open(request));
        check(open(&secret_url(on_open.url("a"))));
        check(open(&secret_url(on_read.url("a"))));
        assert_eq!(on_read.requests()[0].header("authorization").unwrap()[..6], *"Basic ");
        assert!(on_read.requests()[0].target.contains("token=SECRET%2Btoken"));
    }
    let garbage =
        Server::start(|_, _| Reply { bytes: b"nonsense\r\n".into(), then: ConnectionEnd::Close });
    check(open(&secret_url(garbage.url("a"))));
    check(open(&secret_url(garbage.url("a")).replace("http://", "https://")));
    check(open(&secret_url("http://127.0.0.1:1/".into())));
    check(open("http://USER:SECRET/PASS@127.0.0.1/a"));
    check(open("http://USER:SECRET@127.0.0.1:99999/a"));
    check(open("ftp://USER:SECRET@127.0.0.1/a"));
    check(open("s3://USER:SECRET@127.0.0.1/a"));
}

#[test]
fn objects_told_apart_by_a_hidden_word_have_different_versions() {
    let server = Server::start(|request, _| good(request, &[0; 9], "Last-Modified: Mon"));
    let version = |key| open(&server.url(&format!("get?key={key}"))).unwrap().version().clone();
    assert_ne!(version("a"), version("b"));
    assert_eq!(version("a"), version("a"));
}
