//! Blocks of peers are the server's bytes, or they are not used.

use super::tests::*;
use super::*;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use swathe_trace::testing::record_trace;

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TOKEN: &str = "hush-hush";
const ALL: [Range<u64>; 1] = [0..SIZE as u64];

/// Blocks that hold an object, and serve it.
fn holder(seed: u32, ranges: &[Range<u64>]) -> (tempfile::TempDir, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    read(&cached_source(object(seed), &blocks), ranges);
    let address = blocks.serve(LOCALHOST, TOKEN, None).unwrap();
    (folder, address)
}

/// Blocks that hold nothing.
fn empty() -> (tempfile::TempDir, Arc<BlockCache>) {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    blocks.use_peers(None).unwrap();
    (folder, blocks)
}

/// Blocks that hold nothing, and ask this one.
fn asker(address: SocketAddr, token: &str) -> (tempfile::TempDir, Arc<BlockCache>) {
    let (folder, blocks) = empty();
    blocks.set_peers("store:a", vec![(format!("http://{address}"), token.to_string())]);
    (folder, blocks)
}

/// Change a byte of each file of blocks.
fn damage(folder: &tempfile::TempDir) {
    for path in files(folder) {
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - 1000;
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
}

/// Read all of an object; returns the traffic of the server, that of peers, and the warnings.
fn all(seed: u32, blocks: &Arc<BlockCache>) -> (Traffic, TrafficCount, Vec<String>) {
    let source = cached_source(object(seed), blocks);
    assert_right(seed, &ALL, &read(&source, &ALL));
    let Traffic { bytes, requests, from_peers, .. } = source.take_traffic();
    (traffic(bytes, requests), from_peers, source.take_notes())
}

fn whole() -> Traffic {
    traffic(SIZE as u64, 1)
}

#[test]
fn what_a_peer_has_is_not_asked_of_the_server_and_kept() {
    let (_folder, address) = holder(1, &ALL);
    let (_folder, blocks) = asker(address, TOKEN);
    let (server, peers, notes) = all(1, &blocks);
    assert_eq!((server, notes), (traffic(0, 0), vec![]));
    assert_eq!(peers.requests, 1);
    assert!((SIZE as u64..SIZE as u64 + 1000).contains(&peers.bytes));
    assert_eq!(blocks.cached_bytes("store:a"), SIZE as u64);
    blocks.set_peers("store:a", Vec::new());
    let source = cached_source(object(1), &blocks);
    assert_right(1, &ALL, &read(&source, &ALL));
    let cache = TrafficCount { bytes: SIZE as u64, requests: 3 };
    assert_eq!(source.take_traffic(), Traffic { from_cache: cache, ..Traffic::default() });
}

#[test]
fn what_a_peer_lacks_is_asked_of_the_server() {
    let (_folder, address) = holder(1, &[0..CELL_BYTES, CELL_BYTES + 5000..CELL_BYTES + 9000]);
    let (_folder, blocks) = asker(address, TOKEN);
    let (server, _, notes) = all(1, &blocks);
    assert_eq!(notes, Vec::<String>::new());
    assert_eq!(server, traffic(SIZE as u64 - CELL_BYTES - 4000, 2));
}

#[test]
fn a_store_that_is_nearer_is_asked() {
    let (_folder, address) = holder(1, &ALL);
    let (_folder, blocks) = asker(address, TOKEN);
    let mut source = object(1);
    source.costs = Costs::local();
    let source = cached_source(source, &blocks);
    assert_right(1, &ALL, &read(&source, &ALL));
    assert_eq!(source.take_traffic(), whole());
}

#[test]
fn another_version_is_never_mixed_in() {
    let (_folder, address) = holder(1, &ALL);
    let (_folder, blocks) = asker(address, TOKEN);
    let (server, peers, notes) = all(2, &blocks);
    assert_eq!((server, notes), (whole(), vec![]));
    assert_eq!(peers.bytes, 0);
}

#[test]
fn damaged_blocks_are_refused_and_the_peer_is_not_asked_again() {
    let (folder, address) = holder(1, &ALL);
    damage(&folder);
    let (folder, blocks) = asker(address, TOKEN);
    let (server, peers, notes) = all(1, &blocks);
    assert_eq!((server, peers.requests), (whole(), 1));
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.contains("http://host/a: the worker at http://127.0.0.1:"), "{note}");
    assert!(!note.contains(TOKEN));
    fs::remove_dir_all(folder.path().join("blocks")).unwrap();
    let (server, peers, notes) = all(1, &blocks);
    assert_eq!((server, peers, notes), (whole(), TrafficCount::default(), vec![]));
}

#[test]
fn blocks_in_the_place_of_others_are_refused() {
    let (folder, address) = holder(1, &ALL);
    let paths = files(&folder);
    let bytes: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    for (at, path) in paths.iter().enumerate() {
        fs::write(path, &bytes[(at + 1) % bytes.len()]).unwrap();
    }
    let (_folder, blocks) = asker(address, TOKEN);
    let (server, _, notes) = all(1, &blocks);
    assert_eq!((server, notes.len()), (whole(), 1));
}

