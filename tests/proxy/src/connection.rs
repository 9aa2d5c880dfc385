//! One connection: four threads, two per direction with a pipe between them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use crate::exchange::{Exchange, Request};
use crate::http::{self, Body, Feed};
use crate::link::Link;
use crate::pipe::{Ending, Item, Pipe};
use crate::settings::Fate;
use crate::window::Window;
use crate::{ProxyState, system};

const READ_BYTES: usize = 1 << 16;
const FOREVER: Duration = Duration::from_secs(1 << 30);

struct Connection<'a> {
    state: &'a ProxyState,
    accept_time: Instant,
    client: TcpStream,
    upstream: TcpStream,
    up: Pipe,
    down: Pipe,
    link: Link,
    window: Window,
    exchange: Exchange,
}

/// Serves a client until either side ends. Both sockets close with the last thread, so that a
/// reset is one.
pub(crate) fn run(state: &ProxyState, client: TcpStream, upstream: &str) {
    let accept_time = Instant::now();
    state.stats.connections.fetch_add(1, Relaxed);
    let Ok(upstream) = TcpStream::connect(upstream) else {
        system::reset_on_close(&client);
        return;
    };
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let connection = Connection {
        state,
        accept_time,
        client,
        upstream,
        up: Pipe::new(),
        down: Pipe::new(),
        link: Link::new(),
        window: Window::new(),
        exchange: Exchange::new(),
    };
    thread::scope(|scope| {
        scope.spawn(|| connection.read_client());
        scope.spawn(|| connection.write_upstream());
        scope.spawn(|| connection.read_upstream());
        connection.write_client();
    });
}

