//! What requests took corrects the costs of their store, in this process.

mod server;

use server::{ConnectionEnd, Server, good, raw};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use swathe_plan::{Costs, Curve, Factors};
use swathe_store::connect;
use swathe_store_api::{ObjectName, Source, Store, StoreSettings};

const SIZE: usize = 400_000;
const ETAG: &str = "ETag: \"one\"";

fn store(server: &Server, costs: &Costs) -> Arc<dyn Store> {
    let root = server.url("").trim_end_matches('/').to_string();
    connect(StoreSettings::new("web".into(), root, BTreeMap::new()).with_costs(costs))
}

fn source(server: &Server, store: &dyn Store) -> Arc<dyn Source> {
    let url = server.url("a.fits");
    store.open(ObjectName { url: &url, qualified_name: None }).unwrap()
}

#[test]
fn a_server_that_answers_later_than_its_profile_says_is_known() {
    let server = Server::start(|request, _| {
        std::thread::sleep(Duration::from_millis(150));
        good(request, &[7; SIZE], ETAG)
    });
    // 20 ms until an answer begins.
    let costs = Costs::remote();
    let store = store(&server, &costs);
    let source = source(&server, &*store);
    assert_eq!(source.factors(), Factors::default(), "opening is no evidence");
    for at in 0..6 {
        let piece = source.fetch(vec![100_000 + at..101_000 + at], 1).next();
        assert_eq!(piece.unwrap().unwrap().len(), 1000);
    }
    let factors = source.factors();
    assert!(factors.latency > 5.0 && factors.line == 1.0, "{factors:?}");
    // By other costs that is as it should be; and another store is another link.
    let other = Costs { request: Curve::affine(0.15, 12.5e6), ..Costs::remote() };
    let reader = self::source(&server, &*self::store(&server, &other));
    assert_eq!(reader.factors(), Factors::default());
    let elsewhere = Server::start(|request, _| good(request, &[7; SIZE], ETAG));
    let reader = self::source(&elsewhere, &*self::store(&elsewhere, &costs));
    assert_eq!(reader.factors(), Factors::default());
}

#[test]
fn a_reader_that_takes_long_for_the_bytes_is_no_slow_link() {
    let server = Server::start(|request, _| good(request, &[7; SIZE], ETAG));
    // Slower than any machine that runs this.
    let costs =
        Costs { request: Curve::affine(5.0, 1e4), total_bytes_per_s: 1e4, ..Costs::remote() };
    let store = store(&server, &costs);
    let source = source(&server, &*store);
    let ranges = (1..4).map(|at| at * 100_000..at * 100_000 + 90_000).collect();
    for piece in source.fetch(ranges, 3) {
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(piece.unwrap().len(), 90_000);
    }
    let factors = source.factors();
    assert!(factors.line <= 1.0 && factors.latency <= 1.0, "{factors:?}");
}

#[test]
fn requests_that_fail_are_no_evidence() {
    let server = Server::start(|request, number| match number {
        0 => good(request, &[7; SIZE], ETAG),
        _ => {
            std::thread::sleep(Duration::from_millis(200));
            let end = ConnectionEnd::Close;
            server::Reply { then: end, ..raw("404 Not Found\nContent-Length: 0", b"") }
        }
    });
    let store = store(&server, &Costs::remote());
    let source = source(&server, &*store);
    for _ in 0..4 {
        assert!(source.fetch(vec![100_000..101_000], 1).next().unwrap().is_err());
    }
    assert_eq!(source.factors(), Factors::default());
}
