//! An object of a server as requests need it: its URL, the headers to send, and the text of
//! errors.

use super::attempt::{Attempt, LimitedAttempt, RetriedAttempt, TracedAttempt};
use super::endpoint::Endpoint;
use super::limiter::{self, Limiter};
use super::link_meter::{RequestClock, RequestKind};
use super::request_events;
use super::response::{REASON_CHARS, RequestSecrets, header, hide, reason};
use super::retry;
use super::stall_timeout::StallLimits;
use crate::redact::{self, percent_decode};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use swathe_net::{connect_events, host, net};
use swathe_plan::{InFlight, LedgerEntry, ReaderGroup};
use swathe_store_api::{DAMAGE_HEADER, Failure, Interrupt, Retry, StoreError, StoreSettings};
use swathe_trace::{Ids, LIFELINE_HEADER, Scope};
use tokio::time::timeout;

/// An object on a server, as requests and messages name it.
pub(super) struct RequestTarget {
    pub(super) store: Arc<StoreSettings>,
    /// Whether its URL says that it speaks WebDAV.
    pub(super) is_dav: bool,
    /// Whether its URL says that it is an XRootD server.
    pub(super) is_xrootd: bool,
    /// The key of its measurements.
    pub(super) store_key: String,
    pub(super) url: String,
    pub(super) key: String,
    /// Fields of its events.
    pub(super) about: Ids,
    /// Secrets, which are never printed.
    secrets: Vec<String>,
    /// A digest of them with a number that is this process's own; `None` if none are sent.
    pub(super) identity: Option<u64>,
    pub(super) endpoint: Box<dyn Endpoint>,
    pub(super) limiter: Arc<Limiter>,
    /// Who reads it, to the ledger of its store.
    pub(super) group: ReaderGroup,
    pub(super) stall: StallLimits,
    /// Bytes that opening asks for.
    pub(super) first_bytes: u64,
    /// Traffic since the last call.
    pub(super) bytes: AtomicU64,
    pub(super) requests: AtomicU64,
}

/// An object of a store, as the store names it.
pub(super) struct NewTarget<'a> {
    pub(super) settings: Arc<StoreSettings>,
    pub(super) store_key: String,
    pub(super) key: String,
    /// As users may see it.
    pub(super) url: String,
    pub(super) qualified_name: Option<&'a str>,
    pub(super) endpoint: Box<dyn Endpoint>,
    pub(super) secrets: Vec<String>,
    pub(super) is_dav: bool,
    pub(super) is_xrootd: bool,
    pub(super) stall: StallLimits,
}

impl RequestTarget {
    pub(super) fn new(target: NewTarget<'_>) -> RequestTarget {
        let NewTarget { settings: store, store_key, key, url, endpoint, secrets, .. } = target;
        let NewTarget { qualified_name, is_dav, is_xrootd, stall, .. } = target;
        let limiter = limiter::of(&store_key);
        let (bytes, requests) = (AtomicU64::new(0), AtomicU64::new(0));
        let store_label = if store.name.is_empty() { &store_key } else { &store.name };
        let about = request_events::about(qualified_name.unwrap_or(&url), store_label);
        let identity = identity(&store, &*endpoint, &secrets);
        let first_bytes = store.costs.first_bytes();
        RequestTarget {
            store,
            is_dav,
            is_xrootd,
            store_key,
            url,
            key,
            about,
            secrets,
            identity,
            endpoint,
            limiter,
            group: ReaderGroup::current(),
            stall,
            first_bytes,
            bytes,
            requests,
        }
    }

