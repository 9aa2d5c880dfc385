//! Which stripe a server is of: a mark on it says it, so that a disk of another stripe is left out.
//!
//! The mark is drawn before the first object of a stripe is written, and its records name it, too.
//! Stripes from before 2026-11-27 have none. What most servers say counts; an empty server says
//! nothing.

use crate::question::{Grace, Standing, ask_enough, majority, present};
use crate::record::random_name;
use crate::server::Server;
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
    /// It has none, and parts or records.
    Unmarked,
    /// It is empty.
    Empty,
    /// It does not say.
    Silence,
}

/// Compare the marks of servers, unless that was done a moment ago: from now on those of other
/// stripes refuse all work, and say why. If as many are of one stripe as of another, all of them do.
pub(crate) fn compare_marks(servers: &[Arc<Server>], memory: Duration) {
    let is_recent = |server: &Arc<Server>| {
        server.identity().compared_at.is_some_and(|at| at.elapsed() < memory)
    };
    if !servers.iter().all(is_recent) {
        judge(servers, &statements(servers));
    }
}

/// Have servers judged by what they say.
fn judge(servers: &[Arc<Server>], statements: &[Statement]) {
    let stripe = stripe_of(statements);
    for (server, statement) in servers.iter().zip(statements) {
        let mut identity = server.identity();
        identity.compared_at = Some(Instant::now());
        identity.stripe = stripe.clone().ok().flatten();
        let Statement::Stripe(found) = statement else {
            if *statement != Statement::Silence {
                identity.strangeness = None;
            }
            continue;
        };
        identity.strangeness = match &stripe {
            Ok(Some(stripe)) if stripe == found => None,
            Ok(Some(stripe)) => {
                Some(format!("expected a server of stripe {stripe}, found one of stripe {found}"))
            }
            Ok(None) => {
                Some(format!("expected a server of a stripe without mark, found one of {found}"))
            }
            Err(names) => Some(format!(
                "expected most servers to be of one stripe, found as many of {}; this one is of \
                 {found}; leave those of the other stripe out",
                names.join(" as of ")
            )),
        };
    }
}

/// The stripe that most servers are of; `None`: one without mark, or of empty servers. The error are
/// those that as many are of.
fn stripe_of(statements: &[Statement]) -> Result<Option<String>, Vec<String>> {
    let mut votes: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for statement in statements {
        match statement {
            Statement::Stripe(name) => *votes.entry(Some(name)).or_default() += 1,
            Statement::Unmarked => *votes.entry(None).or_default() += 1,
            Statement::Empty | Statement::Silence => {}
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

/// What servers say; whether one without mark is empty is asked only where others have marks.
fn statements(servers: &[Arc<Server>]) -> Vec<Statement> {
    let marks = ask(servers, Server::mark);
    if !marks.iter().any(|mark| matches!(mark, Some(Ok(Some(_))))) {
        return marks.iter().map(|mark| statement(mark, Some(&Ok(true)))).collect();
    }
    let blank: BTreeSet<usize> =
        (0..servers.len()).filter(|&at| matches!(marks[at], Some(Ok(None)))).collect();
    let files = ask_some(servers, &blank, Server::has_files);
    marks.iter().zip(&files).map(|(mark, files)| statement(mark, files.as_ref())).collect()
}

fn statement(
    mark: &Option<Result<Option<String>, StoreError>>,
    has_files: Option<&Result<bool, StoreError>>,
) -> Statement {
    match (mark, has_files) {
        (Some(Ok(Some(name))), _) => Statement::Stripe(name.clone()),
        (Some(Ok(None)), Some(Ok(true))) => Statement::Unmarked,
        (Some(Ok(None)), Some(Ok(false))) => Statement::Empty,
        _ => Statement::Silence,
    }
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

/// Give a mark to the servers of a new stripe, and to empty servers of one that has a mark. A stripe
/// that has objects and no mark gets none.
pub(crate) fn mark_servers(servers: &[Arc<Server>]) {
    let mut statements = statements(servers);
    if !statements.iter().any(|each| matches!(each, Statement::Stripe(_))) {
        let files = ask(servers, Server::has_files);
        let empty = files.iter().filter(|files| matches!(files, Some(Ok(false)))).count();
        let is_new = empty >= majority(servers.len())
            && !files.iter().any(|files| matches!(files, Some(Ok(true))));
        if !is_new {
            return judge(servers, &statements);
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
    } else if let Ok(Some(stripe)) = stripe_of(&statements) {
        let is_empty = |at: &usize| statements[*at] == Statement::Empty;
        let numbers: BTreeSet<usize> = (0..servers.len()).filter(is_empty).collect();
        if !numbers.is_empty() {
            write_marks(servers, &numbers, stripe, false);
        }
    }
    judge(servers, &statements);
}

impl Statement {
    fn name(&self) -> Option<&String> {
        match self {
            Statement::Stripe(name) => Some(name),
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
