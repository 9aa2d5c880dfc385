//! The network of this process: one runtime and one HTTP client for all reads of servers, the
//! rules for redirects between servers, events of new connections; and what all servers of Swathe
//! that are written in Rust share.
#![warn(missing_docs)]

mod causes;
pub mod connect_events;
mod run_delay;
mod runtime;
pub mod server;

pub use causes::{root_cause, why};
pub use run_delay::core_wait;
pub use runtime::{
    Net, REDIRECTS, RefusedRedirect, check_private, client, confine, host, is_here, keeping_method,
    leads_away, net, staying,
};
