//! Answers with several ranges of an object (`multipart/byteranges`, RFC 9110, 14.6): bytes in,
//! checked pieces out. No I/O.
//!
//! A part ends by its length, which its `Content-Range` says; the boundary is never looked for in
//! data. Each part must be one that was requested, or several that the server merged, and none
//! comes twice. What does not fit is an error.
//!
//! A block server that is asked for it sends the ranges one after the other, without anything between
//! them ([`JOINED_HEADER`]): between rows of 200 bytes there are 100 otherwise.

use std::ops::Range;

/// Header of a request for many ranges: `yes` if they may come in their order, with nothing between
/// them. An answer that is so has it with the size of the object.
pub const JOINED_HEADER: &str = "swathe-joined";

/// Longest line between parts: a header, or the boundary.
const LINE_BYTES: usize = 1024;
/// Most headers of a part.
const HEADERS: u32 = 16;
/// Most empty lines before a boundary, and bytes after the last.
const EMPTY_LINES: u32 = 2;
const EPILOGUE_BYTES: usize = 1024;
/// Longest boundary: RFC 2046 allows 70.
const BOUNDARY_BYTES: usize = 200;

/// An answer that is not what was requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: expected {expected}, found {found}")]
pub struct MultipartError {
    /// The part of the answer that is wrong.
    pub what: &'static str,
    /// Its expected form.
    pub expected: String,
    /// Its form.
    pub found: String,
}

fn wrong(what: &'static str, expected: impl ToString, found: &[u8]) -> MultipartError {
    let found: String = String::from_utf8_lossy(found).chars().take(80).collect();
    MultipartError { what, expected: expected.to_string(), found: format!("{found:?}") }
}

/// The range in a `Content-Range`, and the size of the object if given.
pub fn parse_content_range(text: &str) -> Option<(Range<u64>, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let range = first.parse().ok()?..last.parse::<u64>().ok()?.checked_add(1)?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((range, total))
}

/// The state of an answer that is being received.
#[derive(Debug)]
pub struct Multipart {
    /// Ascending, disjoint, not empty.
    ranges: Vec<Range<u64>>,
    /// Whether each of these is in a part that began.
    has_begun: Vec<bool>,
    size: u64,
    /// Empty if there is one part.
    delimiter: Vec<u8>,
    /// Whether the ranges come with nothing between them.
    is_joined: bool,
    state: State,
    line: Vec<u8>,
    parts: u32,
    last_start: Option<u64>,
    is_ordered: bool,
}

#[derive(Debug)]
enum State {
    /// Before a part.
    Delimiter { empty_lines: u32 },
    /// In its headers.
    Headers { count: u32, range: Option<Range<u64>> },
    /// In its data: those that are left.
    Data { range: Range<u64> },
    /// After the last boundary, or after a single range.
    End { bytes: usize },
}

impl Multipart {
    /// The answer to a request for ranges, ascending, disjoint and not empty, of an object of
    /// `size` bytes. `content_type` is its header.
    ///
    /// # Errors
    /// If it is no multipart answer.
    pub fn new(
        content_type: &str,
        ranges: Vec<Range<u64>>,
        size: u64,
    ) -> Result<Multipart, MultipartError> {
        let delimiter = boundary(content_type)
            .filter(|boundary| (1..=BOUNDARY_BYTES).contains(&boundary.len()))
            .map(|boundary| format!("--{boundary}").into_bytes())
            .ok_or_else(|| {
                let expected = "multipart/byteranges with a boundary";
                wrong("Content-Type", expected, content_type.as_bytes())
            })?;
        Ok(Multipart::start(ranges, size, delimiter))
    }

    /// The answer of a server that sends one range, which its header says, in place of several.
    ///
    /// # Errors
    /// If that was not requested.
    pub fn single(
        content_range: &str,
        ranges: Vec<Range<u64>>,
        size: u64,
    ) -> Result<Multipart, MultipartError> {
        let mut single = Multipart::start(ranges, size, Vec::new());
        let range = single.check_range(content_range)?;
        single.begin(range)?;
        Ok(single)
    }

