//! Objects that are written: seen under their names when they are whole, not before.

use crate::beneath;
use crate::place::Place;
use crate::remote::{self, Bucket, Failure, Putting};
use crate::stores::{Address, Stores, is_writable};
use bytes::Bytes;
use md5::{Digest, Md5};
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStoreExt};
use rustix::fs::{AtFlags, Mode, OFlags, open, openat, renameat, unlinkat};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use swathe_net::{connect_events, net};
use swathe_store_api::StoreError;
use swathe_trace::{Ids, Scope};
use tokio::task::JoinHandle;

/// Parts of one object on their way to a bucket.
const UPLOADS: usize = 2;
/// Characters of a name that its unfinished file keeps: file systems allow 255 bytes.
const NAME_CHARS: usize = 50;

/// MD5 of the parts of an object: what the ETags of most buckets are made of.
#[derive(Default)]
pub(crate) struct Sums(Vec<[u8; 16]>);

impl Sums {
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.0.push(Md5::digest(part).into());
    }

    /// The first part of another that is not the same.
    pub(crate) fn differs_at(&self, other: &Sums) -> Option<usize> {
        (0..self.0.len().max(other.0.len())).find(|&at| self.0.get(at) != other.0.get(at))
    }

    /// The ETag, without quotes, of a store that tells the MD5 of what it was sent.
    pub(crate) fn etag(&self) -> String {
        let hex = |sum: &[u8]| sum.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match &self.0[..] {
            [] => hex(&Md5::digest([])),
            [one] => hex(one),
            parts => format!("{}-{}", hex(&Md5::digest(parts.concat())), parts.len()),
        }
    }
}

/// An object that is being written. Dropped before it is finished, it leaves nothing behind that
/// can be seen.
pub(crate) enum Sink {
    File(NewFile),
    Bucket(Upload),
    Dav(Putting),
}

/// Rename files, in order, up to the first that cannot be; how many were. Each folder is looked up
/// once: for two long paths that takes a quarter of a rename.
pub fn rename_each(moves: &[(String, String)]) -> usize {
    let mut folders = HashMap::new();
    moves.iter().take_while(|(from, to)| rename(&mut folders, from, to).is_ok()).count()
}

/// Folders that are kept open while files are renamed.
const FOLDERS: usize = 256;

fn rename<'a>(
    folders: &mut HashMap<&'a str, OwnedFd>,
    from: &'a str,
    to: &'a str,
) -> rustix::io::Result<()> {
    let (Some((from_folder, from)), Some((to_folder, to))) =
        (from.rsplit_once('/'), to.rsplit_once('/'))
    else {
        return rustix::fs::rename(from, to);
    };
    if folders.len() + 2 > FOLDERS {
        folders.clear();
    }
    for folder in [from_folder, to_folder] {
        if let Entry::Vacant(free) = folders.entry(folder) {
            // One that cannot be listed is no worse.
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            free.insert(open(format!("{folder}/"), flags, Mode::empty())?);
        }
    }
    renameat(&folders[from_folder], from, &folders[to_folder], to)
}

impl Stores {
    /// Begin to write an object of `size` bytes: a file, or an object of a bucket or of a WebDAV
    /// server.
    pub(crate) fn create(
        &self,
        object: &str,
        size: u64,
        in_parts: bool,
    ) -> Result<Sink, StoreError> {
        let (store, url) = self.locate(object);
        let named = (url != object).then_some(object);
        if let Some(place) = store.place(&url, named)? {
            return NewFile::create(&place).map(Sink::File);
        }
        if is_writable(&url) {
            return Putting::create(store, &url, named, size, in_parts).map(Sink::Dav);
        }
        let unsupported = |why: String| StoreError::Unsupported { url: url.clone(), why };
        let Address::Bucket { cloud, name, settings } = store.address(&url)? else {
            let why = "only folders, buckets, dav(s):// and root:// can be written to";
            return Err(unsupported(why.into()));
        };
        let (bucket, key) = Bucket::new(cloud, &name, &settings).map_err(unsupported)?;
        Upload::create(bucket, key, url, in_parts).map(Sink::Bucket)
    }

