//! Records that are on a server of a striped store, and not of its stripe.

use crate::question::majority;
use crate::record_format::Header;
use crate::server::Server;
use crate::server_record::{Answer, records_of};
use std::sync::Arc;

/// Whether a record is not as writers of this store make it: it says another stripe, or, where none
/// is said, other servers.
pub(crate) fn is_unlike(servers: &[Arc<Server>], header: &Header) -> bool {
    let stripe = servers.first().and_then(|server| server.stripe());
    if stripe.is_some() || header.stripe.is_some() {
        return stripe != header.stripe;
    }
    !header.parts.iter().map(|part| &part.server).eq(servers.iter().map(|server| &server.name))
}

/// The servers that a record names.
pub(crate) fn names_of(header: &Header) -> String {
    let names: Vec<&str> = header.parts.iter().map(|part| part.server.as_str()).collect();
    names.join(" ")
}

/// Take no answer of servers of other stripes, and no record of another stripe: one that says so, or
/// one that is unlike what this store writes, where others have an earlier one that is not. A version
/// that a majority may have counts all the same.
pub(crate) fn leave_out_strangers(servers: &[Arc<Server>], answers: &mut [Option<Answer>]) {
    for (server, answer) in servers.iter().zip(answers.iter_mut()) {
        if let (Some(_), Err(error)) = (&answer, server.check_stripe()) {
            *answer = Some(Answer::Failed(error));
        }
    }
    let why: Vec<Option<String>> =
        answers.iter().map(|answer| strangeness(servers, answers, answer.as_ref()?)).collect();
    for (answer, why) in answers.iter_mut().zip(why) {
        if let (Some(Answer::Record(record)), Some(why)) = (&answer, why) {
            *answer = Some(Answer::Foreign(record.header.generation.clone(), why));
        }
    }
}

/// Why the record of an answer is not of this stripe.
fn strangeness(
    servers: &[Arc<Server>],
    answers: &[Option<Answer>],
    answer: &Answer,
) -> Option<String> {
    let Answer::Record(record) = answer else { return None };
    let header = &record.header;
    if !is_unlike(servers, header) || may_count(header, answers) {
        return None;
    }
    let ours = servers.first().and_then(|server| server.stripe());
    if let (Some(expected), Some(found)) = (&ours, &header.stripe) {
        return Some(format!(
            "the record: expected one of stripe {expected}, found one of {found}"
        ));
    }
    let is_earlier = |other: &Header| other.generation < header.generation;
    let is_contradicted = records_of(answers)
        .any(|other| is_earlier(&other.header) && !is_unlike(servers, &other.header));
    is_contradicted.then(|| {
        let stripe = header.stripe.as_ref().map(|name| format!(", stripe {name}"));
        format!(
            "the record: expected one of the servers of this store, found one of {}{}",
            names_of(header),
            stripe.unwrap_or_default()
        )
    })
}

/// Whether a majority of the servers may have a version, with those that were not heard.
fn may_count(header: &Header, answers: &[Option<Answer>]) -> bool {
    let may_have = |answer: &Option<Answer>| match answer {
        Some(Answer::Record(record)) => record.header == *header,
        Some(Answer::Absent | Answer::Empty | Answer::Foreign(..)) => false,
        Some(Answer::Damaged(_) | Answer::Failed(_)) | None => true,
    };
    answers.iter().filter(|answer| may_have(answer)).count() >= majority(answers.len())
}
