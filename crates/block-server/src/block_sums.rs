//! Checksums of the blocks of an object, in a file of their own.
//!
//! A header of 64 bytes, little-endian: magic, version, bytes of a block, size, inode and time of
//! birth of the object, zeros, CRC-32 of all that. Then pages of 4096 bytes: the CRC-32 of 1023
//! blocks, zeros where there are fewer, and the CRC-32 of the page. So a read of a few blocks
//! needs one page, and a damaged page is noticed.
//!
//! The file is named for the inode of its object. Names of objects change without it, and an
//! object that somebody else puts in the place of one has no checksums.

use crc32fast::Hasher;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes of an object that have one checksum.
pub(crate) const BLOCK_BYTES: usize = 4096;
const MAGIC: &[u8; 8] = b"SWATHESU";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// Blocks of a page.
const PAGE_BLOCKS: u64 = (PAGE_BYTES / 4 - 1) as u64;

/// The object that checksums are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectId {
    pub(crate) size: u64,
    pub(crate) inode: u64,
    /// When its file was made, in nanoseconds since 1970; 0: unknown.
    pub(crate) birth_ns: u64,
}

/// Why bytes are not verified.
#[derive(Debug)]
pub(crate) enum SumsError {
    Io(io::Error),
    /// The checksums themselves are damaged.
    Damaged(String),
    /// A block is.
    Block {
        byte: u64,
        expected: u32,
        found: u32,
    },
}

impl From<io::Error> for SumsError {
    fn from(error: io::Error) -> SumsError {
        SumsError::Io(error)
    }
}