    /// Remove an object, if there is one: a file, or an object of a bucket or of a WebDAV server.
    ///
    /// # Errors
    /// [`StoreError::Forbidden`], [`StoreError::Network`], [`StoreError::Io`]: it may still be there;
    /// [`StoreError::Unsupported`] where the store is read only.
    pub fn remove(&self, object: &str) -> Result<(), StoreError> {
        let (store, url) = self.locate(object);
        let named = (url != object).then_some(object);
        let removed = match store.place(&url, named)? {
            Some(place) => place.remove(),
            None if is_writable(&url) => remote::remove(store, &url, named),
            None => {
                let unsupported = |why: String| StoreError::Unsupported { url: url.clone(), why };
                let Address::Bucket { cloud, name, settings } = store.address(&url)? else {
                    let why = "only objects of folders, buckets, dav(s):// and root:// are removed";
                    return Err(unsupported(why.into()));
                };
                let (bucket, key) = Bucket::new(cloud, &name, &settings).map_err(unsupported)?;
                let removed = block_on(&url, bucket.objects.delete(&key))?;
                removed.map_err(|error| bucket.error(&url, error))
            }
        };
        match removed {
            Err(StoreError::NotFound { .. }) => Ok(()),
            other => other,
        }
    }
}

impl Sink {
    /// Write a part; the failure says whether it is of use to write all of the object anew.
    pub(crate) fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        match self {
            Sink::File(file) => Ok(file.write(&part)?),
            Sink::Bucket(upload) => Ok(upload.write(part)?),
            Sink::Dav(put) => put.write(part),
        }
    }

    /// Give the object its name; failures are as those of writing.
    pub(crate) fn finish(self, sums: &Sums, part_bytes: u64) -> Result<(), Failure> {
        match self {
            Sink::File(file) => Ok(file.finish(sums, part_bytes)?),
            Sink::Bucket(upload) => Ok(upload.finish()?),
            Sink::Dav(put) => put.finish(),
        }
    }
}

/// The hidden name of an object that comes to stand beside others: of each its own.
pub(crate) fn unfinished(name: &str) -> String {
    let sum = crc32fast::hash(name.as_bytes());
    let start: String = name.chars().take(NAME_CHARS).collect();
    format!(".{start}-{sum:08x}.part")
}

/// A file under a hidden name, locked by whoever writes it. One that was left behind by a process
/// that was killed is written anew.
pub(crate) struct NewFile {
    file: File,
    folder: OwnedFd,
    name: OsString,
    unfinished: String,
    url: String,
    bytes: u64,
    done: bool,
}

impl NewFile {
    fn create(place: &Place) -> Result<NewFile, StoreError> {
        let url = place.url.clone();
        let (folder, name) = place.make_folder()?;
        let unfinished = unfinished(&name.to_string_lossy());
        let file = loop {
            let file = open_unfinished(&folder, &unfinished);
            let file = file.map_err(|error| StoreError::from_io(&url, error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let why = "another process is writing it".to_string();
                    return Err(StoreError::Unsupported { url, why });
                }
                Err(TryLockError::Error(error)) => return Err(StoreError::from_io(&url, error)),
            }
            // Another may have finished it, so that this is now the object itself.
            let is_ours = beneath::holds(&folder, &unfinished, &file);
            if is_ours.map_err(|error| StoreError::from_io(&url, error))? {
                break file;
            }
        };
        file.set_len(0).map_err(|error| StoreError::from_io(&url, error))?;
        Ok(NewFile { file, folder, name, unfinished, url, bytes: 0, done: false })
    }

    fn write(&mut self, part: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(part).map_err(|error| StoreError::from_io(&self.url, error))?;
        self.bytes += part.len() as u64;
        Ok(())
    }

    fn finish(mut self, sums: &Sums, part_bytes: u64) -> Result<(), StoreError> {
        let fail = |error| StoreError::from_io(&self.url, error);
        self.file.sync_all().map_err(fail)?;
        let mut found = Sums::default();
        let mut part = Vec::new();
        let mut at = 0;
        while at < self.bytes {
            part.resize((self.bytes - at).min(part_bytes) as usize, 0);
            self.file.read_exact_at(&mut part, at).map_err(fail)?;
            found.add(&part);
            at += part.len() as u64;
        }
        if let Some(number) = sums.differs_at(&found) {
            return Err(differs(&self.url, sums, &found, number, part_bytes));
        }
        let renamed = renameat(&self.folder, &self.unfinished, &self.folder, &self.name);
        renamed.map_err(|error| fail(error.into()))?;
        self.done = true;
        let synced = sync(&self.folder);
        synced.map_err(|error| StoreError::from_io(&self.url, error))
    }
}

