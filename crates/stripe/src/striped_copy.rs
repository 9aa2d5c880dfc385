//! Copies of objects within a striped store: the server of each part copies it, then the record is
//! written.

use crate::liveness::while_alive;
use crate::object::Object;
use crate::record_format::{Header, decode_group};
use crate::server::Server;
use crate::server_record::sound_bytes;
use crate::striped_sink::StripedSink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use swathe_store::copy_within_server;
use swathe_store_api::{
    CopyRefusal, CopySource, Failure, Interrupt, ServerCopy, StoreError, Version,
};
use swathe_trace::Scope;

/// A copy under its name.
struct StripedCopy {
    url: String,
}

impl ServerCopy for StripedCopy {
    fn url(&self) -> &str {
        &self.url
    }

    fn has_name(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>) -> Result<bool, Failure> {
        Ok(true)
    }
}

/// Have the servers copy the parts of an object to those of another that begins here.
pub(crate) fn copy_parts(
    object: &Object,
    mut sink: StripedSink,
    order: &CopySource<'_>,
    url: &str,
) -> Result<Box<dyn ServerCopy>, CopyRefusal> {
    let header = &object.header;
    let names = (0..sink.places().len()).map(|part| (object.parts[part].path(), part));
    let names: Vec<_> =
        names.map(|(from, part)| (from.to_string(), sink.part_path(part))).collect();
    let sums = checksums(object)?;
    let crcs = part_crcs(header, &sums);
    let all_bytes: u64 = (0..header.layout.parts()).map(|n| header.layout.part_bytes(n)).sum();
    let counts: Vec<AtomicU64> = names.iter().map(|_| AtomicU64::new(0)).collect();
    let (interrupt, scope) = (Interrupt::current(), Scope::current());
    let copy = |number: usize| {
        let (from, to) = &names[number];
        let progress = |bytes: u64| {
            counts[number].store(bytes, Ordering::Relaxed);
            let done_bytes: u64 = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            let share = u128::from(done_bytes) * u128::from(header.layout.size);
            (order.progress)((share / u128::from(all_bytes.max(1))) as u64)
        };
        interrupt.clone().enter();
        scope.clone().enter();
        let server = &sink.places()[number];
        while_alive(&**server, |_| copy_part(server, from, to, crcs[number], &progress))?
    };
    let results: Vec<Result<Version, CopyRefusal>> = thread::scope(|threads| {
        let running: Vec<_> =
            (0..names.len()).map(|number| threads.spawn(move || copy(number))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        running.into_iter().map(join).collect()
    });
    let mut versions = Vec::with_capacity(results.len());
    for (result, server) in results.into_iter().zip(sink.places()) {
        match result {
            Ok(version) => versions.push(Some(version)),
            Err(CopyRefusal::Failed(error @ StoreError::Interrupted { .. })) => {
                return Err(CopyRefusal::Failed(error));
            }
            // What is lost or damaged on one server may be read from others.
            Err(CopyRefusal::Failed(error)) => {
                return Err(CopyRefusal::Unable(server.message(error)));
            }
            Err(CopyRefusal::Unable(why)) => {
                return Err(CopyRefusal::Unable(server.message(why)));
            }
        }
    }
    sink.set_sums(header.crc32, sums);
    let result = sink.conclude(&versions, order.replaces);
    result.map_err(|failure| CopyRefusal::Failed(failure.error))?;
    Ok(Box::new(StripedCopy { url: url.to_string() }))
}

/// The CRC-32 of each part, from those of its blocks.
fn part_crcs(header: &Header, sums: &[u32]) -> Vec<u32> {
    let (layout, mut rest) = (header.layout, sums);
    let mut crc_of = |part| {
        let (own, others) = rest.split_at(layout.sums_in(part) as usize);
        rest = others;
        let mut left = layout.part_bytes(part);
        let mut crc = crc32fast::Hasher::new();
        for &sum in own {
            let length = left.min(layout.sum_bytes);
            crc.combine(&crc32fast::Hasher::new_with_initial_len(sum, length));
            left -= length;
        }
        crc.finalize()
    };
    (0..layout.parts()).map(&mut crc_of).collect()
}

/// Have a server copy a file that has this CRC-32, and compare it; the version that it has.
fn copy_part(
    server: &Arc<Server>,
    from: &str,
    to: &str,
    crc: u32,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Result<Version, CopyRefusal> {
    let source = server.open(from).map_err(CopyRefusal::from)?;
    // What is damaged would be copied so, with a checksum of the damage.
    let expected = format!("{crc:08x}");
    let sums = source.checksums().map_err(CopyRefusal::from)?;
    match sums.iter().find(|sum| sum.algorithm == "crc32") {
        None => return Err(CopyRefusal::Unable("it tells no CRC-32 of its part".into())),
        Some(found) if !found.value.eq_ignore_ascii_case(&expected) => {
            let found = &found.value;
            let why = format!("its part: expected CRC-32 {expected}, found {found}");
            return Err(CopyRefusal::Unable(why));
        }
        Some(_) => {}
    }
    let names = [from, to].map(|path| format!("{}{path}", server.name));
    let copy = copy_within_server(server.stores(), [&names[0], &names[1]], &*source, progress)?;
    Ok(copy.version)
}

/// The checksums of all parts, in their order.
fn checksums(object: &Object) -> Result<Vec<u32>, CopyRefusal> {
    let unable = |error: StoreError| CopyRefusal::Unable(error.to_string());
    let records: Vec<_> = object.records().iter().collect();
    let record = sound_bytes(&records).map_err(unable)?;
    let damage = |found: String| CopyRefusal::Unable(format!("its record is damaged: {found}"));
    let start = match Header::decode(&record) {
        Ok(Ok((_, start))) => start as usize,
        Ok(Err(_)) => return Err(damage("it is too short".into())),
        Err(error) => return Err(damage(error.to_string())),
    };
    let mut sums = Vec::new();
    for group in 0..object.header.groups() {
        let range = object.header.group_range(group);
        let bytes = &record[start + range.start as usize..start + range.end as usize];
        sums.extend(decode_group(bytes).map_err(|error| damage(error.to_string()))?);
    }
    Ok(sums)
}

/// Why the servers of a store cannot copy the parts of an object, if they cannot.
pub(crate) fn refusal(object: &Object, servers: &[Arc<Server>], parity: u32) -> Option<String> {
    let header = &object.header;
    let are_same = header.parts.len() == servers.len()
        && header.layout.parity == parity
        && header.parts.iter().zip(servers).all(|(part, server)| part.server == server.name);
    if !are_same {
        return Some(
            "its parts are not on the servers that the store has now, as a rebalance puts them"
                .into(),
        );
    }
    if let Some(server) = servers.iter().find(|server| server.store().is_local()) {
        return Some(server.message("a folder of this machine"));
    }
    if let Some(server) = servers.iter().find(|server| server.has_failed()) {
        return Some(server.message(server.last_failure()));
    }
    let absent = header.parts.iter().find(|part| part.version.is_none())?;
    Some(format!("its part on {} is missing; see: swathe stripe repair", absent.server))
}