fn header(id: ObjectId) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
    header[16..24].copy_from_slice(&id.size.to_le_bytes());
    header[24..32].copy_from_slice(&id.inode.to_le_bytes());
    header[32..40].copy_from_slice(&id.birth_ns.to_le_bytes());
    let sum = crc32fast::hash(&header[..HEADER_BYTES - 4]);
    header[HEADER_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
    header
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn long_number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Checksums of an object that is being written.
#[derive(Debug)]
pub(crate) struct SumsWriter {
    file: File,
    block: Hasher,
    /// Bytes of the block that is not complete.
    block_bytes: usize,
    page: Vec<u8>,
    pages: u64,
}

impl SumsWriter {
    /// Write to an empty file.
    pub(crate) fn new(file: File) -> SumsWriter {
        let page = Vec::with_capacity(PAGE_BYTES);
        SumsWriter { file, block: Hasher::new(), block_bytes: 0, page, pages: 0 }
    }

    /// Add the next bytes of the object.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block_bytes));
            self.block.update(now);
            self.block_bytes += now.len();
            if self.block_bytes == BLOCK_BYTES {
                self.end_block()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        let sum = std::mem::take(&mut self.block).finalize();
        self.block_bytes = 0;
        self.page.extend_from_slice(&sum.to_le_bytes());
        if self.page.len() == PAGE_BYTES - 4 { self.end_page() } else { Ok(()) }
    }

    fn end_page(&mut self) -> io::Result<()> {
        self.page.resize(PAGE_BYTES - 4, 0);
        let sum = crc32fast::hash(&self.page);
        self.page.extend_from_slice(&sum.to_le_bytes());
        self.file.write_all_at(&self.page, page_at(self.pages))?;
        self.pages += 1;
        self.page.clear();
        Ok(())
    }

    /// Write the rest, and wait until all is on the disk.
    pub(crate) fn finish(&mut self, id: ObjectId) -> io::Result<()> {
        if self.block_bytes > 0 {
            self.end_block()?;
        }
        if !self.page.is_empty() {
            self.end_page()?;
        }
        self.file.write_all_at(&header(id), 0)?;
        self.file.sync_all()
    }
}

fn page_at(page: u64) -> u64 {
    HEADER_BYTES as u64 + page * PAGE_BYTES as u64
}

/// Checksums of an object that is read.
#[derive(Debug)]
pub(crate) struct BlockSums {
    file: File,
}

impl BlockSums {
    /// The checksums in a file, if they are of this object.
    ///
    /// # Errors
    /// [`SumsError::Damaged`] if they are not as they were written, or the object has another size.
    pub(crate) fn open(file: File, object: ObjectId) -> Result<Option<BlockSums>, SumsError> {
        let mut head = [0; HEADER_BYTES];
        match file.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(SumsError::Damaged("their file is too short".into()));
            }
            result => result?,
        }
        let id = ObjectId {
            size: long_number(&head[16..24]),
            inode: long_number(&head[24..32]),
            birth_ns: long_number(&head[32..40]),
        };
        if head != header(id) {
            return Err(SumsError::Damaged("their header is damaged".into()));
        }
        let is_birth_same =
            id.birth_ns == object.birth_ns || id.birth_ns == 0 || object.birth_ns == 0;
        if id.inode != object.inode || !is_birth_same {
            return Ok(None);
        }
        if id.size != object.size {
            let why = format!("they are of {} bytes, the object has {}", id.size, object.size);
            return Err(SumsError::Damaged(why));
        }
        Ok(Some(BlockSums { file }))
    }

    /// Check bytes of the object that begin at block `first`; the last block of an object may be
    /// short.
    ///
    /// # Errors
    /// [`SumsError::Block`] for the first block that is damaged.
    pub(crate) fn check(&self, first: u64, bytes: &[u8]) -> Result<(), SumsError> {
        let mut page = [0; PAGE_BYTES];
        let mut page_number = None;
        for (block, data) in (first..).zip(bytes.chunks(BLOCK_BYTES)) {
            if page_number != Some(block / PAGE_BLOCKS) {
                page_number = Some(block / PAGE_BLOCKS);
                self.read_page(block / PAGE_BLOCKS, &mut page)?;
            }
            let at = (block % PAGE_BLOCKS) as usize * 4;
            let (expected, found) = (number(&page[at..at + 4]), crc32fast::hash(data));
            if expected != found {
                let byte = block * BLOCK_BYTES as u64;
                return Err(SumsError::Block { byte, expected, found });
            }
        }
        Ok(())
    }

    /// CRC-32 of all bytes of an object of some size.
    pub(crate) fn crc32(&self, size: u64) -> Result<u32, SumsError> {
        // Bytes after others change their CRC-32 as a matrix does: this one is of a whole block.
        let columns: [u32; 32] = std::array::from_fn(|bit| joined_crc(1 << bit, 0, BLOCK_BYTES));
        let append = |crc: u32, next: u32| {
            let set = (0..32).filter(|bit| crc >> bit & 1 == 1);
            set.fold(next, |sum, bit| sum ^ columns[bit])
        };
        let (mut crc, mut page) = (0, [0; PAGE_BYTES]);
        for block in 0..size.div_ceil(BLOCK_BYTES as u64) {
            if block % PAGE_BLOCKS == 0 {
                self.read_page(block / PAGE_BLOCKS, &mut page)?;
            }
            let at = (block % PAGE_BLOCKS) as usize * 4;
            let (sum, rest) = (number(&page[at..at + 4]), size - block * BLOCK_BYTES as u64);
            crc = match rest < BLOCK_BYTES as u64 {
                true => joined_crc(crc, sum, rest as usize),
                false => append(crc, sum),
            };
        }
        Ok(crc)
    }

    fn read_page(&self, number_of_page: u64, page: &mut [u8; PAGE_BYTES]) -> Result<(), SumsError> {
        match self.file.read_exact_at(page, page_at(number_of_page)) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(SumsError::Damaged("their file is too short".into()));
            }
            result => result?,
        }
        let (sums, own) = page.split_at(PAGE_BYTES - 4);
        match crc32fast::hash(sums) == number(own) {
            true => Ok(()),
            false => Err(SumsError::Damaged(format!("their page {number_of_page} is damaged"))),
        }
    }
}

/// CRC-32 of bytes and of `length` others after them, from those of each.
fn joined_crc(crc: u32, next: u32, length: usize) -> u32 {
    let mut sum = Hasher::new_with_initial_len(crc, 0);
    sum.combine(&Hasher::new_with_initial_len(next, length as u64));
    sum.finalize()
}