/// Open the unfinished file of a folder, a new one if there is none.
fn open_unfinished(folder: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::from_raw_mode(0o666))?))
}

fn sync(folder: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    File::from(openat(folder, ".", flags, Mode::empty())?).sync_all()
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.done {
            // Hidden, and written anew the next time, if it cannot be removed.
            let _ = unlinkat(&self.folder, &self.unfinished, AtFlags::empty());
        }
    }
}

/// The error for what was read back and is not what was written.
pub(crate) fn differs(
    url: &str,
    written: &Sums,
    read: &Sums,
    number: usize,
    part_bytes: u64,
) -> StoreError {
    let one = |sums: &Sums| Sums(sums.0.get(number).copied().into_iter().collect()).etag();
    let from = number as u64 * part_bytes;
    StoreError::Differs {
        url: url.to_string(),
        expected: format!("MD5 {} of what was written from byte {from}", one(written)),
        found: one(read),
    }
}

/// An object on its way to a bucket.
pub(crate) struct Upload {
    bucket: Bucket,
    key: Key,
    url: String,
    whole: Bytes,
    parts: Option<Box<dyn MultipartUpload>>,
    sending: VecDeque<JoinHandle<object_store::Result<()>>>,
    done: bool,
}

impl Upload {
    fn create(bucket: Bucket, key: Key, url: String, in_parts: bool) -> Result<Upload, StoreError> {
        let parts = if in_parts {
            let begun = block_on(&url, bucket.objects.put_multipart(&key))?;
            Some(begun.map_err(|error| bucket.error(&url, error))?)
        } else {
            None
        };
        let (whole, sending) = (Bytes::new(), VecDeque::new());
        Ok(Upload { bucket, key, url, whole, parts, sending, done: false })
    }

    fn write(&mut self, part: Bytes) -> Result<(), StoreError> {
        let Some(parts) = &mut self.parts else {
            self.whole = part;
            return Ok(());
        };
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        let sending = parts.put_part(part.into());
        self.sending.push_back(net.runtime.spawn(told(sending)));
        while self.sending.len() >= UPLOADS {
            self.wait()?;
        }
        Ok(())
    }

    /// Wait for the oldest part on its way.
    fn wait(&mut self) -> Result<(), StoreError> {
        let Some(part) = self.sending.pop_front() else { return Ok(()) };
        let sent = block_on(&self.url, part)?.map_err(object_store::Error::from).flatten();
        sent.map_err(|error| self.bucket.error(&self.url, error))
    }

    fn finish(mut self) -> Result<(), StoreError> {
        while !self.sending.is_empty() {
            self.wait()?;
        }
        let written = match &mut self.parts {
            Some(parts) => block_on(&self.url, parts.complete())?,
            None => {
                let whole = std::mem::take(&mut self.whole);
                block_on(&self.url, self.bucket.objects.put(&self.key, whole.into()))?
            }
        };
        written.map_err(|error| self.bucket.error(&self.url, error))?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        for part in &self.sending {
            part.abort();
        }
        if let Some(mut parts) = self.parts.take().filter(|_| !self.done)
            && let Ok(net) = net()
        {
            // Parts that stay are seen by nobody, but some stores charge for them. Not waited for.
            net.runtime.spawn(told(async move { parts.abort().await }));
        }
    }
}

/// Something for the threads of the runtime to do, which do not know for what it is.
fn told<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let scope = Scope::current();
    async move { connect_events::traced(&Ids::default(), &scope, 0, work).await }
}

