//! The newest lines, in memory until they are appended to a file at the end.

use crate::file::RotatingFile;
use crate::sink::{LineSink, count};
use std::collections::VecDeque;
use std::io;
use std::path::Path;

/// The newest lines, appended to a file at the end.
pub(crate) struct Memory {
    file: RotatingFile,
    queue: VecDeque<Vec<u8>>,
    bytes: u64,
    limit: u64,
}

impl Memory {
    pub fn open(path: &Path, limit: u64) -> io::Result<Memory> {
        let file = RotatingFile::open(path, None, 1)?;
        Ok(Memory { file, queue: VecDeque::new(), bytes: 0, limit })
    }

    /// Drop the oldest lines until `more` bytes fit below the limit.
    fn make_room(&mut self, more: usize) {
        while self.bytes + more as u64 > self.limit
            && let Some(oldest) = self.queue.pop_front()
        {
            self.bytes -= oldest.len() as u64;
        }
    }
}

impl LineSink for Memory {
    fn write(&mut self, lines: &[u8], lost_lines: &mut u64) -> io::Result<()> {
        self.make_room(lines.len());
        self.bytes += lines.len() as u64;
        self.queue.push_back(lines.to_vec());
        *lost_lines += count(lines);
        Ok(())
    }

    fn pending_lines(&mut self, more: usize) -> u64 {
        self.make_room(more);
        self.queue.iter().map(|lines| count(lines)).sum()
    }

    fn finish(&mut self, line_count: &mut u64) -> io::Result<()> {
        for lines in self.queue.drain(..) {
            let mut lost_lines = 0;
            let result = self.file.write(&lines, &mut lost_lines);
            *line_count += count(&lines) - lost_lines;
            result?;
        }
        Ok(())
    }
}
