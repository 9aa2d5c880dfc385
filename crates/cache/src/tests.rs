use super::*;
use proptest::prelude::*;
use std::fs;
use std::sync::atomic::AtomicU64;
use swathe_plan::{Curve, Way};

pub(super) const SIZE: usize = 700_000;
pub(super) const LIMIT: u64 = 1 << 30;

/// An object that counts its requests.
pub(super) struct CountingSource {
    key: &'static str,
    data: Arc<Vec<u8>>,
    pub(super) version: Version,
    pub(super) costs: Costs,
    bytes: AtomicU64,
    requests: AtomicU64,
    fails: AtomicBool,
    /// Larger requests fail.
    pub(super) most_bytes: u64,
    pub(super) identity: Option<u64>,
}

impl Source for CountingSource {
    fn url(&self) -> &str {
        "http://host/a"
    }

    fn key(&self) -> &str {
        self.key
    }

    fn identity(&self) -> Option<u64> {
        self.identity
    }

    fn version(&self) -> &Version {
        &self.version
    }

    fn is_local(&self) -> bool {
        false
    }

    fn costs(&self) -> &Costs {
        &self.costs
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let range = offset..offset + buffer.len() as u64;
        buffer.copy_from_slice(&self.fetch(vec![range], 1).next().unwrap()?);
        Ok(())
    }

    fn fetch_by(&self, requests: Vec<Range<u64>>, _: Way) -> Pieces {
        let is_large = requests.iter().any(|range| range.end - range.start > self.most_bytes);
        if is_large || self.fails.load(Ordering::Relaxed) {
            let (url, version) = (self.url().into(), self.version.to_string());
            return Box::new(std::iter::once(Err(StoreError::Changed { url, version })));
        }
        self.requests.fetch_add(requests.len() as u64, Ordering::Relaxed);
        let bytes: u64 = requests.iter().map(|range| range.end - range.start).sum();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let data = self.data.clone();
        Box::new(requests.into_iter().map(move |range| {
            Ok(Bytes::copy_from_slice(&data[range.start as usize..range.end as usize]))
        }))
    }

    fn take_traffic(&self) -> Traffic {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        traffic(take(&self.bytes), take(&self.requests))
    }

    fn measure(&self, _: &[Range<u64>], _: u32, _: bool) -> Result<Vec<RequestTiming>, StoreError> {
        Ok(Vec::new())
    }
}

pub(super) fn data(seed: u32) -> Arc<Vec<u8>> {
    let byte = |i: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 77) >> 13) as u8;
    Arc::new((0..SIZE as u32).map(byte).collect())
}

pub(super) fn object(seed: u32) -> CountingSource {
    CountingSource {
        key: "http://host/a",
        data: data(seed),
        version: Version { size: SIZE as u64, tag: format!("\"{seed}\"") },
        costs: Costs::remote(),
        bytes: AtomicU64::new(0),
        requests: AtomicU64::new(0),
        fails: AtomicBool::new(false),
        most_bytes: u64::MAX,
        identity: None,
    }
}

pub(super) fn blocks(folder: &tempfile::TempDir, limit: u64) -> Arc<BlockCache> {
    Arc::new(BlockCache::on(DiskCache::at(folder.path().join("blocks"), limit)))
}

pub(super) fn cached_source(inner: CountingSource, blocks: &Arc<BlockCache>) -> CachedSource {
    CachedSource::new(Arc::new(inner), "store:a", blocks.clone(), true)
}

pub(super) fn traffic(bytes: u64, requests: u64) -> Traffic {
    Traffic { bytes, requests, ..Traffic::default() }
}

pub(super) fn of_server(source: &CachedSource) -> Traffic {
    let Traffic { bytes, requests, .. } = source.take_traffic();
    traffic(bytes, requests)
}

pub(super) fn read(source: &CachedSource, ranges: &[Range<u64>]) -> Vec<Bytes> {
    source.fetch(ranges.to_vec(), 4).map(Result::unwrap).collect()
}

