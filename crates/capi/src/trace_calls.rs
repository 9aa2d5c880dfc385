//! The calls that record events.

use crate::boundary::{SUCCESS, guard, optional_text, text_of};
use crate::fault::Fault;
use libc::{c_char, c_int};
use swathe_trace::{Ids, Level};

/// Keys that every event has of itself.
const OWN: [&str; 7] = ["DATE", "HOST", "PROG", "LVL", "NL.EVNT", "PID", "THREAD"];

/// Record events from now on: those of sw_trace_event and those of the library itself.
///
/// place: where they go, as of `swathe --trace`: a file, "tcp://HOST:PORT" of a collector,
/// "stderr", "syslog", "memory:FILE". {pid} and {host} in it are replaced.
/// program: the name of the program in the events.
/// The token of a collector is that of SWATHE_TRACE_TOKEN.
///
/// Returns 0. Errors: EBUSY (events are recorded already), EINVAL (no place), those of the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_trace_open(place: *const c_char, program: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: texts of the caller.
        let (place, program) = unsafe { (text_of("place", place)?, text_of("program", program)?) };
        let host = host_name()?;
        let place = place.replace("{pid}", &std::process::id().to_string());
        let place = place.replace("{host}", &host);
        let token = std::env::var("SWATHE_TRACE_TOKEN").ok();
        swathe_trace::start(&place, program, &host, token)?;
        Ok(SUCCESS)
    })
}

/// Record an event. It costs little if events are not recorded.
///
/// name: of A-Z, 0-9, '.', '_', '-'. A stage has two events, NAME_START and NAME_END.
/// fields: as in a line of ULM: "TARGET=star-17 BYTES=25920 REASON=\"no such star\"", with the
/// escapes \", \\, \n, \r, \t; NULL for none. RESULT=error makes it an error.
///
/// Returns 0. Errors: EINVAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_trace_event(name: *const c_char, fields: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: texts of the caller.
        let (name, fields) = unsafe { (text_of("name", name)?, optional_text("fields", fields)?) };
        if !swathe_trace::is_key(name) {
            let expected = "A-Z first, then A-Z, 0-9, '.', '_' and '-', 64 at most";
            return Err(Fault::invalid(format!("name: expected {expected}, found {name:?}")));
        }
        let (level, ids) = parse(fields.unwrap_or_default())?;
        swathe_trace::event(level, name, &ids, |_| {});
        Ok(SUCCESS)
    })
}

fn parse(fields: &str) -> Result<(Level, Ids), Fault> {
    let (mut level, mut ids) = (Level::Usage, Ids::default());
    if fields.is_empty() {
        return Ok((level, ids));
    }
    let fields = swathe_trace::parse_fields(fields.as_bytes())
        .map_err(|error| Fault::invalid(format!("fields: {error}")))?;
    for (key, value) in fields {
        if OWN.contains(&&key[..]) {
            let text = format!("fields: expected others, found {key}, which every event has");
            return Err(Fault::invalid(text));
        }
        if key == "RESULT" && value == "error" {
            level = Level::Error;
        }
        ids.push(&key, &value);
    }
    Ok((level, ids))
}

/// Stop recording, and wait up to ten seconds until all events are written.
///
/// Returns 0, also if nothing was recorded. Errors: EIO if events were dropped.
#[unsafe(no_mangle)]
pub extern "C" fn sw_trace_close() -> c_int {
    guard(|| match swathe_trace::stop() {
        Some(counts) if counts.dropped_events > 0 => {
            let (dropped_count, count) = (counts.dropped_events, counts.recorded_events);
            let text = format!("events: expected {count} to be written, {dropped_count} were not");
            Err(Fault::new(libc::EIO, text))
        }
        _ => Ok(SUCCESS),
    })
}

fn host_name() -> Result<String, Fault> {
    let mut name = [0u8; 256];
    // SAFETY: the memory is ours, and the last byte stays zero.
    let result = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    if result != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Fault::new(libc::EIO, format!("the name of this machine: {error}")));
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_a_line() {
        assert!(matches!(parse("A=1 RESULT=error"), Ok((Level::Error, _))));
        assert!(matches!(parse(r#"A="two words" RESULT=ok"#), Ok((Level::Usage, _))));
        assert!(parse("").is_ok());
        for fields in ["a=1", "A", "A=1  B=2", "A=1 A=2", "PID=1", "A=\"x", "A= B=1"] {
            assert_eq!(parse(fields).map(|_| ()).unwrap_err().errno, libc::EINVAL, "{fields}");
        }
    }
}
