//! Zip archives of stored members (APPNOTE 6.3.10), each written at once: what stands before a
//! member says all of it, so that an archive without its directory can be gone on with.

use super::grown::GrowingFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Of the extra field that holds sizes and offsets of 64 bits.
const EXTRA_64: u16 = 1;
/// The value of such a field in its usual place.
const IN_EXTRA: u32 = u32::MAX;
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// Version made by: Unix, so that permissions are read.
const MADE_BY: u16 = 3 << 8 | VERSION_64;
const MODE: u32 = 0o100_644 << 16;
const UTF_8: u16 = 1 << 11;
/// Members have no date: 1980-01-01 is the first date of the format.
const DATE: u16 = 0x21;
const LOCAL_BYTES: usize = 30;

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Bytes of its content.
    pub size: u64,
    /// Offset of its local header.
    pub start: u64,
    /// Its end.
    pub end: u64,
    crc: u32,
}

/// The members of an archive in their order, as far as they are whole and stored, without its
/// directory.
///
/// # Errors
/// If it cannot be read.
pub fn members(file: &File) -> io::Result<Vec<Member>> {
    let length = file.metadata()?.len();
    let mut list = Vec::new();
    let mut start = 0;
    while let Some(member) = member_at(file, start, length)? {
        start = member.end;
        list.push(member);
    }
    Ok(list)
}

fn member_at(file: &File, start: u64, length: u64) -> io::Result<Option<Member>> {
    let mut head = [0; LOCAL_BYTES];
    if start + LOCAL_BYTES as u64 > length {
        return Ok(None);
    }
    file.read_exact_at(&mut head, start)?;
    let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let long = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
    let is_stored = short(8) == 0 && short(6) & !UTF_8 == 0 && long(18) == long(22);
    if long(0) != LOCAL || !is_stored {
        return Ok(None);
    }
    let (name_bytes, extra_bytes) = (usize::from(short(26)), usize::from(short(28)));
    let data = start + (LOCAL_BYTES + name_bytes + extra_bytes) as u64;
    if data > length {
        return Ok(None);
    }
    let mut rest = vec![0; name_bytes + extra_bytes];
    file.read_exact_at(&mut rest, start + LOCAL_BYTES as u64)?;
    let size = match long(22) {
        IN_EXTRA => rest[name_bytes..].get(4..12).and_then(|bytes| bytes.try_into().ok()),
        size => Some(u64::from(size).to_le_bytes()),
    };
    let Some(size) = size.map(u64::from_le_bytes) else { return Ok(None) };
    let Some(end) = data.checked_add(size).filter(|&end| end <= length) else { return Ok(None) };
    rest.truncate(name_bytes);
    let Ok(name) = String::from_utf8(rest) else { return Ok(None) };
    Ok(Some(Member { name, size, start, end, crc: long(14) }))
}

/// A member that is not in an archive yet, with its checksum.
pub(crate) struct ZipEntry<'a> {
    name: &'a str,
    bytes: &'a [u8],
    crc: u32,
}

impl<'a> ZipEntry<'a> {
    /// Compute the checksum, which nobody needs to wait for.
    pub fn new(name: &'a str, bytes: &'a [u8]) -> ZipEntry<'a> {
        ZipEntry { name, bytes, crc: crc32fast::hash(bytes) }
    }
}

/// An archive that is being written.
pub(crate) struct Zip {
    grown: GrowingFile,
    members: Vec<Member>,
}

impl Zip {
    /// Begin an archive, or go on with one behind those members that end at `end`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn new(file: File, end: u64) -> io::Result<Zip> {
        let mut members = members(&file)?;
        members.retain(|member| member.end <= end);
        let end = members.last().map_or(0, |member| member.end);
        Ok(Zip { grown: GrowingFile::new(file, end, &[])?, members })
    }

    /// Add a member.
    ///
    /// # Errors
    /// If it cannot be written; the archive is left as it was.
    pub fn add(&mut self, ZipEntry { name, bytes, crc }: ZipEntry<'_>) -> io::Result<()> {
        let start = self.grown.end();
        let size = bytes.len() as u64;
        let mut member = Member { name: name.to_string(), size, start, end: 0, crc };
        let head = member.local()?;
        self.grown.add(&[&head, bytes])?;
        member.end = self.grown.end();
        self.members.push(member);
        Ok(())
    }

    /// Write the directory, and wait until all is on the disk.
    ///
    /// # Errors
    /// If it cannot be written; the members stay, and it can be tried again.
    pub fn finish(&mut self) -> io::Result<()> {
        let start = self.grown.end();
        let mut directory = Vec::with_capacity(self.members.len() * 80);
        for member in &self.members {
            member.central(&mut directory)?;
        }
        let bytes = directory.len() as u64;
        let count = self.members.len() as u64;
        if count >= u64::from(u16::MAX) || start + bytes >= u64::from(IN_EXTRA) {
            end_64(&mut directory, count, bytes, start);
        }
        directory.extend_from_slice(&END.to_le_bytes());
        directory.extend_from_slice(&[0; 4]);
        let few = u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes();
        directory.extend_from_slice(&few);
        directory.extend_from_slice(&few);
        for value in [bytes, start] {
            directory.extend_from_slice(&clamped(value).to_le_bytes());
        }
        directory.extend_from_slice(&[0; 2]);
        self.grown.add(&[&directory])?;
        self.grown.sync()
    }
}