pub(super) fn assert_right(seed: u32, ranges: &[Range<u64>], pieces: &[Bytes]) {
    assert_eq!(ranges.len(), pieces.len());
    let data = data(seed);
    for (range, bytes) in ranges.iter().zip(pieces) {
        let expected = &data[range.start as usize..range.end as usize];
        assert!(bytes == expected, "{range:?} differs");
    }
}

pub(super) fn files(folder: &tempfile::TempDir) -> Vec<std::path::PathBuf> {
    let folders = fs::read_dir(folder.path().join("blocks")).unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.path().is_dir());
    folders
        .flat_map(|folder| fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()))
        .collect()
}

fn some_range() -> impl Strategy<Value = Range<u64>> {
    let length = prop_oneof![0..40u64, 0..6000u64, 0..400_000u64];
    (0..SIZE as u64, length).prop_map(|(at, length)| at..(at + length).min(SIZE as u64))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_reads_equal_the_object_and_ask_for_nothing_again(
        reads in prop::collection::vec(prop::collection::vec(some_range(), 0..6), 1..8)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let blocks = blocks(&folder, LIMIT);
        for _ in 0..2 {
            let source = cached_source(object(1), &blocks);
            for ranges in &reads {
                assert_right(1, ranges, &read(&source, ranges));
            }
        }
        let source = cached_source(object(1), &blocks);
        for ranges in reads.iter().map(|ranges| {
            let requests = ranges.iter().filter(|range| !range.is_empty());
            requests.cloned().collect::<Vec<_>>()
        }) {
            prop_assert!(source.at_hand(&ranges).is_some());
            assert_right(1, &ranges, &read(&source, &ranges));
        }
        prop_assert_eq!(of_server(&source), traffic(0, 0));
    }

    #[test]
    fn damaged_and_missing_blocks_are_never_served(
        ranges in prop::collection::vec(some_range(), 1..6),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), 0..4u8), 1..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let blocks = blocks(&folder, LIMIT);
        read(&cached_source(object(1), &blocks), &[0..SIZE as u64]);
        let files = files(&folder);
        for (which, at, how) in damages {
            let path = which.get(&files);
            let Ok(mut bytes) = fs::read(path) else { continue };
            let at = at as usize % bytes.len().max(1);
            match how {
                0 => bytes.truncate(at),
                1 => bytes[at..].fill(0),
                2 => { fs::remove_file(path).unwrap(); continue }
                _ => bytes[at] ^= 0x10,
            }
            fs::write(path, bytes).unwrap();
        }
        assert_right(1, &ranges, &read(&cached_source(object(1), &blocks), &ranges));
    }
}

#[test]
fn only_what_is_missing_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    let source = cached_source(object(1), &blocks);
    read(&source, &[100_000..400_000]);
    source.take_traffic();
    read(&source, &[99_000..401_000]);
    // A round trip costs as much as 250 kB: the cached part is less.
    assert_eq!(of_server(&source), traffic(2000, 2));
    read(&source, &[401_000..401_100, 402_000..402_100]);
    source.take_traffic();
    read(&source, &[401_000..402_100]);
    assert_eq!(of_server(&source), traffic(900, 1));
    read(&source, &[500_000..500_010, 600_000..600_010]);
    source.take_traffic();
    read(&source, &[499_990..600_020]);
    assert_eq!(of_server(&source), traffic(100_030, 1));
    assert!(source.at_hand(&[99_000..401_000]).is_some());
    assert_eq!(source.at_hand(&[99_000..403_000]), None);
    assert_eq!(source.at_hand(&[600_000..SIZE as u64 + 1]), None);
}

#[test]
fn another_version_is_another_object() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    let ranges = [10..50_000];
    for seed in [1, 2, 1] {
        assert_right(seed, &ranges, &read(&cached_source(object(seed), &blocks), &ranges));
    }
    let elsewhere = CountingSource { key: "s3://other:9000/a", ..object(1) };
    assert_eq!(cached_source(elsewhere, &blocks).at_hand(&ranges), None);
}