fn block_on<T>(url: &str, work: impl Future<Output = T>) -> Result<T, StoreError> {
    let net = net().map_err(|why| StoreError::Network { url: url.to_string(), why })?;
    Ok(net.runtime.block_on(work))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::{BucketSettings, Cloud};
    use std::fs;
    use std::io::Read;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::{Arc, Barrier};
    use swathe_trace::testing::recorded;

    #[test]
    fn files_are_renamed_up_to_the_first_that_cannot_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: String| folder.path().join(name).display().to_string();
        // More folders than are kept open.
        let count = 2 * FOLDERS;
        let moves: Vec<(String, String)> = (0..count)
            .map(|number| (path(format!("{number}.new")), path(format!("to-{number}/file"))))
            .collect();
        for (number, (from, _)) in moves.iter().enumerate() {
            fs::write(from, number.to_string()).expect("written");
        }
        for number in (0..count).filter(|&number| number != 400) {
            fs::create_dir(path(format!("to-{number}"))).expect("made");
        }
        fs::write(&moves[7].1, "of before").expect("written");
        assert_eq!(rename_each(&moves), 400);
        fs::create_dir(path("to-400".into())).expect("made");
        assert_eq!(rename_each(&moves[400..]), count - 400);
        for (number, (from, to)) in moves.iter().enumerate() {
            assert!(!fs::exists(from).expect("looked"));
            assert_eq!(fs::read_to_string(to).expect("read"), number.to_string());
        }
        assert_eq!(rename_each(&moves), 0);
        assert_eq!(rename_each(&[("no-such-file".into(), "nor-this".into())]), 0);
        assert_eq!(rename_each(&[]), 0);
    }

    /// A bucket that takes an object of parts, over a connection for each request.
    fn bucket_of_parts() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || answer(stream));
            }
        });
        address
    }

    fn answer(mut stream: TcpStream) {
        let (mut said, mut piece) = (Vec::new(), [0; 4096]);
        let is_whole = |said: &[u8]| {
            let text = String::from_utf8_lossy(said).to_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
        };
        while !is_whole(&said) {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(count) => said.extend_from_slice(&piece[..count]),
            }
        }
        let line = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_string();
        let body = match line.contains("uploads") {
            true => {
                "<InitiateMultipartUploadResult><UploadId>u</UploadId>\
                     </InitiateMultipartUploadResult>"
            }
            false if line.starts_with("POST") => {
                "<CompleteMultipartUploadResult><ETag>\"e\"</ETag>\
                 </CompleteMultipartUploadResult>"
            }
            false => "",
        };
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nConnection: close\r\nContent-Length:";
        let _ = write!(stream, "{head} {length}\r\n\r\n{body}");
    }

    #[test]
    fn connections_of_parts_are_told_for_whom_they_are() {
        let scope = |job: &str| Scope::new(vec![("JOB".into(), job.into())]);
        let address = bucket_of_parts();
        let settings = BucketSettings {
            endpoint: Some(format!("http://{address}")),
            anonymous: true,
            ..BucketSettings::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let told = recorded(folder.path(), || {
            // What the threads did last was for somebody else.
            let (net, all) = (net().expect("threads"), Arc::new(Barrier::new(3)));
            for _ in 0..2 {
                let (all, other) = (all.clone(), scope("other"));
                net.runtime.spawn(async move {
                    other.enter();
                    all.wait();
                });
            }
            all.wait();
            let before = scope("mine").enter();
            let (bucket, key) = Bucket::new(Cloud::S3, "bucket/key", &settings).expect("a bucket");
            let url = "s3://bucket/key".to_string();
            let mut upload = Upload::create(bucket, key, url, true).expect("begun");
            for _ in 0..4 {
                upload.write(Bytes::from_static(b"part")).expect("sent");
            }
            upload.finish().expect("finished");
            before.enter();
        });
        let server = format!("SERVER={address} ");
        let name = "NL.EVNT=CONNECT_END ";
        let made: Vec<&str> =
            told.lines().filter(|line| line.contains(name) && line.contains(&server)).collect();
        assert!(made.len() >= 6, "{told}");
        assert!(made.iter().all(|line| line.contains(" JOB=mine ")), "{told}");
    }

    #[test]
    fn etags_are_those_of_s3() {
        let sums = |parts: &[&[u8]]| {
            let mut sums = Sums::default();
            parts.iter().for_each(|part| sums.add(part));
            sums
        };
        assert_eq!(sums(&[]).etag(), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(sums(&[b"abc"]).etag(), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(sums(&[b"abc", b"abc"]).etag(), "043a916d6cfeecedf5e04f0312ba762d-2");
        assert_eq!(sums(&[b"a", b"b"]).differs_at(&sums(&[b"a", b"c"])), Some(1));
        assert_eq!(sums(&[b"a"]).differs_at(&sums(&[b"a", b"c"])), Some(1));
        assert_eq!(sums(&[b"a"]).differs_at(&sums(&[b"a"])), None);
    }
}
