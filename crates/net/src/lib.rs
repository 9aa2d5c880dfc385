//! The network of this process: one runtime and one HTTP client for all who wait for servers, which
//! servers may lead where, and events of the connections that are made.
#![warn(missing_docs)]

mod causes;
pub mod connect_events;
mod runtime;

pub use causes::{root_cause, why};
pub use runtime::{
    LeadsAway, Net, check_private, client, confine, host, is_here, keeping_method, leads_away, net,
};