#[test]
fn the_limit_holds_whoever_writes() {
    let folder = tempfile::tempdir().unwrap();
    let limit = 1_200_000;
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                // As in another process.
                let blocks = blocks(folder, limit);
                let source = cached_source(object(seed), &blocks);
                for at in (0..600_000).step_by(30_000) {
                    let ranges = [at..at + 60_000, 0..10, at..at + 1];
                    assert_right(seed, &ranges, &read(&source, &ranges));
                    assert!(blocks.disk.usage().unwrap().bytes <= limit);
                }
            });
        }
    });
    assert!(blocks(&folder, limit).disk.usage().unwrap().bytes > limit / 2);
}

#[test]
fn what_several_bring_of_one_cell_stays() {
    let folder = tempfile::tempdir().unwrap();
    let places = |reader: u64| (0..60).map(move |i| 8_000 * reader + 130 * i);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                let source = cached_source(object(1), &blocks(folder, LIMIT));
                places(reader).for_each(|at| drop(read(&source, &[at..at + 100])));
            });
        }
    });
    let source = cached_source(object(1), &blocks(&folder, LIMIT));
    let ranges: Vec<_> = (0..4).flat_map(places).map(|at| at..at + 100).collect();
    assert!(source.at_hand(&ranges).is_some());
    assert_right(1, &ranges, &read(&source, &ranges));
}

#[test]
fn an_assumed_version_is_asked_about_when_its_blocks_are_old() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    let ranges = [300..400];
    read(&cached_source(object(1), &blocks), &ranges);
    let reopen = || CachedSource::new(Arc::new(object(1)), "store:a", blocks.clone(), false);
    let source = reopen();
    read(&source, &ranges);
    assert_eq!(of_server(&source), traffic(0, 0));
    let key = source.cells.key(0);
    let mut value = blocks.disk.get(&key).unwrap().to_vec();
    let fetched_at = SystemTime::now() - 2 * TRUST;
    let fetched_s = fetched_at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    value[..8].copy_from_slice(&fetched_s.to_le_bytes());
    blocks.disk.put(&key, &value).unwrap();
    let source = reopen();
    assert_eq!(source.at_hand(&ranges), Some(traffic(1, 1)));
    for _ in 0..2 {
        assert_right(1, &ranges, &read(&source, &ranges));
    }
    assert_eq!(of_server(&source), traffic(1, 1));
    let inner = object(1);
    inner.fails.store(true, Ordering::Relaxed);
    let source = CachedSource::new(Arc::new(inner), "store:a", blocks.clone(), false);
    let error = source.read_exact_at(300, &mut [0; 100]).unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
}

#[test]
fn a_disk_that_takes_nothing_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("blocks"), b"no folder").unwrap();
    let blocks = blocks(&folder, LIMIT);
    let source = cached_source(object(1), &blocks);
    for ranges in [[0..100], [300_000..500_000]] {
        assert_right(1, &ranges, &read(&source, &ranges));
    }
    let notes = source.take_notes();
    assert!(notes[0].contains("blocks") && notes.len() == 1, "{notes:?}");
    assert!(cached_source(object(1), &blocks).take_notes().is_empty());
}

#[test]
fn an_error_is_the_last_and_what_came_before_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    let source = cached_source(object(1), &blocks);
    read(&source, &[0..100]);
    let inner = object(1);
    inner.fails.store(true, Ordering::Relaxed);
    let source = cached_source(inner, &blocks);
    let pieces: Vec<_> = source.fetch(vec![0..100, 50..150, 0..10], 1).collect();
    assert_eq!(pieces.len(), 2);
    assert!(pieces[0].is_ok() && pieces[1].is_err());
}

