//! Versions whose records a minority of servers has: of writes that failed, or of writers that died.
//!
//! Nobody can tell such a version from one that counts, once servers are away that may have its
//! record. So a reader gives its record to a majority before its bytes count, and a writer that fails
//! takes its records back.

#[cfg(test)]
mod tests;

use crate::foreign_records::{is_unlike, names_of};
use crate::layout::parts_of;
use crate::names::record_path;
use crate::object::Object;
use crate::object_records::{Records, too_few_servers};
use crate::question::{Grace, Standing, ask_enough, majority, present};
use crate::record_format::Generation;
use crate::server::Server;
use crate::server_record::{Answer, Record, header_bytes, read_record, sound_bytes};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Level, event};

/// No server is waited for longer than this, where the others are enough.
const SHORT: Grace = Grace {
    least: Duration::from_secs(5),
    least_after_failure: Duration::from_secs(1),
    most: Duration::from_secs(20),
    ends: true,
};

/// Give the newest record of an object to the servers that lack it, until a majority has it, where a
/// minority has it now. It is read as it is where nobody heard contradicts it, or servers refuse to be
/// written to; and it is written to none, if it is not of the servers of this store.
///
/// `records`: what the servers say; `object`: the one that these are of, unless it was removed.
///
/// # Errors
/// [`StoreError::Network`] if servers have an older version, and too little of the newest is left to
/// be read, or no majority gets its record; [`StoreError::Differs`] if they have one, and the newest is
/// not of the servers of this store; [`StoreError::Interrupted`].
pub(crate) fn roll_forward(
    servers: &[Arc<Server>],
    records: &Records,
    url: &str,
    object: Option<&Object>,
) -> Result<(), StoreError> {
    let Some(newest) = records.newest() else { return Ok(()) };
    let header = &newest.header;
    let same: Vec<&Record> = records.records().filter(|record| record.header == *header).collect();
    let each = servers.iter().zip(&records.answers).enumerate();
    let lacking: Vec<_> = each
        .filter(|(_, (server, answer))| {
            server.store().is_writable()
                && answer.as_ref().is_some_and(|answer| answer.lacks(&header.generation))
        })
        .map(|(number, (server, _))| (number, server.clone()))
        .collect();
    let refuses = |(_, server): &(usize, Arc<Server>)| server.refuses_records();
    let targets: Vec<_> = lacking.iter().filter(|&each| !refuses(each)).cloned().collect();
    let minimum = majority(header.layout.parts() as usize);
    let is_hopeless = lacking.iter().any(refuses) && same.len() + targets.len() < minimum;
    if targets.is_empty() || is_hopeless {
        return Ok(());
    }
    let is_contradicted = records.records().any(|record| record.header != *header);
    if is_unlike(servers, header) {
        // It is not for a reader to write it to servers that may be of another stripe.
        let found = format!("version {} of servers {}", header.generation, names_of(header));
        let expected = "its newest version to be of the servers of this store".into();
        let error = StoreError::Differs { url: url.to_string(), expected, found };
        return if is_contradicted { Err(error) } else { Ok(()) };
    }
    let put = || {
        object.map_or(Ok(()), check_parts)?;
        put_forward(&targets, servers.len(), &header.generation, &header.path, &same)
    };
    let results = match put() {
        Ok(results) => results,
        Err(error) if is_contradicted || matches!(error, StoreError::Interrupted { .. }) => {
            return Err(error);
        }
        Err(_) => return Ok(()),
    };
    let good = results.iter().flatten().filter(|result| result.is_ok()).count();
    if good > 0 {
        event(Level::Usage, "STRIPE_ROLLED_FORWARD", &Ids::default(), |record| {
            record.text("OBJECT", url).text("VERSION", &header.generation.to_string());
        });
    }
    if same.len() + good >= minimum || !is_contradicted || lacking.iter().any(refuses) {
        return Ok(());
    }
    let mut failures = records.silent(servers);
    let each = targets.iter().map(|(number, server)| server.failure(results[*number].as_ref()));
    failures.extend(each.flatten());
    Err(too_few_servers(url, "its newest record on", minimum, servers.len(), &failures))
}