    /// The answer of a server that sends the ranges one after the other, of an object of the size that
    /// `header` says.
    ///
    /// # Errors
    /// If that is another.
    pub fn sequence(
        header: &str,
        ranges: Vec<Range<u64>>,
        size: u64,
    ) -> Result<Multipart, MultipartError> {
        if header.parse() != Ok(size) {
            let expected = format!("an object of {size} bytes");
            return Err(wrong("ranges that are joined", expected, header.as_bytes()));
        }
        let mut sequence = Multipart::start(ranges, size, Vec::new());
        sequence.is_joined = true;
        sequence.begin_next()?;
        Ok(sequence)
    }

    /// Begin the next range of an answer that is joined.
    fn begin_next(&mut self) -> Result<(), MultipartError> {
        match self.ranges.get(self.parts as usize).cloned() {
            Some(range) => self.begin(range),
            None => {
                self.state = State::End { bytes: EPILOGUE_BYTES };
                Ok(())
            }
        }
    }

    fn start(ranges: Vec<Range<u64>>, size: u64, delimiter: Vec<u8>) -> Multipart {
        Multipart {
            is_joined: false,
            has_begun: vec![false; ranges.len()],
            ranges,
            size,
            delimiter,
            state: State::Delimiter { empty_lines: 0 },
            line: Vec::new(),
            parts: 0,
            last_start: None,
            is_ordered: true,
        }
    }

