//! Plans: which byte ranges to read for a set of segments, and what that costs. Numbers in,
//! values out; no I/O.
#![warn(missing_docs)]

mod correction;
mod costs;
mod ledger;
mod many_ranges;
mod planner;
mod rent_or_buy;
mod schedule;
mod windows;

pub use correction::{Correction, Factors, Transfer, Wait};
pub use costs::{Busy, Costs, CostsError, Curve, Load, Requests};
pub use ledger::{InFlight, Ledger, LedgerEntry, Objective, Others, ReaderGroup, Sharing};
pub use many_ranges::{Connections, MultiRange, MultiplexCosts, part_of};
pub use planner::{Caps, Plan, TIE, Way, plan, soonest};
pub use rent_or_buy::{Choice, RentOrBuy};
pub use schedule::{Compute, Step, Task, WriteCosts, finish_s, paced_s};
pub use windows::{Break, Reach, windows};
