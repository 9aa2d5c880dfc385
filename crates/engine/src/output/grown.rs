//! A file that grows by whole pieces, and always ends as it should.

use std::fs::File;
use std::io::{self, IoSlice, Seek, SeekFrom, Write};

/// A file to which pieces are added, before what always ends it.
pub(crate) struct GrowingFile {
    file: File,
    /// End of the last whole piece.
    end: u64,
    /// What stands behind it.
    tail: &'static [u8],
}

impl GrowingFile {
    /// Truncate a file to `end`, to append from that point.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(file: File, end: u64, tail: &'static [u8]) -> io::Result<GrowingFile> {
        file.set_len(end)?;
        let mut grown = GrowingFile { file, end, tail };
        grown.add(&[])?;
        Ok(grown)
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
        let written = self.write(parts);
        match written {
            Ok(()) => {
                self.end += parts.iter().map(|part| part.len() as u64).sum::<u64>();
                Ok(())
            }
            Err(error) => {
                // Its space was allocated before, so the disk has room for it.
                self.write(&[])?;
                self.file.set_len(self.end + self.tail.len() as u64)?;
                Err(error)
            }
        }
    }

    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        slices.push(IoSlice::new(self.tail));
        let mut left = &mut slices[..];
        while left.iter().any(|slice| !slice.is_empty()) {
            match self.file.write_vectored(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
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
        let mut grown = GrowingFile::new(file, 5, b"END").expect("cut back");
        assert_eq!(std::fs::read(&path).expect("read"), b"firstEND");
        grown.add(&[b", ", b"", b"second"]).expect("added");
        assert_eq!(std::fs::read(&path).expect("read"), b"first, secondEND");
        assert_eq!(grown.end(), 13);
    }
}
