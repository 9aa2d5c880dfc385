//! Which stripe a server is of, as a file of it says.

use super::{Server, is_busy};
use crate::record_format::{HEADER_BYTES, Header, is_name};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use swathe_store_api::StoreError;

/// The file of a server that says its stripe.
pub(crate) const MARK_PATH: &str = ".swathe-stripe";
/// The mark begins with this line.
const MAGIC: &str = "swathe-stripe-mark 1\n";
/// No mark is longer.
const MOST_BYTES: u64 = 256;
/// Records that say which stripe a server is of.
const SAMPLE: usize = 3;
/// Attempts to write a mark that another writes at the same time, and the pause between them.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What is known of the stripe of a server.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    /// The stripe of the store, as the catalogue remembers it.
    pub(crate) known_stripe: Option<String>,
    /// The stripe of the store that it is a server of.
    pub(crate) stripe: Option<String>,
    /// Why it is none of this stripe.
    pub(crate) strangeness: Option<Strangeness>,
    /// Whether its folder did not exist.
    pub(crate) is_gone: bool,
    /// Whether its mark was heard, not only those of others.
    pub(crate) is_heard: bool,
    /// Whether it had no record, as the other servers.
    pub(crate) is_new: bool,
    /// When the marks were last compared.
    pub(crate) compared_at: Option<Instant>,
}

/// Why a server is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Strangeness {
    /// It is of another stripe, as said here.
    Foreign(String),
    /// It has no records, where others have objects and the mark of this stripe.
    Empty(String),
}

/// The stripe of these servers, as the catalogue remembers it: then they are not new.
pub(crate) fn known_stripe(servers: &[Arc<Server>]) -> Option<String> {
    servers.first().and_then(|server| server.identity().known_stripe.clone())
}

impl Strangeness {
    /// Why a server with a mark is none of a stripe; `None` if it is.
    pub(crate) fn of_mark(stripe: &str, mark: &str) -> Option<Strangeness> {
        let why = || {
            format!(
                "expected a server of stripe {stripe}, found one of stripe {mark}; take it out, or, \
                 if {mark} is right, remove the store and add it again"
            )
        };
        (mark != stripe).then(|| Strangeness::Foreign(why()))
    }

    /// Why a server is none of a stripe whose records do not name it.
    pub(crate) fn without_mark(stripe: &str) -> Strangeness {
        Strangeness::Foreign(format!(
            "expected a server of stripe {stripe}, found one without {MARK_PATH} whose records do not \
             name it; if it is of this stripe, copy {MARK_PATH} to it from another server"
        ))
    }
}

impl Server {
    /// The stripe of the store that it is a server of, if that has a mark.
    pub(crate) fn stripe(&self) -> Option<String> {
        self.identity().stripe.clone()
    }

    /// Whether it was heard, and is of the stripe of its store.
    pub(crate) fn is_ours(&self) -> bool {
        let identity = self.identity();
        identity.is_heard && identity.strangeness.is_none() && !identity.is_gone
    }

    /// Refuse to use a server of another stripe, or an empty one: its disk may only not be mounted.
    pub(crate) fn check_stripe(&self) -> Result<(), StoreError> {
        match &self.identity().strangeness {
            None => Ok(()),
            Some(Strangeness::Foreign(why)) => {
                Err(StoreError::Unsupported { url: self.url(), why: why.clone() })
            }
            Some(Strangeness::Empty(stripe)) => {
                let why = format!(
                    ": expected a server of stripe {stripe}, found no folder or one without records; \
                     mount its disk; or, if it is new, make its folder, and repair the whole store, or \
                     rebalance it if the server was added"
                );
                Err(StoreError::NotFound { url: self.url(), why })
            }
        }
    }