#[test]
fn who_has_another_token_gets_nothing() {
    let (_folder, address) = holder(1, &ALL);
    let (_folder, blocks) = asker(address, "hush-husj");
    let (server, peers, notes) = all(1, &blocks);
    assert_eq!((server, peers.bytes, notes.len()), (whole(), 0, 1));
}

#[test]
fn why_a_peer_gave_nothing_is_told() {
    let (_folder, address) = holder(1, &ALL);
    let (_folder, blocks) = asker(address, "hush-husj");
    let text = record_trace(tempfile::tempdir().unwrap().path(), || _ = all(1, &blocks));
    let peer = format!("PEER=http://{address}");
    let of_peer = |name: &str| {
        let name = format!("NL.EVNT={name} ");
        let mut lines = text.lines().filter(|line| line.contains(&name) && line.contains(&peer));
        lines.next().unwrap_or_else(|| panic!("{name}: {text}"))
    };
    assert!(of_peer("PEER_END").ends_with("RESULT=error REASON=\"it does not know us\""), "{text}");
    let ends = of_peer("CONNECT_END");
    assert!(ends.ends_with(&format!(" SERVER={address} RESULT=ok")), "{ends}");
}

#[test]
fn a_peer_that_is_away_is_not_asked_again() {
    // Not one that was free just now: anybody may have it by then.
    let (folder, blocks) = asker(SocketAddr::new(LOCALHOST, 1), TOKEN);
    let (server, peers, notes) = all(1, &blocks);
    assert_eq!((server, peers.bytes, notes), (whole(), 0, vec![]));
    assert!(!blocks.peers.any("store:a"));
    fs::remove_dir_all(folder.path().join("blocks")).unwrap();
    assert_eq!(all(1, &blocks).1, TrafficCount::default());
}

/// A peer that sends this, whatever the request, and then either closes or waits.
fn false_peer(says: Vec<u8>, closes: bool) -> SocketAddr {
    let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&says);
            if !closes {
                open.push(stream);
            }
        }
    });
    address
}

fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn false_peers_are_seen_through() {
    let endless = u32::MAX.to_le_bytes();
    let cases: [(Vec<u8>, bool, usize); 9] = [
        (b"no HTTP at all\r\n\r\n".to_vec(), true, 0),
        (Vec::new(), false, 0),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".to_vec(), false, 0),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec(), true, 0),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://host/\r\nContent-Length: 0\r\n\r\n".to_vec(),
            true,
            1,
        ),
        (answer(b""), true, 1),
        (answer(&endless), true, 1),
        (answer(&[4, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]), true, 1),
        (answer(&[0; 13]), true, 1),
    ];
    for (says, closes, warnings) in cases {
        let answer = String::from_utf8_lossy(&says).into_owned();
        let (_folder, blocks) = asker(false_peer(says, closes), TOKEN);
        let (server, _, notes) = all(1, &blocks);
        assert_eq!((server, notes.len()), (whole(), warnings), "{answer:?}: {notes:?}");
    }
}

#[test]
fn a_disk_that_takes_nothing_does_not_ask() {
    let (_folder, address) = holder(1, &ALL);
    let (folder, blocks) = asker(address, TOKEN);
    fs::write(folder.path().join("blocks"), b"no folder").unwrap();
    assert_eq!(all(1, &blocks).0, whole());
    assert_eq!(all(1, &blocks).1, TrafficCount::default());
}

#[test]
fn the_time_when_bytes_came_comes_along() {
    let (folder, address) = holder(1, &[]);
    let long_ago = Cells::of(
        blocks(&folder, LIMIT),
        cached_source(object(1), &blocks(&folder, LIMIT)).cells.object().clone(),
    );
    let file = |number: u64, came_s: u64| {
        let length = SIZE as u64 - number * CELL_BYTES;
        let data = data(1)[(number * CELL_BYTES) as usize..].to_vec();
        let data = Bytes::from(data).slice(..length.min(CELL_BYTES) as usize);
        long_ago.store(number, &[(0, data)], came_s);
    };
    // In the future counts as now.
    file(0, 1000);
    file(1, u64::MAX);
    file(2, u64::MAX);
    let (_folder, blocks) = asker(address, TOKEN);
    let source = CachedSource::new(Arc::new(object(1)), "store:a", blocks.clone(), false);
    assert_right(1, &ALL, &read(&source, &ALL));
    assert_eq!(of_server(&source), traffic(1, 1), "whether it has changed since");
}

/// The first line of an answer.
fn response(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_string()
}

