//! `swathe-proxy`: the proxy as a process, ruled through its standard input.
//!
//! `stats` prints a line of JSON, `clear` sets the counts to zero, `set NAME VALUE` changes a
//! setting; the last two answer `ok` or `error: ...`. The process ends with its standard input.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use swathe_test_proxy::{Proxy, Settings};

const USAGE: &str = "\
swathe-proxy --upstream HOST:PORT [--listen PORT] [--NAME VALUE]...
  --rtt-ms F                   round-trip time
  --connection-bytes-per-s N   bandwidth of each connection, 0: no limit
  --shared-bytes-per-s N       bandwidth of all connections together, 0: no limit
  --upload-bytes-per-s N       the same of what clients send
  --window-bytes N             TCP window of each connection, 0: 16 MiB
  --turn-ms F                  what is sent in so long goes out at once
  --seed N                     of the faults
  --reset P                    chance that a connection is reset in the middle of a body
  --truncate P                 chance that it is closed in the middle of a body
  --stall P, --stall-s F       chance that a body stops for so long, and is then cut
  --hang P                     chance that a request is never answered
  --unavailable P              chance of a 503 with Retry-After
  --slow-down P                chance of a 429 with Retry-After
  --retry-after N              seconds";

fn main() -> ExitCode {
    match start() {
        Ok(proxy) => {
            listen_to_input(&proxy);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn start() -> Result<Proxy, String> {
    let (mut port, mut upstream, mut settings) = (0, None, Settings::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let name = name.strip_prefix("--").ok_or_else(|| format!("what is `{name}`?"))?.to_owned();
        let value = arguments.next().ok_or_else(|| format!("--{name} needs a value"))?;
        match name.as_str() {
            "listen" => port = value.parse().map_err(|_| format!("no port: {value}"))?,
            "upstream" => upstream = Some(value),
            _ => settings.set(&name, &value)?,
        }
    }
    let upstream = upstream.ok_or("--upstream is needed")?;
    let proxy = Proxy::start(port, upstream, settings).map_err(|error| error.to_string())?;
    println!("listening {}", proxy.address());
    Ok(proxy)
}

fn listen_to_input(proxy: &Proxy) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match words[..] {
            ["stats"] => proxy.stats().json(),
            ["clear"] => {
                proxy.stats().clear();
                "ok".to_owned()
            }
            ["set", name, value] => match proxy.set(name, value) {
                Ok(()) => "ok".to_owned(),
                Err(message) => format!("error: {message}"),
            },
            _ => format!("error: what is `{line}`?"),
        };
        println!("{answer}");
        let _ = std::io::stdout().flush();
    }
}