    /// Refuse to write to a server of another stripe, also if its mark was not heard with those of
    /// others, as it was late: then it is waited for. A folder of this machine is looked at each time:
    /// its disk may have been unmounted.
    pub(crate) fn check_mark(&self) -> Result<(), StoreError> {
        self.check_stripe()?;
        let (is_heard, is_new, stripe) = {
            let identity = self.identity();
            let is_heard = identity.is_heard && !self.store.is_local();
            (is_heard, identity.is_new, identity.stripe.clone())
        };
        let (false, Some(stripe)) = (is_heard, stripe) else { return Ok(()) };
        let of_mark = |mark: Option<String>| mark.map(|mark| Strangeness::of_mark(&stripe, &mark));
        let of_records = || {
            let records = self.first_records(SAMPLE)?;
            let is_empty = records.is_empty();
            Ok((is_empty, self.stripe_in(records)?))
        };
        let strangeness = match of_mark(self.mark()?) {
            Some(strangeness) => strangeness,
            None => match of_records()? {
                (_, Some(name)) => Strangeness::of_mark(&stripe, &name),
                (false, None) => Some(Strangeness::without_mark(&stripe)),
                // It did not take its mark before, and may say why now.
                (true, None) if is_new => {
                    self.write_mark(&stripe, false)?;
                    None
                }
                // Who began the stripe may have written its mark meanwhile.
                (true, None) => {
                    of_mark(self.mark()?).unwrap_or(Some(Strangeness::Empty(stripe.clone())))
                }
            },
        };
        {
            let mut identity = self.identity();
            (identity.is_heard, identity.strangeness) = (true, strangeness);
        }
        self.check_stripe()
    }

    /// The stripe that its mark says.
    pub(crate) fn mark(&self) -> Result<Option<String>, StoreError> {
        let source = match self.open_any(MARK_PATH) {
            Ok(source) => source,
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = vec![0; source.len().min(MOST_BYTES) as usize];
        source.read_exact_at(0, &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let name = text.strip_prefix(MAGIC).and_then(|rest| rest.strip_suffix('\n'));
        // One that a crash left unfinished says nothing.
        Ok(name.filter(|name| is_name(name)).map(str::to_string))
    }

    /// The stripe that its first records name, also if it is not used; `None` if they name none, or
    /// more than one.
    ///
    /// # Errors
    /// As listing has it; the last error of reading them if none can be read.
    pub(crate) fn recorded_stripe(&self) -> Result<Option<String>, StoreError> {
        self.stripe_in(self.first_records(SAMPLE)?)
    }

    /// The stripe that records name, by the paths of their files.
    fn stripe_in(&self, paths: Vec<String>) -> Result<Option<String>, StoreError> {
        let (mut stripes, mut failure) = (BTreeSet::new(), None);
        for path in paths {
            match self.header_of(&path) {
                Ok(Some(header)) => _ = stripes.insert(header.stripe),
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
        match (stripes.pop_first(), failure) {
            (Some(stripe), _) => Ok(stripe.filter(|_| stripes.is_empty())),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(None),
        }
    }

    /// The header of a record by the path of its file; `None` if it is damaged.
    fn header_of(&self, path: &str) -> Result<Option<Header>, StoreError> {
        let source = self.open_any(path)?;
        let mut head = vec![0; source.len().min(HEADER_BYTES as u64) as usize];
        source.read_exact_at(0, &mut head)?;
        Ok(Header::decode(&head).ok().and_then(Result::ok).map(|(header, _)| header))
    }

    /// Write a mark; one that is there already stays, unless this one replaces it.
    pub(crate) fn write_mark(&self, stripe: &str, replaces: bool) -> Result<(), StoreError> {
        let bytes = Bytes::from(format!("{MAGIC}{stripe}\n"));
        let write = || {
            let mut writer = self.write(MARK_PATH, bytes.len() as u64, u64::MAX)?;
            writer.write(bytes.clone()).map_err(|failure| failure.error)?;
            writer.finish(replaces).map(drop).map_err(|failure| failure.error)
        };
        let mut attempt = 1;
        loop {
            match write() {
                Err(StoreError::Exists { .. }) if !replaces => return Ok(()),
                Err(error) if is_busy(&error) && attempt < ATTEMPTS => {
                    attempt += 1;
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    }
}