#[test]
fn nothing_else_is_answered() {
    let (_folder, address) = holder(1, &ALL);
    let digest = "0".repeat(32);
    let many = vec![digest.clone(); 17].join(",");
    let cases = [
        (format!("GET /blocks/{digest}"), TOKEN, "200"),
        (format!("GET /blocks/{digest}"), "", "401"),
        (format!("GET /blocks/{digest}"), "hush", "401"),
        ("GET /etc/passwd".to_string(), "hush", "401"),
        ("GET /".to_string(), TOKEN, "404"),
        (format!("GET /blocks/{digest}?x"), TOKEN, "404"),
        ("GET /blocks/".to_string(), TOKEN, "400"),
        ("GET /blocks/../usage".to_string(), TOKEN, "400"),
        ("GET /blocks/+0000000000000000000000000000001".to_string(), TOKEN, "400"),
        (format!("GET /blocks/{digest}/"), TOKEN, "400"),
        (format!("GET /blocks/{many}"), TOKEN, "400"),
        (format!("PUT /blocks/{digest}"), TOKEN, "405"),
        (format!("DELETE /blocks/{digest}"), TOKEN, "405"),
        (format!("GET /blocks/{}", "0".repeat(40_000)), TOKEN, "431"),
    ];
    for (line, token, status) in cases {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        let text = response(address, &request);
        assert!(text.contains(status), "{line}: {text}");
    }
}

/// What a holder says of an object.
fn describe(folder: &tempfile::TempDir, seed: u32) -> ObjectDescription {
    let blocks = blocks(folder, LIMIT);
    cached_source(object(seed), &blocks);
    blocks.describe("store:a").unwrap()
}

fn pull(
    blocks: &Arc<BlockCache>,
    description: &ObjectDescription,
    address: SocketAddr,
    limit: Duration,
) -> PullResult {
    let peers = vec![(format!("http://{address}"), TOKEN.to_string())];
    blocks.pull("store:a", description, peers, limit, true)
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn what_is_pulled_is_read_from_here_although_nobody_had_opened_it() {
    let (folder, address) = holder(1, &ALL);
    let (_folder, heir) = empty();
    let description = describe(&folder, 1);
    assert_eq!(description.cells, [0, 1, 2]);
    let result = pull(&heir, &description, address, LONG);
    assert!((SIZE as u64..SIZE as u64 + 1000).contains(&result.bytes));
    assert_eq!(heir.cached_bytes("store:a"), SIZE as u64);
    assert_eq!(result.blocks, 3);
    assert_eq!(pull(&heir, &description, address, LONG), PullResult::default(), "it is here");
    assert_eq!(all(1, &heir).0, traffic(0, 0));
    assert!(heir.peer_costs().is_some_and(|(begun_s, rate)| begun_s > 0.0 && rate > 1e6));
}

#[test]
fn what_is_known_at_another_version_is_not_pulled() {
    let (folder, address) = holder(1, &ALL);
    let description = describe(&folder, 1);
    let (_folder, heir) = empty();
    cached_source(object(2), &heir);
    assert_eq!(pull(&heir, &description, address, LONG), PullResult::default());
    // A peer with blocks of another object: nothing is stored.
    let lies = ObjectDescription { object: "of another".into(), ..description };
    let (_folder, heir) = empty();
    pull(&heir, &lies, address, LONG);
    assert_eq!(heir.cached_bytes("store:a"), 0);
}

#[test]
fn damaged_blocks_are_not_pulled() {
    let (folder, address) = holder(1, &ALL);
    damage(&folder);
    let (_folder, heir) = empty();
    pull(&heir, &describe(&folder, 1), address, LONG);
    assert_eq!(heir.cached_bytes("store:a"), 0);
    assert_eq!(all(1, &heir).0, whole());
}

#[test]
fn pulling_ends_in_time_whatever_the_peer_does() {
    let (folder, _) = holder(1, &ALL);
    let description = describe(&folder, 1);
    for (says, closes) in [(Vec::new(), false), (answer(&[4, 0, 0, 0, 1]), false)] {
        let (_folder, heir) = empty();
        let began = std::time::Instant::now();
        let traffic =
            pull(&heir, &description, false_peer(says, closes), Duration::from_millis(300));
        assert_eq!(traffic, PullResult::default());
        assert!(began.elapsed() < LONG);
        assert_eq!(heir.cached_bytes("store:a"), 0);
    }
}

#[test]
fn a_copy_of_what_a_peer_has_goes_before_what_only_the_store_has() {
    let (_folder, address) = holder(1, &ALL);
    let (_folder, heir) = asker(address, TOKEN);
    all(1, &heir);
    let cells = cached_source(object(1), &heir).cells;
    let copy_s = cells.refetch_s(CELL_BYTES);
    heir.set_peers("store:a", Vec::new());
    assert!(copy_s < cells.refetch_s(CELL_BYTES) / 2.0);
}

/// Connections that say nothing keep nobody away, and are closed before long.
#[test]
fn who_says_nothing_makes_room() {
    let (_folder, address) = holder(1, &ALL);
    let silent: Vec<_> = (0..400)
        .map(|number| {
            let mut stream = TcpStream::connect(address).unwrap();
            if number % 2 == 0 {
                let _ = stream.write_all(b"GET /blocks/0 HTTP/1.1\r\nHost: x\r\n");
            }
            stream
        })
        .collect();
    let (_folder, blocks) = asker(address, TOKEN);
    let (server, peers, notes) = all(1, &blocks);
    assert_eq!((server, notes), (traffic(0, 0), vec![]));
    assert!(peers.bytes >= SIZE as u64);
    // The last of them had room of its own until the end.
    let mut last = silent.last().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(last.read(&mut [0; 10]).unwrap_or(0), 0, "it is closed");
}
