//! As much of HTTP/1 as tells where a request or an answer ends.

/// The longest head that is looked for.
const MOST_HEAD_BYTES: usize = 1 << 16;

/// What comes after a head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Body {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Whether bytes may be the beginning of a request.
pub(crate) fn may_be_request(bytes: &[u8]) -> bool {
    let method = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    method <= 16 && bytes[..method].iter().all(u8::is_ascii_uppercase)
}

/// Whether bytes may be the beginning of an answer.
pub(crate) fn may_be_answer(bytes: &[u8]) -> bool {
    bytes.iter().zip(b"HTTP/1.").all(|(byte, other)| byte == other)
}

/// Whether the head of a request asks for no body.
pub(crate) fn is_head_request(head: &[u8]) -> bool {
    head.starts_with(b"HEAD ")
}

/// Whether the client wants the connection closed after the answer.
pub(crate) fn asks_to_close(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = text.lines();
    lines.next().is_some_and(|first| first.ends_with("http/1.0"))
        || lines.any(|line| line.strip_prefix("connection:").is_some_and(|v| v.trim() == "close"))
}

/// The body of a request with this head.
pub(crate) fn request_body(head: &[u8]) -> Body {
    match length_of(head) {
        Body::UntilClose => Body::Length(0),
        body => body,
    }
}

/// The status of an answer with this head.
pub(crate) fn status(head: &[u8]) -> u16 {
    let status = head.split(|byte| *byte == b' ').nth(1);
    status.and_then(|status| str::from_utf8(status).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// The body of an answer with this head (RFC 9112, 6.3).
pub(crate) fn answer_body(head: &[u8], head_only: bool) -> Body {
    if head_only || matches!(status(head), 204 | 304) { Body::Length(0) } else { length_of(head) }
}

fn length_of(head: &[u8]) -> Body {
    let mut body = Body::UntilClose;
    for line in String::from_utf8_lossy(head).lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return Body::Chunked;
        }
        if name.eq_ignore_ascii_case("content-length")
            && let Ok(length) = value.trim().parse()
        {
            body = Body::Length(length);
        }
    }
    body
}

/// Where a chunked body ends.
#[derive(Default)]
pub(crate) struct Chunks {
    line: Vec<u8>,
    rest: u64,
    in_trailer: bool,
}

impl Chunks {
    /// How many of these bytes belong to the body, and whether it ends with them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            if self.rest > 0 {
                let some = self.rest.min((bytes.len() - at) as u64);
                self.rest -= some;
                at += some as usize;
                continue;
            }
            self.line.push(bytes[at]);
            at += 1;
            if !self.line.ends_with(b"\n") {
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).trim().to_owned();
            self.line.clear();
            if self.in_trailer {
                if line.is_empty() {
                    return (at, true);
                }
                continue;
            }
            let size = line.split(';').next().unwrap_or_default().trim();
            match u64::from_str_radix(size, 16) {
                Ok(0) => self.in_trailer = true,
                Ok(size) => self.rest = size.saturating_add(2), // the line end after it
                Err(_) => {}
            }
        }
        (at, false)
    }
}

/// Bytes as they come, with those that were read too far.
pub(crate) struct Feed<F> {
    more: F,
    buffer: Vec<u8>,
}

impl<F: FnMut() -> Option<Vec<u8>>> Feed<F> {
    pub(crate) fn new(more: F) -> Self {
        Self { more, buffer: Vec::new() }
    }

