//! Which stripe a server is of: a mark on it says it, so that a disk of another stripe is left out.
//!
//! The mark is drawn before the first object of a stripe is written, and its records name it, too.
//! Stripes from before 2026-11-27 have none. A server that has lost its mark is of the stripe that its
//! records name. The stripe that the catalogue remembers counts, else what most servers say. A server
//! without records says nothing, and is not used until a repair gives it the mark: its disk may only not
//! be mounted. If all are empty, the store is a new one, unless its stripe is remembered.

use crate::names::bare_name;
use crate::question::{Grace, Standing, ask_all, ask_enough, majority, present};
use crate::record_format::random_name;
use crate::server::{MARK_PATH, Server, Strangeness, known_stripe};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Level, event};

/// What is known of marks is looked at anew after this time where servers disagree,
pub(crate) const DISPUTE_MEMORY: Duration = Duration::from_secs(1);
/// and where something is written or listed.
pub(crate) const WORK_MEMORY: Duration = Duration::from_secs(10);
/// A server that is later than the others says nothing.
const GRACE: Grace = Grace {
    least: Duration::from_secs(1),
    least_after_failure: Duration::from_millis(200),
    most: Duration::from_secs(20),
    ends: false,
};

/// What a server says of its stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Statement {
    /// It has a mark.
    Stripe(String),
    /// It has none, and its records name a stripe.
    Recorded(String),
    /// It has none, and its records name no stripe, or several.
    Unmarked,
    /// It has no record, and another one has.
    Empty,
    /// It has no record, and no other one has.
    New,
    /// It is a folder of this machine that does not exist, which is said in another place.
    Gone,
    /// It does not say.
    Silence,
}

/// Compare the marks of servers, unless that was done a moment ago: from now on those of other
/// stripes, and empty ones where others have a mark, refuse all work, and say why. If as many are of
/// one stripe as of another, all of them do.
pub(crate) fn compare_marks(servers: &[Arc<Server>], memory: Duration) {
    let is_recent = |server: &Arc<Server>| {
        let identity = server.identity();
        // One that is not used is asked soon whether it is mended.
        let is_used = identity.strangeness.is_none() && !identity.is_gone;
        let memory = if is_used { memory } else { memory.min(DISPUTE_MEMORY) };
        identity.compared_at.is_some_and(|at| at.elapsed() < memory)
    };
    if !servers.iter().all(is_recent) {
        judge(servers, &statements(servers));
    }
}

/// Have servers judged by what they say.
///
/// If none says anything, all stays as it was. If none names a stripe, it is the one they were of before.
fn judge(servers: &[Arc<Server>], statements: &[Statement]) {
    if statements.iter().all(|each| *each == Statement::Silence) {
        return;
    }
    let is_named = |each: &Statement| each.name().is_some() || *each == Statement::Unmarked;
    let stripe = match statements.iter().any(is_named) {
        true => stripe_of(statements, known_stripe(servers)),
        false => Ok(known_stripe(servers).or_else(|| servers.first()?.stripe())),
    };
    for (server, statement) in servers.iter().zip(statements) {
        let mut identity = server.identity();
        identity.compared_at = Some(Instant::now());
        identity.stripe = stripe.clone().ok().flatten();
        identity.is_heard |= !matches!(statement, Statement::Silence | Statement::Gone);
        identity.is_gone = *statement == Statement::Gone;
        identity.is_new = *statement == Statement::New;
        match statement {
            Statement::Silence | Statement::Gone => {}
            Statement::New => identity.strangeness = None,
            Statement::Unmarked => {
                identity.strangeness = match &stripe {
                    Ok(stripe) => stripe.as_deref().map(Strangeness::without_mark),
                    Err(_) => difference(&stripe, "none"),
                };
            }
            Statement::Stripe(name) | Statement::Recorded(name) => {
                identity.strangeness = difference(&stripe, name);
            }
            Statement::Empty => {
                let name = identity.stripe.clone();
                identity.strangeness = name.map(Strangeness::Empty);
            }
        }
    }
}

/// How a server of a stripe differs from the stripe that most are of.
fn difference(stripe: &Result<Option<String>, Vec<String>>, found: &str) -> Option<Strangeness> {
    let why = match stripe {
        Ok(Some(stripe)) => return Strangeness::of_mark(stripe, found),
        Ok(None) => format!("expected a server of a stripe without mark, found one of {found}"),
        Err(names) => format!(
            "expected most servers to be of one stripe, found as many of {}; this one is of \
             {found}; leave those of the other stripe out",
            names.join(" as of ")
        ),
    };
    Some(Strangeness::Foreign(why))
}