#[test]
fn what_came_from_far_outlasts_what_came_from_near() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, 10 * SIZE as u64);
    let all = [0..SIZE as u64];
    let reader = |seed: u32, latency_s: f64, bytes_per_s: f64| {
        let mut inner = object(seed);
        inner.costs.request = Curve::affine(latency_s, bytes_per_s);
        let name = format!("store:{seed}");
        let source = CachedSource::new(Arc::new(inner), &name, blocks.clone(), true);
        assert_right(seed, &all, &read(&source, &all));
        source
    };
    let far = reader(1, 0.056, 20e6);
    (2..20).for_each(|seed| _ = reader(seed, 0.001, 100e6));
    assert!(far.at_hand(&all).is_some());
    assert!(reader(19, 0.001, 100e6).at_hand(&all).is_some());
    assert!((2..20).any(|seed| blocks.cached_bytes(&format!("store:{seed}")) == 0));
    // Not for ever.
    (20..800).for_each(|seed| _ = reader(seed, 0.001, 100e6));
    assert!(far.at_hand(&all).is_none());
}

#[test]
fn what_is_damaged_is_asked_for_in_few_requests() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    read(&cached_source(object(1), &blocks), &[0..SIZE as u64]);
    for path in files(&folder) {
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() - 1000;
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let rows: Vec<Range<u64>> = (0..600).map(|row| row * 1000..row * 1000 + 100).collect();
    let source = cached_source(object(1), &blocks);
    assert_eq!(source.at_hand(&rows), Some(traffic(0, 0)), "it looks as if all were there");
    assert_right(1, &rows, &read(&source, &rows));
    let Traffic { requests, .. } = source.take_traffic();
    assert!(requests <= 4, "{requests}");
    assert_right(1, &rows, &read(&source, &rows));
    assert_eq!(of_server(&source), traffic(0, 0), "what came is kept");
}

#[test]
fn of_damaged_and_sound_blocks_only_what_is_damaged_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = blocks(&folder, LIMIT);
    read(&cached_source(object(1), &blocks), &[0..SIZE as u64]);
    let last = files(&folder).into_iter().min_by_key(|path| fs::metadata(path).unwrap().len());
    fs::write(last.unwrap(), b"damaged").unwrap();
    let source = cached_source(object(1), &blocks);
    let ranges = [600_000..SIZE as u64, 0..10, 500_000..600_000, 650_000..650_001];
    assert_right(1, &ranges, &read(&source, &ranges));
    let Traffic { bytes, requests, .. } = source.take_traffic();
    assert!(requests <= 4 && bytes <= 2 * (SIZE as u64 - 2 * CELL_BYTES), "{requests} {bytes}");
}

#[test]
fn who_has_other_credentials_asks_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let cache = blocks(&folder, LIMIT);
    let ranges = [300..400, 300_000..300_001];
    let of = |identity, is_confirmed, blocks: &Arc<BlockCache>| {
        let inner = CountingSource { identity, ..object(1) };
        CachedSource::new(Arc::new(inner), "store:a", blocks.clone(), is_confirmed)
    };
    read(&of(Some(1), true, &cache), &[0..SIZE as u64]);
    // The same again, in the same process: within a minute no request is sent.
    let second = of(Some(1), false, &cache);
    assert_eq!(second.at_hand(&ranges), Some(traffic(0, 0)));
    assert_right(1, &ranges, &read(&second, &ranges));
    assert_eq!(of_server(&second), traffic(0, 0));
    // Another process that has the same credentials cannot know that, nor one that has none.
    for (identity, blocks) in [(Some(1), blocks(&folder, LIMIT)), (None, blocks(&folder, LIMIT))] {
        let source = of(identity, false, &blocks);
        assert_eq!(source.at_hand(&ranges), Some(traffic(1, 1)));
        assert_right(1, &ranges, &read(&source, &ranges));
        assert_eq!(of_server(&source), traffic(1, 1));
    }
    // Other credentials are tried, and refused.
    let inner = CountingSource { identity: Some(2), ..object(1) };
    inner.fails.store(true, Ordering::Relaxed);
    let source = CachedSource::new(Arc::new(inner), "store:a", cache, false);
    source.read_exact_at(300, &mut [0; 100]).unwrap_err();
}
