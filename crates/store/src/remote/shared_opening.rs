//! Opens an object. Readers that open it at the same time share one request.

use super::flights::{Flights, Landing};
use super::propfind_version::OpenedRemote;
use super::request_target::RequestTarget;
use reqwest::Client;
use std::sync::{Arc, LazyLock};
use swathe_store_api::StoreError;

/// The key of an object, its protocol, and who opens it.
type OpeningKey = (String, bool, bool, Option<u64>);

/// Objects that are being opened.
static OPENINGS: LazyLock<Arc<Flights<OpeningKey, OpenedRemote>>> = LazyLock::new(Arc::default);

impl RequestTarget {
    /// What openings of the object are found by, while they are on their way; `None` if hidden words
    /// may make it another object.
    fn opening_key(&self) -> Option<OpeningKey> {
        let key = (self.key.clone(), self.is_dav, self.is_xrootd, self.identity);
        (!self.is_hiding()).then_some(key)
    }

    /// As [`RequestTarget::begin`]; if another reader opens the object now, with its answer.
    pub(super) async fn join_opening(&self, client: &Client) -> Result<OpenedRemote, StoreError> {
        let Some(key) = self.opening_key() else { return self.begin(client).await };
        loop {
            match OPENINGS.join(key.clone()) {
                Err(lead) => {
                    let result = self.begin(client).await;
                    lead.land(
                        result
                            .as_ref()
                            .map_or(Landing::Failed, |remote| Landing::Arrived(remote.clone())),
                    );
                    return result;
                }
                Ok(flight) => match flight.receive().await {
                    Landing::Arrived(remote) => return Ok(remote),
                    Landing::Failed => return self.begin(client).await,
                    Landing::Abandoned => {}
                },
            }
        }
    }

    /// The object has changed: what others opened before is out of date.
    pub(super) fn forget_opening(&self) {
        if let Some(key) = self.opening_key() {
            OPENINGS.forget(&key);
        }
    }
}
