//! A file that grows by whole pieces, and always ends as it should.

use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};

/// A file to which pieces are added, before the bytes that always end it.
pub(crate) struct GrowingFile {
    file: File,
    /// End of the last whole piece.
    end: u64,
    /// The bytes that end the file.
    tail: &'static [u8],
}

impl GrowingFile {
    /// Truncate a file to `end`, to append from that point.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(file: File, end: u64, tail: &'static [u8]) -> io::Result<GrowingFile> {
        file.set_len(end)?;
        let mut growing = GrowingFile { file, end, tail };
        growing.add(&[])?;
        Ok(growing)
    }

    /// End of the last whole piece.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Append a piece, in parts; if that fails the file is left as it was.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let result = self.write(self.end, parts);
        self.settle(result, parts.iter().map(|part| part.len() as u64).sum())
    }

    /// Append a piece of any size: the first bytes, `length` bytes of a reader, and the last parts.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn add_file(
        &mut self,
        head: &[u8],
        source: &mut impl Read,
        length: u64,
        rest: &[&[u8]],
    ) -> io::Result<()> {
        let rest_bytes: u64 = rest.iter().map(|part| part.len() as u64).sum();
        let rest_start = self.end + head.len() as u64 + length;
        let result = self.copy(head, source, length).and_then(|()| self.write(rest_start, rest));
        self.settle(result, head.len() as u64 + length + rest_bytes)
    }

    fn copy(&mut self, head: &[u8], source: &mut impl Read, length: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(head)?;
        match io::copy(&mut source.take(length), &mut self.file)? {
            count if count == length => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Count a piece that was written, or remove one that was not written whole.
    fn settle(&mut self, result: io::Result<()>, bytes: u64) -> io::Result<()> {
        if let Err(error) = result {
            // Its space was allocated before, so the disk has room for it.
            self.write(self.end, &[])?;
            self.file.set_len(self.end + self.tail.len() as u64)?;
            return Err(error);
        }
        self.end += bytes;
        Ok(())
    }

    fn write(&mut self, at: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        slices.push(IoSlice::new(self.tail));
        let mut rest = &mut slices[..];
        while rest.iter().any(|slice| !slice.is_empty()) {
            match self.file.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => IoSlice::advance_slices(&mut rest, bytes),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Wait until all of it is on the disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_before_what_ends_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("grown");
        std::fs::write(&path, b"first, and more").expect("written");
        let file = File::options().read(true).write(true).open(&path).expect("opened");
        let mut growing = GrowingFile::new(file, 5, b"END").expect("cut back");
        assert_eq!(std::fs::read(&path).expect("read"), b"firstEND");
        growing.add(&[b", ", b"", b"second"]).expect("added");
        assert_eq!(std::fs::read(&path).expect("read"), b"first, secondEND");
        assert_eq!(growing.end(), 13);
        growing.add_file(b"<", &mut &b"file, cut"[..], 4, &[b">"]).expect("added");
        assert_eq!(std::fs::read(&path).expect("read"), b"first, second<file>END");
        assert!(growing.add_file(b"<", &mut &b"fi"[..], 4, &[b">"]).is_err());
        assert_eq!(std::fs::read(&path).expect("read"), b"first, second<file>END");
        assert_eq!(growing.end(), 19);
    }
}