/// Put a record on servers, of `count` in all, where none is newer.
fn put_forward(
    targets: &[(usize, Arc<Server>)],
    count: usize,
    generation: &Generation,
    path: &str,
    same: &[&Record],
) -> Result<Vec<Option<Result<(), StoreError>>>, StoreError> {
    let (path, record) = (path.to_string(), Bytes::from(sound_bytes(same)?));
    let (generation, enough) = (generation.clone(), targets.len());
    let standing = |results: &[Option<Result<(), StoreError>>]| {
        Standing::of(results.iter().flatten().count(), 0, enough, enough)
    };
    let put = move |_, server: &Server| match read_record(server, &path, header_bytes(count)) {
        Answer::Record(record) if record.header.generation > generation => {
            let (url, version) = (server.url(), generation.to_string());
            Err(StoreError::Changed { url, version })
        }
        Answer::Failed(error) => Err(error),
        _ => {
            let result = server.put(&record_path(&path), &record);
            server.learn_refusal(&result);
            result
        }
    };
    let mut results = ask_enough(targets, count, SHORT, standing, put);
    let is_interrupt =
        |result: &Option<Result<_, _>>| matches!(result, Some(Err(StoreError::Interrupted { .. })));
    match results.iter().position(is_interrupt).and_then(|at| results[at].take()) {
        Some(interrupt) => interrupt.map(|()| results),
        None => Ok(results),
    }
}

/// Check that enough parts are there to read an object.
fn check_parts(object: &Object) -> Result<(), StoreError> {
    let (mut failures, enough) = (Vec::new(), object.layout().data as usize);
    let mut good = 0;
    for part in &object.parts {
        match part.open_anew() {
            Ok(_) => good += 1,
            Err(error @ StoreError::Interrupted { .. }) => return Err(error),
            Err(error) => failures.push(part.message(error)),
        }
        if good == enough {
            return Ok(());
        }
    }
    let why = format!("{}; {}", too_few_parts(enough, good), failures.join("; "));
    Err(StoreError::Network { url: object.url.clone(), why })
}

/// That too few parts are there of a version that may not count yet.
pub(crate) fn too_few_parts(enough: usize, found: usize) -> String {
    format!(
        "expected {} of its newest version, whose record a minority of the servers has, found {found}",
        parts_of(enough)
    )
}

/// Take the records of a write that failed back: servers get those of the version before it again, or
/// have none. The servers that may still have one of this write, or get it late, and why. `results`:
/// what they said of the record.
pub(crate) fn take_back(
    servers: &[Arc<Server>],
    path: &str,
    generation: &Generation,
    last: &[&Record],
    results: &[Option<Result<(), StoreError>>],
) -> Vec<String> {
    let count = servers.len();
    let before = match last {
        [] => None,
        last => match sound_bytes(last) {
            Ok(bytes) => Some(Bytes::from(bytes)),
            Err(error) => return vec![error.to_string()],
        },
    };
    let (path, ours) = (path.to_string(), generation.clone());
    // Whether it had the record.
    let work = move |_, server: &Server| match read_record(server, &path, header_bytes(count)) {
        Answer::Record(record) if record.header.generation == ours => {
            match &before {
                Some(bytes) => server.put(&record_path(&path), bytes),
                None => server.remove(&record_path(&path)),
            }?;
            Ok(true)
        }
        Answer::Failed(error) => Err(error),
        _ => Ok(false),
    };
    let standing = |answers: &[Option<Result<bool, StoreError>>]| {
        Standing::of(answers.iter().flatten().count(), 0, majority(count), count)
    };
    let answers = ask_enough(&present(servers, 1), count, SHORT, standing, work);
    let each = servers.iter().zip(answers).zip(results);
    each.filter_map(|((server, answer), result)| match (&answer, result) {
        // It had no folder for the record either.
        (Some(Err(StoreError::NotFound { .. })), Some(Err(StoreError::NotFound { .. }))) => None,
        (Some(Ok(false)), None | Some(Err(StoreError::Network { .. }))) => {
            server.failure(result.as_ref())
        }
        _ => server.failure(answer.as_ref()),
    })
    .collect()
}