/// The stripe that is remembered, else the one that most servers are of; `None`: one without mark, or of
/// empty servers. The error are those that as many are of.
fn stripe_of(
    statements: &[Statement],
    known_stripe: Option<String>,
) -> Result<Option<String>, Vec<String>> {
    if known_stripe.is_some() {
        return Ok(known_stripe);
    }
    let mut votes: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for statement in statements {
        match statement {
            Statement::Stripe(name) | Statement::Recorded(name) => {
                *votes.entry(Some(name)).or_default() += 1;
            }
            Statement::Unmarked => *votes.entry(None).or_default() += 1,
            Statement::Empty | Statement::New | Statement::Gone | Statement::Silence => {}
        }
    }
    let most = votes.values().max().copied();
    let first: Vec<_> =
        votes.iter().filter(|(_, count)| Some(**count) == most).map(|(name, _)| *name).collect();
    match first[..] {
        [] => Ok(None),
        [name] => Ok(name.map(str::to_string)),
        _ => Err(first.iter().map(|name| name.unwrap_or("one without mark").to_string()).collect()),
    }
}

/// What servers say; what one without mark has is asked only where others have marks, the stripe is
/// remembered, or records name one.
fn statements(servers: &[Arc<Server>]) -> Vec<Statement> {
    let of_mark = |mark: &Option<Result<Option<String>, StoreError>>| match mark {
        Some(Ok(Some(name))) => Statement::Stripe(name.clone()),
        Some(Ok(None)) => Statement::Unmarked,
        _ => Statement::Silence,
    };
    let mut statements: Vec<_> = ask(servers, Server::mark).iter().map(of_mark).collect();
    let is_marked = statements.iter().any(|each| each.name().is_some());
    if !statements.contains(&Statement::Unmarked) {
        return statements;
    }
    if !is_marked && known_stripe(servers).is_none() {
        // All may have lost their marks.
        let without_mark = numbers_of(&statements, &Statement::Unmarked);
        let stripes = ask_some(servers, &without_mark, Server::recorded_stripe);
        if !stripes.iter().any(|stripe| matches!(stripe, Some(Ok(Some(_))))) {
            return statements;
        }
    }
    let records = ask(servers, Server::has_records);
    // One that does not say it may have records.
    let is_new = is_marked
        && known_stripe(servers).is_none()
        && records.iter().all(|records| matches!(records, Some(Ok(false))));
    for (statement, records) in statements.iter_mut().zip(&records) {
        *statement = match (&statement, records) {
            (Statement::Unmarked, Some(Ok(false))) if is_new => Statement::New,
            (Statement::Unmarked, Some(Ok(false))) => Statement::Empty,
            (Statement::Unmarked, Some(Ok(true))) => continue,
            (Statement::Unmarked, _) => Statement::Silence,
            _ => continue,
        };
    }
    let without_mark = numbers_of(&statements, &Statement::Unmarked);
    let stripes = ask_some(servers, &without_mark, Server::recorded_stripe);
    for at in without_mark {
        statements[at] = match &stripes[at] {
            Some(Ok(Some(name))) => Statement::Recorded(name.clone()),
            Some(Ok(None)) => Statement::Unmarked,
            Some(Err(_)) | None => Statement::Silence,
        };
    }
    // Who began the stripe a moment ago wrote all marks before the first file.
    let empty = numbers_of(&statements, &Statement::Empty);
    let marks = ask_some(servers, &empty, Server::mark);
    let folders = ask_some(servers, &empty, Server::has_folder);
    for at in empty {
        if matches!(folders[at], Some(Ok(false))) && servers[at].store().is_local() {
            statements[at] = Statement::Gone;
        }
        if let again @ Statement::Stripe(_) = of_mark(&marks[at]) {
            statements[at] = again;
        }
    }
    statements
}

/// The numbers of the servers that say this.
fn numbers_of(statements: &[Statement], statement: &Statement) -> BTreeSet<usize> {
    (0..statements.len()).filter(|&at| statements[at] == *statement).collect()
}

fn ask<T: Send + 'static>(
    servers: &[Arc<Server>],
    work: impl Fn(&Server) -> Result<T, StoreError> + Send + Sync + 'static,
) -> Vec<Option<Result<T, StoreError>>> {
    ask_some(servers, &(0..servers.len()).collect(), work)
}

/// Ask those servers of some numbers that do not hang.
fn ask_some<T: Send + 'static>(
    servers: &[Arc<Server>],
    numbers: &BTreeSet<usize>,
    work: impl Fn(&Server) -> Result<T, StoreError> + Send + Sync + 'static,
) -> Vec<Option<Result<T, StoreError>>> {
    let mut targets = present(servers, 1);
    targets.retain(|(number, _)| numbers.contains(number));
    let enough = targets.len().min(majority(servers.len()));
    let standing = |answers: &[Option<Result<T, StoreError>>]| {
        Standing::of(answers.iter().flatten().count(), 0, enough, servers.len())
    };
    ask_enough(&targets, servers.len(), GRACE, standing, move |_, server| work(server))
}