    /// The next head, with the empty line after it. None at the end and where there is none: the
    /// bytes are then still to be taken.
    pub(crate) fn head(&mut self, may_be: fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let mut start = 0;
        loop {
            if !may_be(&self.buffer) || self.buffer.len() > MOST_HEAD_BYTES {
                return None;
            }
            if let Some(at) = self.buffer[start..].windows(4).position(|end| end == b"\r\n\r\n") {
                let rest = self.buffer.split_off(start + at + 4);
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            start = self.buffer.len().saturating_sub(3);
            self.buffer.extend((self.more)()?);
        }
    }

    /// Some bytes, at most so many; none at the end.
    pub(crate) fn take(&mut self, most: u64) -> Option<Vec<u8>> {
        let mut some = std::mem::take(&mut self.buffer);
        if some.is_empty() {
            some = (self.more)()?;
        }
        if some.len() as u64 > most {
            self.buffer = some.split_off(most as usize);
        }
        Some(some)
    }

    /// Gives a body to `each`, in pieces; false when it or the bytes end before the body does.
    pub(crate) fn body(&mut self, body: Body, mut each: impl FnMut(Vec<u8>) -> bool) -> bool {
        match body {
            Body::Length(mut rest) => {
                while rest > 0 {
                    let Some(some) = self.take(rest) else { return false };
                    rest -= some.len() as u64;
                    if !each(some) {
                        return false;
                    }
                }
                true
            }
            Body::Chunked => {
                let mut chunks = Chunks::default();
                while let Some(mut some) = self.take(u64::MAX) {
                    let (length, is_end) = chunks.take(&some);
                    self.buffer = some.split_off(length);
                    if !each(some) {
                        return false;
                    }
                    if is_end {
                        return true;
                    }
                }
                false
            }
            Body::UntilClose => {
                while let Some(some) = self.take(u64::MAX) {
                    if !each(some) {
                        break;
                    }
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_long_as_their_heads_say() {
        let head = |lines: &str| format!("HTTP/1.1 {lines}\r\n\r\n").into_bytes();
        for (lines, head_only, expected) in [
            ("200 OK\r\nContent-Length: 7", false, Body::Length(7)),
            ("206 Partial Content\r\ncontent-length:7", false, Body::Length(7)),
            ("200 OK\r\nContent-Length: 7", true, Body::Length(0)),
            ("304 Not Modified\r\nContent-Length: 7", false, Body::Length(0)),
            ("204 No Content", false, Body::Length(0)),
            ("200 OK\r\nTransfer-Encoding: chunked", false, Body::Chunked),
            ("200 OK", false, Body::UntilClose),
        ] {
            assert_eq!(answer_body(&head(lines), head_only), expected, "{lines}");
        }
        assert_eq!(request_body(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Body::Length(0));
    }

    #[test]
    fn close_is_asked_for_by_header_or_version() {
        for (head, expected) in [
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nconnection: Keep-Alive\r\n\r\n", false),
            ("GET / HTTP/1.1\r\n\r\n", false),
            ("GET / HTTP/1.0\r\n\r\n", true),
        ] {
            assert_eq!(asks_to_close(head.as_bytes()), expected, "{head}");
        }
    }

    #[test]
    fn heads_and_bodies_are_found_however_bytes_are_cut() {
        let chunks = b"5;a=b\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\nx: y\r\n\r\n";
        let mut whole = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
        whole.extend(chunks);
        whole.extend(b"HTTP/1.1 206 P\r\n\r\nab");
        for size in 1..whole.len() {
            let mut pieces = whole.chunks(size).map(<[u8]>::to_vec);
            let mut feed = Feed::new(|| pieces.next());
            assert!(feed.head(may_be_answer).unwrap().starts_with(b"HTTP/1.1 200"));
            let mut body = Vec::new();
            assert!(feed.body(Body::Chunked, |some| {
                body.extend(some);
                true
            }));
            assert_eq!(body, chunks);
            assert_eq!(status(&feed.head(may_be_answer).unwrap()), 206);
            assert!(feed.body(Body::Length(2), |_| true));
            assert!(feed.head(may_be_answer).is_none());
        }
    }

    #[test]
    fn other_protocols_are_not_requests() {
        for bytes in [&[0; 20][..], &[0x16, 3, 1], b"get / ", b"ABCDEFGHIJKLMNOPQR"] {
            assert!(!may_be_request(bytes), "{bytes:?}");
        }
        for bytes in [&b""[..], b"GE", b"GET / HTTP/1.1"] {
            assert!(may_be_request(bytes), "{bytes:?}");
        }
    }
}