    /// Run `work` on the shared runtime. An [`Interrupt`] of this thread ends it.
    pub(super) fn block_on<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        let interrupt = Interrupt::current();
        let work = interrupt.unless_set(work(&net.client));
        let interruption = || Err(StoreError::Interrupted { url: self.url.clone() });
        net.runtime.block_on(work).unwrap_or_else(interruption)
    }

    /// The answer to a request, with any status, if it begins in time.
    pub(super) async fn exchange(
        &self,
        request: RequestBuilder,
        host: &str,
        secrets: RequestSecrets,
        limit: Option<Duration>,
    ) -> Result<Response, Failure> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        connect_events::set_server(|| host.to_string());
        let request = match connect_events::lifeline() {
            Some(lifeline) => request.header(LIFELINE_HEADER, lifeline.header()),
            None => request,
        };
        let result = match limit {
            None => request.send().await,
            Some(limit) => match timeout(limit, request.send()).await {
                Err(_) => return Err(Failure::passing(self.stall_error(host, limit))),
                Ok(result) => result,
            },
        };
        match result {
            Err(error) => {
                if let Some(refusal) = swathe_net::leads_away(&error) {
                    let url = self.url.clone();
                    return Err(StoreError::Forbidden { url, why: format!(": {refusal}") }.into());
                }
                self.limiter.is_unreachable.store(error.is_connect(), Ordering::Relaxed);
                let may_pass = !error.is_connect() || self.limiter.silence.answered_lately();
                let transient = error.is_request() && may_pass && !error.is_timeout();
                let problem =
                    if error.is_connect() { "cannot connect to" } else { "no answer from" };
                let error = self.network(format!("{problem} {host}: {}", swathe_net::why(&error)));
                Err(if transient { Failure::passing(error) } else { error.into() })
            }
            Ok(mut response) => {
                self.limiter.is_unreachable.store(false, Ordering::Relaxed);
                connect_events::record_answer(response.status().as_u16());
                response.extensions_mut().insert(secrets);
                Ok(response)
            }
        }
    }

    /// The error for a status other than success.
    pub(super) async fn status_error(&self, response: Response, stall: Duration) -> Failure {
        let (status, host) = (response.status(), host(response.url()));
        let after = header(&response, RETRY_AFTER).and_then(retry::retry_after);
        let region = match header(&response, "x-amz-bucket-region") {
            Some(region) if status == 301 || status == 400 => {
                format!("; the bucket is in region {region}: set AWS_REGION")
            }
            _ => String::new(),
        };
        let is_denied = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => true,
            // Azure answers so if a request has no credentials.
            _ => header(&response, "x-ms-error-code") == Some("PublicAccessNotPermitted"),
        };
        let damage = header(&response, DAMAGE_HEADER).and_then(|byte| byte.parse().ok());
        let damage = damage.filter(|_| status.is_server_error());
        let hidden_secrets =
            response.extensions().get::<RequestSecrets>().cloned().unwrap_or_default();
        let reason = timeout(stall, reason(response)).await.unwrap_or_default();
        // Before it is cut: of a long secret a part may be left.
        let reason = self.hide(hide(&hidden_secrets.0, reason));
        let reason: String = reason.chars().take(REASON_CHARS).collect();
        let separator = if reason.is_empty() { "" } else { ", " };
        let answer = format!("{status}{separator}{reason}{region}");
        let url = self.url.clone();
        let error = match status {
            _ if is_denied => StoreError::Forbidden {
                url,
                why: format!(": {answer}{}", self.endpoint.authorization()),
            },
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                StoreError::NotFound { url, why: self.endpoint.missing_reason(&reason) }
            }
            StatusCode::INSUFFICIENT_STORAGE => {
                let why = format!("{host} answered {answer}");
                StoreError::Io { url, source: io::Error::new(ErrorKind::StorageFull, why) }
            }
            _ => match damage {
                Some(byte) => {
                    StoreError::Damaged { url, byte, why: format!("{host} answered {answer}") }
                }
                None => self.network(format!("{host} answered {answer}")),
            },
        };
        let is_overloaded =
            status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE;
        let retry = match after {
            _ if is_overloaded => Retry::Overloaded { after },
            _ if status == StatusCode::INSUFFICIENT_STORAGE || damage.is_some() => Retry::Never,
            _ if status.is_server_error() => Retry::Passing,
            _ => Retry::Never,
        };
        Failure { error, retry }
    }

    /// How long the server may be silent in an attempt, after `failures` failed attempts.
    pub(super) fn stall_limit(&self, failures: u32) -> Duration {
        self.limiter.silence.stall_limit(self.stall, failures)
    }

    /// The clock of a request that is sent now.
    pub(super) fn clock(&self, kind: RequestKind) -> RequestClock<'_> {
        RequestClock::start(&self.limiter.link, &self.store.costs, kind)
    }

    /// The layers around reading requests: a limit, events, and further tries.
    pub(super) async fn read<A: Attempt>(
        &self,
        scope: &Scope,
        attempt: A,
    ) -> (Result<A::Answer, StoreError>, A) {
        self.read_on(scope, attempt, false).await
    }

    /// The same around requests that share a connection.
    pub(super) async fn read_in_stream<A: Attempt>(
        &self,
        scope: &Scope,
        attempt: A,
    ) -> (Result<A::Answer, StoreError>, A) {
        self.read_on(scope, attempt, true).await
    }

    async fn read_on<A: Attempt>(
        &self,
        scope: &Scope,
        attempt: A,
        is_multiplexed: bool,
    ) -> (Result<A::Answer, StoreError>, A) {
        let attempt = TracedAttempt { about: &self.about, scope, inner: attempt };
        let group = self.group;
        let attempt =
            LimitedAttempt { limiter: &self.limiter, is_multiplexed, group, inner: attempt };
        let mut attempt = RetriedAttempt { inner: attempt, limit: None };
        let answer = attempt.result().await;
        (answer, attempt.inner.inner.inner)
    }

    /// Enter a read in the ledger.
    pub(super) fn enter_reader(&self) -> LedgerEntry {
        self.limiter.ledger.enter(self.group, InFlight::READER)
    }

    pub(super) fn stall_error(&self, host: &str, stall: Duration) -> StoreError {
        let seconds = stall.as_secs_f32();
        self.network(format!("{host} sent nothing for {seconds} s"))
    }

    pub(super) fn unsupported_error(&self, why: &str) -> StoreError {
        StoreError::Unsupported { url: self.url.clone(), why: self.hide(why.to_string()) }
    }

    pub(super) fn network(&self, why: String) -> StoreError {
        StoreError::Network { url: self.url.clone(), why: self.hide(why) }
    }

    pub(super) fn short(&self, range: &Range<u64>, found: u64) -> StoreError {
        StoreError::ShortRead {
            url: self.url.clone(),
            start: range.start,
            expected: range.end.saturating_sub(range.start),
            found,
        }
    }

    /// Refuse a name that the server would cut: XRootD (5.5) takes the text after a `?` as a query,
    /// also if it is encoded.
    pub(super) fn check_uncut(&self, name: &Url, is_xrootd: bool) -> Result<(), StoreError> {
        match is_xrootd && has_mark(name) {
            true => Err(self.unsupported_error("the server would cut the name before the ?")),
            false => Ok(()),
        }
    }

    /// Whether words of its URL are hidden: they may say which object is meant, and who may read it.
    pub(super) fn is_hiding(&self) -> bool {
        self.endpoint.url().is_some_and(redact::hides)
    }

    /// A tag that does not stand for every byte: hidden words may be the only difference of two
    /// objects.
    pub(super) fn add_mark(&self, tag: &str) -> String {
        match self.endpoint.url() {
            Some(url) => format!("{tag}{}", redact::secret_mark(url)),
            None => tag.to_string(),
        }
    }

    fn hide(&self, text: String) -> String {
        hide(&self.secrets, text)
    }
}

/// A digest of what says who asks. Of buckets also their settings: what the environment says is the
/// same for all of them.
fn identity(store: &StoreSettings, endpoint: &dyn Endpoint, secrets: &[String]) -> Option<u64> {
    static SALT: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    endpoint.is_authorised().then(|| SALT.hash_one((secrets, &store.options)))
}

/// Whether a name has a question mark in it.
pub(super) fn has_mark(name: &Url) -> bool {
    percent_decode(name.path()).contains(&b'?')
}