impl Connection<'_> {
    fn read_client(&self) {
        loop {
            let data = match read(&self.client) {
                Ok(data) => data,
                Err(_) => return self.end(),
            };
            let rtt = self.state.settings().rtt;
            let start = Instant::now().max(self.accept_time + rtt);
            if data.is_empty() {
                self.exchange.end_client();
                self.up.push(Item::End(Ending::Close), start, rtt / 2);
                return;
            }
            self.state.stats.up(data.len());
            if !self.up.push(Item::Data(data), start, rtt / 2) {
                return;
            }
        }
    }

    fn write_upstream(&self) {
        let mut feed = Feed::new(|| match self.up.pop() {
            Some(Item::Data(data)) => Some(data),
            _ => None,
        });
        while let Some(head) = feed.head(http::may_be_request) {
            if !self.exchange.wait_for_turn() {
                return;
            }
            let settings = self.state.settings();
            let fate = self.state.generator.lock().unwrap().fate(&settings);
            let stats = &self.state.stats;
            stats.requests.fetch_add(1, Relaxed);
            let body = http::request_body(&head);
            let passes = match fate {
                Fate::Hang => {
                    stats.hangs.fetch_add(1, Relaxed);
                    self.exchange.sleep(FOREVER);
                    return self.end();
                }
                Fate::Unavailable | Fate::SlowDown => {
                    feed.body(body, |_| true);
                    self.refuse(fate, http::asks_to_close(&head), settings.retry_after_s)
                }
                _ => {
                    let head_only = http::is_head_request(&head);
                    self.exchange.begin(Request { head_only, fate });
                    self.send_up(&head) && feed.body(body, |some| self.send_up(&some))
                }
            };
            if !passes {
                return self.up.close();
            }
        }
        feed.body(Body::UntilClose, |some| self.send_up(&some));
        let _ = self.upstream.shutdown(Shutdown::Write);
        self.up.close();
    }

    /// Answers instead of the server; false when that was the last answer.
    fn refuse(&self, fate: Fate, close: bool, after_s: u64) -> bool {
        let stats = &self.state.stats;
        let (status, count) = match fate {
            Fate::SlowDown => ("429 Too Many Requests", &stats.slow_downs),
            _ => ("503 Service Unavailable", &stats.unavailable),
        };
        count.fetch_add(1, Relaxed);
        let head =
            format!("HTTP/1.1 {status}\r\nRetry-After: {after_s}\r\nContent-Length: 0\r\n\r\n");
        self.send_down(head.as_bytes());
        if close {
            self.end_down(Ending::Close);
        }
        !close
    }

    fn read_upstream(&self) {
        let mut feed = Feed::new(|| {
            let data = read(&self.upstream).ok().filter(|data| !data.is_empty());
            system::acknowledge(&self.upstream);
            data
        });
        let ending = self.pass_answers(&mut feed);
        let _ = self.upstream.shutdown(Shutdown::Both);
        self.end_down(ending);
    }

    /// Ends what goes to the client, after what is under way.
    fn end_down(&self, ending: Ending) {
        self.down.push(Item::End(ending), Instant::now(), self.state.settings().rtt / 2);
    }

    /// Passes answers on until the server ends, or a fault.
    fn pass_answers(&self, feed: &mut Feed<impl FnMut() -> Option<Vec<u8>>>) -> Ending {
        while let Some(head) = feed.head(http::may_be_answer) {
            let Some(request) = self.exchange.request().filter(|_| http::status(&head) != 101)
            else {
                self.send_down(&head);
                break;
            };
            let interim = http::status(&head) < 200;
            let body = http::answer_body(&head, request.head_only);
            if !self.send_down(&head) {
                return Ending::Close;
            }
            if interim {
                continue;
            }
            if let Body::Length(length) = body
                && let Some((ending, place)) = self.fault(request.fate, length)
            {
                feed.body(Body::Length(place), |some| self.send_down(&some));
                return ending;
            }
            if !feed.body(body, |some| self.send_down(&some)) {
                return Ending::Close;
            }
            self.exchange.finish();
        }
        feed.body(Body::UntilClose, |some| self.send_down(&some));
        Ending::Close
    }

    /// How an answer is cut, and after how many bytes of its body.
    fn fault(&self, fate: Fate, length: u64) -> Option<(Ending, u64)> {
        let stats = &self.state.stats;
        let (ending, place, count) = match fate {
            _ if length == 0 => return None,
            Fate::Reset(place) => (Ending::Reset, place, &stats.resets),
            Fate::Truncate(place) => (Ending::Close, place, &stats.truncations),
            Fate::Stall(place) => {
                (Ending::Stall(self.state.settings().stall_time), place, &stats.stalls)
            }
            _ => return None,
        };
        count.fetch_add(1, Relaxed);
        Some((ending, ((length as f64 * place) as u64).min(length - 1)))
    }

    fn write_client(&self) {
        while let Some(item) = self.down.pop() {
            match item {
                Item::Data(data) => {
                    self.state.stats.down(data.len());
                    if (&self.client).write_all(&data).is_err() {
                        break;
                    }
                }
                Item::End(Ending::Reset) => {
                    system::reset_on_close(&self.client);
                    let _ = self.client.shutdown(Shutdown::Read); // wakes the reader, sends nothing
                    break;
                }
                Item::End(ending) => {
                    if let Ending::Stall(time) = ending {
                        self.exchange.sleep(time);
                    }
                    let _ = self.client.shutdown(Shutdown::Both);
                    break;
                }
            }
        }
        self.end();
    }

    /// Sends bytes over the link and on to the server; false when it is gone.
    fn send_up(&self, data: &[u8]) -> bool {
        let settings = self.state.settings();
        let rate = settings.upload_bytes_per_s;
        data.chunks(Link::turn(rate, settings.turn)).all(|some| {
            self.state.upload.send(some.len(), rate);
            (&self.upstream).write_all(some).is_ok()
        })
    }

    /// Sends bytes over the links and off to the client; false when it is gone.
    fn send_down(&self, data: &[u8]) -> bool {
        let mut rest = data;
        while !rest.is_empty() {
            let settings = self.state.settings();
            let (own, common) = (settings.connection_bytes_per_s, settings.shared_bytes_per_s);
            let most = Link::turn(own, settings.turn).min(Link::turn(common, settings.turn));
            let turn = most.min(Window::turn(settings.window_bytes)).min(rest.len());
            let (some, others) = rest.split_at(turn);
            self.window.wait_for_room(turn, settings.window_bytes);
            self.link.send(turn, own);
            self.state.stats.busy(self.state.link.send(turn, common));
            if settings.window_bytes > 0 {
                self.window.count(turn, settings.rtt);
            }
            if !self.down.push(Item::Data(some.to_vec()), Instant::now(), settings.rtt / 2) {
                return false;
            }
            rest = others;
        }
        true
    }

    /// Wakes every thread.
    fn end(&self) {
        self.exchange.end();
        self.up.close();
        self.down.close();
        let _ = self.client.shutdown(Shutdown::Read);
        let _ = self.upstream.shutdown(Shutdown::Both);
    }
}

/// Some bytes; empty at the end.
fn read(mut socket: &TcpStream) -> io::Result<Vec<u8>> {
    let mut data = vec![0; READ_BYTES];
    let length = socket.read(&mut data)?;
    data.truncate(length);
    Ok(data)
}
