//! What a disk says of itself and of the disks beside it, in a file on it.
//!
//! An empty folder in the place of a disk that is not mounted looks like a new disk, and a disk
//! that was forgotten on the command line leaves no gap. So each disk names all of them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const TITLE: &str = "swathe disk 1";
/// A longer file is none of ours.
const LONGEST_BYTES: u64 = 1 << 20;

/// A disk of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) id: u64,
    /// Bytes that it could hold when it was first used: its share of the objects.
    pub(crate) capacity_bytes: u64,
    /// Its folder when it was last used.
    pub(crate) path: PathBuf,
}

/// The file of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: u64,
    /// All disks of the server, this one too.
    pub(crate) members: Vec<Member>,
}

impl Identity {
    /// Read the file; `None`: there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Identity>, String> {
        let fail = |why: String| format!("{}: {why}", path.display());
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            result => result.map_err(|error| fail(error.to_string()))?,
        };
        let mut text = String::new();
        let result = file.take(LONGEST_BYTES).read_to_string(&mut text);
        result.map_err(|error| fail(error.to_string()))?;
        parse(&text).map(Some).map_err(fail)
    }

    /// Write the file, whole or not at all.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = format!("{TITLE}\nid {:016x}\n", self.id);
        for Member { id, capacity_bytes, path } in &self.members {
            text.push_str(&format!("member {id:016x} {capacity_bytes} {}\n", path.display()));
        }
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
    }
}

fn parse(text: &str) -> Result<Identity, String> {
    let wrong = |line: &str| format!("expected a line of a disk's identity, found {line:?}");
    let mut lines = text.lines();
    let title = lines.next().unwrap_or_default();
    if title != TITLE {
        return Err(format!("expected {TITLE:?}, found {title:?}"));
    }
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let line = lines.next().unwrap_or_default();
    let id = line.strip_prefix("id ").and_then(hex).ok_or_else(|| wrong(line))?;
    let members = lines.map(|line| {
        let mut words = line.splitn(4, ' ');
        let member = (words.next() == Some("member")).then(|| {
            let (id, capacity_bytes) = (hex(words.next()?)?, words.next()?.parse().ok()?);
            Some(Member { id, capacity_bytes, path: words.next()?.into() })
        });
        member.flatten().ok_or_else(|| wrong(line))
    });
    let members = members.collect::<Result<Vec<_>, _>>()?;
    match members.iter().any(|member| member.id == id) {
        true => Ok(Identity { id, members }),
        false => Err(format!("expected a line about {id:016x}, found none")),
    }
}

/// A number that no other disk, or file, has.
pub(crate) fn random_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        assert_eq!(Identity::read(&path).unwrap(), None);
        let member = |id, path: &str| Member { id, capacity_bytes: 7, path: path.into() };
        let members = vec![member(1, "/data 1"), member(u64::MAX, "/data2")];
        let identity = Identity { id: u64::MAX, members };
        identity.write(&path).unwrap();
        assert_eq!(Identity::read(&path).unwrap(), Some(identity));
    }

    #[test]
    fn damaged_identities_are_errors() {
        for text in [
            "",
            "swathe disk 2\nid 1\n",
            "swathe disk 1\n",
            "swathe disk 1\nid x\n",
            "swathe disk 1\nid 1\n",
            "swathe disk 1\nid 1\nmember 2 7 /a\n",
            "swathe disk 1\nid 1\nmember 1 7\n",
            "swathe disk 1\nid 1\nmember 1 x /a\n",
            "swathe disk 1\nid 1\nother 1 7 /a\n",
        ] {
            parse(text).unwrap_err();
        }
    }
}
