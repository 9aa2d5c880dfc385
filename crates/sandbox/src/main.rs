//! `swathe-sandbox`: run a program in a box, or check which boxes this machine has.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use swathe_sandbox::{Error, Report, Request, UserRange, check, run};

const HELP: &str = "\
Usage: swathe-sandbox run [--leash]
       swathe-sandbox check [--users FIRST:COUNT]

run    Run the program of a request in a sandbox. The request is JSON on standard
       input; the report is JSON on standard output. Exit code: 0 the program ended
       well, 1 it failed or exceeded a limit, 2 it was not run.
       --leash  The request is one line, and the end of standard input after it
                cancels the run.
check  Try each kind of sandbox on this machine; the result is JSON on standard
       output. Exit code: 0 a sandbox holds, 1 none does.
       --users  User ids for programs, if it is started as root.

docs/sandbox.md describes requests and reports.
";
/// Longest request, in bytes.
const LONGEST_REQUEST: u64 = 1 << 20;
const USAGE: u8 = 64;

fn main() -> ExitCode {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run"] => run_request(false),
        ["run", "--leash"] => run_request(true),
        ["check"] => print_check(None),
        ["check", "--users", range] => match parse_range(range) {
            Some(range) => print_check(Some(range)),
            None => {
                usage(&format!("--users: expected FIRST:COUNT, found {range}\n\n{HELP}"), USAGE)
            }
        },
        ["--help" | "-h"] => usage(HELP, 0),
        ["--version"] => usage(concat!("swathe-sandbox ", env!("CARGO_PKG_VERSION"), "\n"), 0),
        _ => usage(HELP, USAGE),
    }
}

fn run_request(has_leash: bool) -> ExitCode {
    let report = match read_request(has_leash).and_then(|text| Request::parse(&text)) {
        Ok(request) => {
            let input = std::io::stdin();
            run(&request, has_leash.then(|| input.as_fd()))
        }
        Err(error) => Report::failure(&error),
    };
    print(&report, report.exit_code())
}

/// Read the request: all of standard input, or with a leash its first line.
fn read_request(has_leash: bool) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    let mut input = BufReader::new(std::io::stdin().lock().take(LONGEST_REQUEST + 1));
    let result = match has_leash {
        true => input.read_until(b'\n', &mut text).map(drop),
        false => input.read_to_end(&mut text).map(drop),
    };
    match result {
        Err(error) => Err(Error::Io { what: "request".into(), source: error }),
        Ok(()) if text.len() as u64 > LONGEST_REQUEST => {
            Err(Error::Request(format!("request: expected {LONGEST_REQUEST} bytes at most")))
        }
        Ok(()) => Ok(text),
    }
}

fn print_check(users: Option<UserRange>) -> ExitCode {
    let check = check(users);
    print(&check, u8::from(!check.modes.iter().any(|mode| mode.holds)))
}

fn parse_range(text: &str) -> Option<UserRange> {
    let (first, count) = text.split_once(':').unwrap_or((text, "1"));
    UserRange::new(first.parse().ok()?, count.parse().ok()?)
}

fn print(value: &impl serde::Serialize, exit_code: u8) -> ExitCode {
    let text = serde_json::to_string(value).expect("numbers and texts can be written as JSON");
    usage(&format!("{text}\n"), exit_code)
}

fn usage(text: &str, exit_code: u8) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(exit_code),
        Err(_) => ExitCode::from(USAGE),
    }
}
