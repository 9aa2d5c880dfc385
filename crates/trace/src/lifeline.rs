//! Ids that join the events of a request in all processes that it passes.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The header that carries it: W3C Trace Context.
pub const LIFELINE_HEADER: &str = "traceparent";

/// The id of a request, in a trace of the process that made it. No other process has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifeline {
    trace: u128,
    request: u64,
}

impl Lifeline {
    /// The lifeline of a request of this process, by its number: always the same.
    pub fn of_request(number: u64) -> Lifeline {
        static SALT: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // A fork has the salt and the numbers of its parent.
        let process = std::process::id();
        let half = |name: &str| u128::from(SALT.hash_one((process, name)));
        let trace = half("first") << 64 | half("second");
        Lifeline { trace: trace.max(1), request: SALT.hash_one((process, number)).max(1) }
    }

    /// Its id, as events have it.
    pub fn id(self) -> u64 {
        self.request
    }

    /// The value of the header.
    pub fn header(self) -> String {
        format!("00-{:032x}-{:016x}-01", self.trace, self.request)
    }

    /// Parse the header of any client; `None` if it is none.
    pub fn parse(header: &str) -> Option<Lifeline> {
        let (version, rest) = header.split_at_checked(3)?;
        let (trace, rest) = rest.split_at_checked(32)?;
        let (request, flags) = rest.strip_prefix('-')?.split_at_checked(16)?;
        let is_hex =
            |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // Later versions may have more at their end.
        let is_known =
            version.strip_suffix('-').is_some_and(|number| is_hex(number) && number != "ff");
        let has_flags = flags.len() == 3 || !version.starts_with("00") && flags.len() > 3;
        if !is_known || !has_flags || !flags.starts_with('-') || !is_hex(trace) || !is_hex(request)
        {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|&trace| trace > 0)?;
        let request = u64::from_str_radix(request, 16).ok().filter(|&request| request > 0)?;
        Some(Lifeline { trace, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn a_request_has_one_lifeline_and_its_header_brings_it_back() {
        let lines: HashSet<u64> = (1..10_000).map(|n| Lifeline::of_request(n).id()).collect();
        assert_eq!(lines.len(), 9999);
        let line = Lifeline::of_request(7);
        assert_eq!(line, Lifeline::of_request(7));
        assert_eq!(Lifeline::parse(&line.header()), Some(line));
    }

    #[test]
    fn headers_of_other_clients_are_lifelines_if_they_are_right() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let id = |text: &str| Lifeline::parse(text).map(Lifeline::id);
        let right = format!("00-{trace}-b7ad6b7169203331-01");
        assert_eq!(id(&right), Some(0xb7ad_6b71_6920_3331));
        assert_eq!(
            id(&format!("cc-{trace}-b7ad6b7169203331-01-more")),
            Some(0xb7ad_6b71_6920_3331)
        );
        for wrong in [
            String::new(),
            format!("{right}-more"),
            right.replace("00-", "ff-"),
            right.replacen("00-", "0\u{e9}", 1),
            right.to_uppercase(),
            right.replace('-', "_"),
            format!("00-{trace}-0000000000000000-01"),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            right[..50].to_string(),
        ] {
            assert_eq!(id(&wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_header_harms(header in ".{0,80}") {
            Lifeline::parse(&header);
        }
    }
}