    /// Take the next bytes; `sink` is given those of requested ranges, with the number of the range.
    /// They are to be used only if no later call fails.
    ///
    /// # Errors
    /// If the answer is not what was requested.
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        sink: &mut impl FnMut(usize, &[u8]),
    ) -> Result<(), MultipartError> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Data { range } => {
                    let length = (range.end - range.start).min(bytes.len() as u64);
                    let (data, rest) = bytes.split_at(length as usize);
                    let start = range.start;
                    range.start += length;
                    let is_over = range.is_empty();
                    self.hand_on(start, data, sink);
                    match (is_over, self.delimiter.is_empty()) {
                        (false, _) => {}
                        (true, _) if self.is_joined => self.begin_next()?,
                        (true, true) => self.state = State::End { bytes: EPILOGUE_BYTES },
                        (true, false) => self.state = State::Delimiter { empty_lines: 0 },
                    }
                    bytes = rest;
                }
                State::End { bytes: after } => {
                    *after += bytes.len();
                    if *after > EPILOGUE_BYTES {
                        return Err(wrong("after the last part", "nothing", bytes));
                    }
                    return Ok(());
                }
                _ => {
                    let end = bytes.iter().position(|&byte| byte == b'\n');
                    let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
                    if self.line.len() + line.len() > LINE_BYTES {
                        let expected = format!("a line of at most {LINE_BYTES} bytes");
                        return Err(wrong("between parts", expected, line));
                    }
                    self.line.extend_from_slice(line);
                    if end.is_some() {
                        let line = std::mem::take(&mut self.line);
                        self.take_line(line.trim_ascii_end())?;
                    }
                    bytes = rest;
                }
            }
        }
        Ok(())
    }

    /// Whether all that was requested has come.
    pub fn is_complete(&self) -> bool {
        let is_inside = matches!(&self.state, State::Data { .. });
        !is_inside && self.has_begun.iter().all(|&has_begun| has_begun)
    }

    /// Whether the answer ended as it should: after the last boundary.
    pub fn is_ended(&self) -> bool {
        let is_last = |line: &[u8]| line.strip_suffix(b"--") == Some(&self.delimiter[..]);
        match &self.state {
            State::End { .. } => true,
            State::Delimiter { .. } => is_last(self.line.trim_ascii_end()),
            _ => false,
        }
    }

    /// Parts that began.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// Whether they came in the order of the request.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), MultipartError> {
        match &mut self.state {
            State::Delimiter { empty_lines } if line.is_empty() => {
                *empty_lines += 1;
                if *empty_lines > EMPTY_LINES {
                    return Err(wrong("before a part", "the boundary", line));
                }
            }
            State::Delimiter { .. } => {
                self.state = match line.strip_prefix(&self.delimiter[..]) {
                    Some(b"") => State::Headers { count: 0, range: None },
                    Some(b"--") => State::End { bytes: 0 },
                    _ => {
                        let delimiter = String::from_utf8_lossy(&self.delimiter);
                        return Err(wrong("before a part", delimiter, line));
                    }
                };
            }
            State::Headers { range, .. } if line.is_empty() => {
                let range = range.take();
                let range = range.ok_or_else(|| wrong("a part", "a Content-Range", b"none"))?;
                self.begin(range)?;
            }
            State::Headers { count, .. } => {
                *count += 1;
                if *count > HEADERS {
                    return Err(wrong("a part", format!("at most {HEADERS} headers"), b"more"));
                }
                let text = std::str::from_utf8(line)
                    .map_err(|_| wrong("a part", "headers of text", line))?;
                let (name, value) =
                    text.split_once(':').ok_or_else(|| wrong("a part", "a header", line))?;
                if name.trim().eq_ignore_ascii_case("content-range") {
                    let result = self.check_range(value.trim())?;
                    if let State::Headers { range, .. } = &mut self.state
                        && range.replace(result).is_some()
                    {
                        return Err(wrong("a part", "one Content-Range", b"two"));
                    }
                }
            }
            State::Data { .. } | State::End { .. } => {}
        }
        Ok(())
    }

    /// The range of a part, which must lie in an object of the size that is known.
    fn check_range(&self, text: &str) -> Result<Range<u64>, MultipartError> {
        let content_range = parse_content_range(text).filter(|(range, total)| {
            !range.is_empty()
                && range.end <= self.size
                && total.is_none_or(|total| total == self.size)
        });
        let expected = || format!("bytes FIRST-LAST/{} of a range", self.size);
        content_range
            .map(|(range, _)| range)
            .ok_or_else(|| wrong("Content-Range", expected(), text.as_bytes()))
    }

    /// Begin the data of a part: of a requested range that did not come yet, or several from the
    /// start of one to the end of another.
    fn begin(&mut self, range: Range<u64>) -> Result<(), MultipartError> {
        let first = self.ranges.binary_search_by_key(&range.start, |range| range.start);
        let last = self.ranges.binary_search_by_key(&range.end, |range| range.end);
        let has_begun = match (first, last) {
            (Ok(first), Ok(last)) => self.has_begun.get_mut(first..=last),
            _ => None,
        };
        match has_begun {
            Some(has_begun) if !has_begun.contains(&true) => has_begun.fill(true),
            _ => {
                let found = format!("bytes {}-{}", range.start, range.end - 1);
                return Err(wrong("a part", "a requested range, once", found.as_bytes()));
            }
        }
        self.parts += 1;
        self.is_ordered &= self.last_start.is_none_or(|last| last < range.start);
        self.last_start = Some(range.start);
        self.state = State::Data { range };
        Ok(())
    }

    /// Give data from `start` on to the ranges that contain it; bytes in gaps are dropped.
    fn hand_on(&self, start: u64, data: &[u8], sink: &mut impl FnMut(usize, &[u8])) {
        let end = start + data.len() as u64;
        let first = self.ranges.partition_point(|range| range.end <= start);
        for (number, range) in self.ranges.iter().enumerate().skip(first) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from >= to {
                break;
            }
            sink(number, &data[(from - start) as usize..(to - start) as usize]);
        }
    }
}

/// The boundary of a `Content-Type`; `None` if the answer is not multipart.
fn boundary(content_type: &str) -> Option<&str> {
    let (kind, rest) = content_type.split_once(';')?;
    let kind = kind.trim().to_ascii_lowercase();
    if kind != "multipart/byteranges" && kind != "multipart/x-byteranges" {
        return None;
    }
    let parameter = rest.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then_some(value.trim())
    })?;
    Some(parameter.trim_matches('"'))
}

#[cfg(test)]
mod tests;
