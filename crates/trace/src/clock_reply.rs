//! The answer to a collector that asks for a sender's clock: the event `CLOCK_REPLY`.

use crate::ulm::{Line, UlmError, parse};

const EVENT: &str = "CLOCK_REPLY";
const ECHO_KEY: &str = "ECHO";
const RECEIVED_KEY: &str = "RECEIVED";

/// The three times of an answer, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReply {
    /// Time of the question, by the collector's clock.
    pub asked_ns: i64,
    /// Time of its arrival, by the sender's clock.
    pub received_ns: i64,
    /// Time of the answer, by the sender's clock; written to the microsecond.
    pub sent_ns: i64,
}

impl ClockReply {
    /// The event of this process.
    pub(crate) fn line(self, host: &str, prog: &str) -> Line {
        let fields = [
            ("PID", std::process::id().into()),
            (ECHO_KEY, self.asked_ns),
            (RECEIVED_KEY, self.received_ns),
        ];
        Line {
            time_ns: self.sent_ns,
            host: host.into(),
            prog: prog.into(),
            level: "Usage".into(),
            event: EVENT.into(),
            fields: fields.map(|(key, value): (&str, i64)| (key.into(), value.to_string())).into(),
        }
    }

    /// Parse a line, without its newline; `None` if it is another event.
    ///
    /// # Errors
    /// If the line is not an event, or an answer without its times.
    pub fn parse(line: &[u8]) -> Result<Option<ClockReply>, UlmError> {
        let line = parse(line)?;
        if line.event != EVENT {
            return Ok(None);
        }
        let time_ns = |key| {
            let field = line.fields.iter().find(|(other, _)| other == key);
            let (_, text) = field.ok_or(UlmError::Missing { key })?;
            text.parse().map_err(|_| UlmError::Nanoseconds { key, found: text.clone() })
        };
        let (asked_ns, received_ns) = (time_ns(ECHO_KEY)?, time_ns(RECEIVED_KEY)?);
        Ok(Some(ClockReply { asked_ns, received_ns, sent_ns: line.time_ns }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let reply = ClockReply { asked_ns: 12, received_ns: 3, sent_ns: 1_795_224_638_055_784_000 };
        let mut line = Vec::new();
        reply.line("a \" NL.EVNT=X b", "p").push(&mut line);
        assert_eq!(ClockReply::parse(&line), Ok(Some(reply)));
    }

    #[test]
    fn what_is_no_answer() {
        let parse_rest = |rest: &str| {
            let line = format!("DATE=20261121013038.0 HOST=h PROG=p LVL=Usage NL.EVNT={rest}");
            ClockReply::parse(line.as_bytes())
        };
        assert_eq!(parse_rest("OTHER REASON=\" NL.EVNT=CLOCK_REPLY ECHO=1 RECEIVED=2\""), Ok(None));
        assert_eq!(parse_rest("CLOCK_REPLY ECHO=1"), Err(UlmError::Missing { key: RECEIVED_KEY }));
        for found in ["x", "99999999999999999999"] {
            let error = UlmError::Nanoseconds { key: ECHO_KEY, found: found.into() };
            assert_eq!(parse_rest(&format!("CLOCK_REPLY ECHO={found} RECEIVED=1")), Err(error));
        }
    }
}