impl Member {
    fn needed(&self) -> u16 {
        if self.size >= u64::from(IN_EXTRA) { VERSION_64 } else { VERSION }
    }

    /// What versions, flags, date, checksum and sizes look like in both places.
    fn facts(&self, to: &mut Vec<u8>, extra: &[u64]) -> io::Result<()> {
        let name_bytes = u16::try_from(self.name.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the name is too long"))?;
        let flags = if self.name.is_ascii() { 0 } else { UTF_8 };
        let needed = if extra.is_empty() { self.needed() } else { VERSION_64 };
        for value in [needed, flags, 0, 0, DATE] {
            to.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.crc, clamped(self.size), clamped(self.size)] {
            to.extend_from_slice(&value.to_le_bytes());
        }
        let extra_bytes = if extra.is_empty() { 0 } else { 4 + 8 * extra.len() as u16 };
        to.extend_from_slice(&name_bytes.to_le_bytes());
        to.extend_from_slice(&extra_bytes.to_le_bytes());
        Ok(())
    }

    /// What stands before the member.
    fn local(&self) -> io::Result<Vec<u8>> {
        let is_large = self.size >= u64::from(IN_EXTRA);
        let sizes = [self.size, self.size];
        let extra = if is_large { &sizes[..] } else { &[] };
        let mut head = Vec::with_capacity(LOCAL_BYTES + self.name.len() + 20);
        head.extend_from_slice(&LOCAL.to_le_bytes());
        self.facts(&mut head, extra)?;
        head.extend_from_slice(self.name.as_bytes());
        extra_field(&mut head, extra);
        Ok(head)
    }

    /// What the directory holds of it.
    fn central(&self, to: &mut Vec<u8>) -> io::Result<()> {
        let mut extra = Vec::new();
        if self.size >= u64::from(IN_EXTRA) {
            extra.extend([self.size, self.size]);
        }
        if self.start >= u64::from(IN_EXTRA) {
            extra.push(self.start);
        }
        to.extend_from_slice(&CENTRAL.to_le_bytes());
        to.extend_from_slice(&MADE_BY.to_le_bytes());
        self.facts(to, &extra)?;
        // Comment, disk, internal attributes.
        to.extend_from_slice(&[0; 6]);
        to.extend_from_slice(&MODE.to_le_bytes());
        to.extend_from_slice(&clamped(self.start).to_le_bytes());
        to.extend_from_slice(self.name.as_bytes());
        extra_field(to, &extra);
        Ok(())
    }
}

fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(IN_EXTRA)
}

fn extra_field(to: &mut Vec<u8>, values: &[u64]) {
    if values.is_empty() {
        return;
    }
    to.extend_from_slice(&EXTRA_64.to_le_bytes());
    to.extend_from_slice(&(8 * values.len() as u16).to_le_bytes());
    for value in values {
        to.extend_from_slice(&value.to_le_bytes());
    }
}

/// The end of a directory of many members, or one far from the start.
fn end_64(to: &mut Vec<u8>, count: u64, bytes: u64, start: u64) {
    let end = start + bytes;
    to.extend_from_slice(&END_64.to_le_bytes());
    to.extend_from_slice(&44_u64.to_le_bytes());
    to.extend_from_slice(&MADE_BY.to_le_bytes());
    to.extend_from_slice(&VERSION_64.to_le_bytes());
    to.extend_from_slice(&[0; 8]);
    for value in [count, count, bytes, start] {
        to.extend_from_slice(&value.to_le_bytes());
    }
    to.extend_from_slice(&LOCATOR_64.to_le_bytes());
    to.extend_from_slice(&[0; 4]);
    to.extend_from_slice(&end.to_le_bytes());
    to.extend_from_slice(&1_u32.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn opened(path: &Path) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    #[test]
    fn an_archive_that_was_broken_off_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut zip = Zip::new(opened(&path), 0).unwrap();
        for number in 0..3_usize {
            let name = format!("ä-{number}");
            zip.add(ZipEntry::new(&name, &vec![7; 100 * number])).unwrap();
        }
        let whole = std::fs::metadata(&path).unwrap().len();
        drop(zip);
        // The fourth member is cut off.
        let file = opened(&path);
        let half: Vec<u8> = std::fs::read(&path).unwrap()[..50].to_vec();
        file.write_all_at(&half[..40], whole).unwrap();
        let entries = members(&file).unwrap();
        let names: Vec<&str> = entries.iter().map(|member| &*member.name).collect();
        assert_eq!(names[..3], ["ä-0", "ä-1", "ä-2"]);
        let mut zip = Zip::new(file, entries[1].end).unwrap();
        zip.add(ZipEntry::new("last", b"content")).unwrap();
        zip.finish().unwrap();
        let names: Vec<_> =
            members(&opened(&path)).unwrap().into_iter().map(|member| member.name).collect();
        assert_eq!(names, ["ä-0", "ä-1", "last"]);
    }

    #[test]
    fn no_bytes_make_the_reader_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut zip = Zip::new(opened(&path), 0).unwrap();
        zip.add(ZipEntry::new("name", b"content")).unwrap();
        zip.finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            for value in [0, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                std::fs::write(&path, &bytes).unwrap();
                members(&opened(&path)).unwrap();
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            members(&opened(&path)).unwrap();
        }
    }
}