/// The blocks that a range of an object lies in, as a range of its bytes.
pub(crate) fn whole_blocks(range: &Range<u64>, size: u64) -> Range<u64> {
    let block = BLOCK_BYTES as u64;
    range.start / block * block..range.end.next_multiple_of(block).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: ObjectId = ObjectId { size: 0, inode: 7, birth_ns: 5 };

    fn bytes(size: usize) -> Vec<u8> {
        (0..size).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn write(data: &[u8], step: usize) -> (File, ObjectId) {
        let file = tempfile::tempfile().unwrap();
        let mut sums = SumsWriter::new(file.try_clone().unwrap());
        data.chunks(step).for_each(|part| sums.add(part).unwrap());
        let id = ObjectId { size: data.len() as u64, ..ID };
        sums.finish(id).unwrap();
        (file, id)
    }

    fn open(file: &File, id: ObjectId) -> Result<Option<BlockSums>, SumsError> {
        BlockSums::open(file.try_clone().unwrap(), id)
    }

    #[test]
    fn a_flipped_bit_is_noticed_in_its_block() {
        let size = (PAGE_BLOCKS as usize + 3) * BLOCK_BYTES + 100;
        let mut data = bytes(size);
        let (file, id) = write(&data, 10_000);
        let sums = open(&file, id).unwrap().unwrap();
        sums.check(0, &data).unwrap();
        sums.check(PAGE_BLOCKS, &data[PAGE_BLOCKS as usize * BLOCK_BYTES..]).unwrap();
        data[size - 1] ^= 1;
        let last = (PAGE_BLOCKS + 3) * BLOCK_BYTES as u64;
        let error = sums.check(0, &data);
        assert!(matches!(error, Err(SumsError::Block { byte, .. }) if byte == last), "{error:?}");
        sums.check(0, &data[..last as usize]).unwrap();
    }

    #[test]
    fn every_damaged_byte_of_the_sums_is_noticed() {
        let data = bytes(3 * BLOCK_BYTES);
        let (file, id) = write(&data, 4096);
        for at in 0..(HEADER_BYTES + PAGE_BYTES) as u64 {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], at).unwrap();
            let result = open(&file, id).and_then(|sums| sums.unwrap().check(1, &data[4096..]));
            assert!(matches!(result, Err(SumsError::Damaged(_))), "{at}: {result:?}");
            file.write_all_at(&byte, at).unwrap();
        }
        file.set_len(100).unwrap();
        let result = open(&file, id).unwrap().unwrap().check(0, &data);
        assert!(matches!(result, Err(SumsError::Damaged(_))));
        file.set_len(10).unwrap();
        assert!(matches!(open(&file, id), Err(SumsError::Damaged(_))));
    }

    #[test]
    fn sums_of_another_object_are_none() {
        let (file, id) = write(&bytes(10), 10);
        assert!(open(&file, ObjectId { inode: 8, ..id }).unwrap().is_none());
        assert!(open(&file, ObjectId { birth_ns: 6, ..id }).unwrap().is_none());
        assert!(open(&file, ObjectId { birth_ns: 0, ..id }).unwrap().is_some());
        let longer = open(&file, ObjectId { size: 11, ..id });
        assert!(matches!(longer, Err(SumsError::Damaged(_))));
    }

    proptest! {
        #[test]
        fn sums_do_not_depend_on_the_pieces(size in 0usize..30_000, step in 1usize..9_000) {
            let data = bytes(size);
            let (file, id) = write(&data, step);
            let sums = open(&file, id).unwrap().unwrap();
            prop_assert!(sums.check(0, &data).is_ok());
            prop_assert_eq!(sums.crc32(size as u64).unwrap(), crc32fast::hash(&data));
        }

        #[test]
        fn whole_blocks_hold_a_range(start in 0u64..20_000, length in 1u64..20_000, more in 0u64..9_000) {
            let range = start..start + length;
            let size = range.end + more;
            let blocks = whole_blocks(&range, size);
            prop_assert!(blocks.start <= range.start && blocks.end >= range.end);
            prop_assert!(blocks.start.is_multiple_of(4096) && (blocks.end.is_multiple_of(4096) || blocks.end == size));
        }
    }
}