/// Give a mark to the servers of a new stripe. A stripe that has objects and no mark gets none, nor does
/// an empty server of one that has objects.
///
/// # Errors
/// [`StoreError::Unsupported`] if a server does not say what it has, and the others are empty: the
/// objects may be on it, and the disks of the others not mounted.
pub(crate) fn mark_servers(servers: &[Arc<Server>], url: &str) -> Result<(), StoreError> {
    let mut statements = statements(servers);
    if !statements.iter().any(|each| matches!(each, Statement::Stripe(_))) {
        // All are waited for: a late one may have the objects.
        let files = ask_all(servers, |_, server| server.has_files());
        if known_stripe(servers).is_some() || files.iter().any(|each| matches!(each, Ok(true))) {
            judge(servers, &statements);
            return Ok(());
        }
        let away = servers.iter().zip(&files).filter(|(_, files)| files.is_err());
        let away: Vec<&str> = away.map(|(server, _)| bare_name(&server.name)).collect();
        if !away.is_empty() {
            let why = format!(
                "expected all {} servers of a new store, found the others empty and no answer of {}; \
                 start these, or add the store without them",
                servers.len(),
                away.join(", ")
            );
            return Err(StoreError::Unsupported { url: url.to_string(), why });
        }
        let numbers = (0..servers.len()).collect();
        write_marks(servers, &numbers, random_name(), false);
        statements = self::statements(servers);
        // Another writer may have drawn one at the same time: both take the first.
        let names: BTreeSet<&String> = statements.iter().filter_map(Statement::name).collect();
        if let (Some(first), true) = (names.first().map(|name| name.to_string()), names.len() > 1) {
            let differs = |at: &usize| statements[*at].name().is_some_and(|name| *name != first);
            let numbers = (0..servers.len()).filter(differs).collect();
            write_marks(servers, &numbers, first.clone(), true);
            for statement in &mut statements {
                if statement.name().is_some() {
                    *statement = Statement::Stripe(first.clone());
                }
            }
        }
    }
    let new = numbers_of(&statements, &Statement::New);
    if let (Ok(Some(stripe)), false) = (stripe_of(&statements, None), new.is_empty()) {
        write_marks(servers, &new, stripe, false);
    }
    judge(servers, &statements);
    Ok(())
}

/// Give the mark of a stripe to its servers that have lost it, and to the empty ones, so that they are
/// used; return the names of those. No more than `parity` servers may be empty or away, nor a majority:
/// the newest version of an object may be on these alone.
///
/// # Errors
/// [`StoreError::Unsupported`] if more are; as writing the marks has it.
pub(crate) fn admit_empty_servers(
    servers: &[Arc<Server>],
    parity: usize,
    url: &str,
) -> Result<Vec<String>, StoreError> {
    let mut statements = statements(servers);
    let numbers = numbers_of(&statements, &Statement::Empty);
    let stripe = stripe_of(&statements, known_stripe(servers));
    let Ok(Some(stripe)) = stripe else { return Ok(Vec::new()) };
    let is_used = |statement: &Statement| match statement {
        Statement::Stripe(name) | Statement::Recorded(name) => *name == stripe,
        Statement::New => true,
        Statement::Unmarked | Statement::Empty | Statement::Gone | Statement::Silence => false,
    };
    write_marks(
        servers,
        &numbers_of(&statements, &Statement::Recorded(stripe.clone())),
        stripe.clone(),
        true,
    );
    let others: Vec<_> = (0..servers.len()).filter(|&at| !is_used(&statements[at])).collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let most = parity.min(majority(servers.len()) - 1);
    if others.len() > most {
        let names: Vec<&str> = others.iter().map(|&at| bare_name(&servers[at].name)).collect();
        return Err(StoreError::Unsupported {
            url: url.to_string(),
            why: format!(
                "expected at most {most} of {} servers to be empty or away, found {}: {}; mount \
                 their disks. If they are new, add at most {most} at a time. If they are lost, {}",
                servers.len(),
                others.len(),
                names.join(", "),
                match others.len() == servers.len() {
                    true => "remove the store and add it again".into(),
                    false => format!("copy {MARK_PATH} from another server to the new ones"),
                },
            ),
        });
    }
    numbers.iter().for_each(|&at| statements[at] = Statement::Stripe(stripe.clone()));
    judge(servers, &statements);
    for at in &numbers {
        // Also over one that a crash left unfinished.
        servers[*at].write_mark(&stripe, true)?;
    }
    Ok(numbers.iter().map(|&at| servers[at].name.clone()).collect())
}

impl Statement {
    fn name(&self) -> Option<&String> {
        match self {
            Statement::Stripe(name) | Statement::Recorded(name) => Some(name),
            _ => None,
        }
    }
}

/// Write the mark of a stripe to servers of some numbers. A server that does not take it is one
/// without mark.
fn write_marks(servers: &[Arc<Server>], numbers: &BTreeSet<usize>, stripe: String, replaces: bool) {
    let write = move |server: &Server| server.write_mark(&stripe, replaces);
    let results = ask_some(servers, numbers, write);
    for (server, result) in servers.iter().zip(&results) {
        if let Some(Err(error)) = result {
            event(Level::Usage, "STRIPE_MARK_FAILED", &Ids::default(), |record| {
                record.text("SERVER", &server.name).text("WHY", &error.to_string());
            });
        }
    }
}

#[cfg(test)]
mod tests;
