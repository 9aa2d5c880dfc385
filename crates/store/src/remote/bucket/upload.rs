//! Objects that are written to buckets: whole, or part after part.

use super::condition::Condition;
use super::{Bucket, Cloud};
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use std::collections::VecDeque;
use swathe_net::{connect_events, net};
use swathe_store_api::{Comparison, Failure, PartAlgorithm, PartSums, Sink, StoreError};
use swathe_trace::{Ids, Scope};
use tokio::task::JoinHandle;

/// Parts of one object on their way to a bucket.
const UPLOADS: usize = 2;

/// An object on its way to a bucket.
pub(super) struct Upload {
    bucket: Bucket,
    key: Key,
    url: String,
    body: Bytes,
    parts: Option<Box<dyn MultipartUpload>>,
    sending: VecDeque<JoinHandle<object_store::Result<()>>>,
    is_complete: bool,
}

impl Upload {
    pub(super) fn create(
        bucket: Bucket,
        key: Key,
        url: String,
        in_parts: bool,
    ) -> Result<Upload, StoreError> {
        let parts = if in_parts {
            let upload = block_on(&url, bucket.objects.put_multipart(&key))?;
            Some(upload.map_err(|error| bucket.error(&url, error))?)
        } else {
            None
        };
        let (body, sending) = (Bytes::new(), VecDeque::new());
        Ok(Upload { bucket, key, url, body, parts, sending, is_complete: false })
    }

    fn send(&mut self, part: Bytes) -> Result<(), StoreError> {
        let Some(parts) = &mut self.parts else {
            self.body = part;
            return Ok(());
        };
        let net = net().map_err(|why| StoreError::Network { url: self.url.clone(), why })?;
        let sending = parts.put_part(part.into());
        self.sending.push_back(net.runtime.spawn(for_us(sending)));
        while self.sending.len() >= UPLOADS {
            self.wait()?;
        }
        Ok(())
    }

    /// Wait for the oldest part on its way.
    fn wait(&mut self) -> Result<(), StoreError> {
        let Some(part) = self.sending.pop_front() else { return Ok(()) };
        let result = block_on(&self.url, part)?.map_err(object_store::Error::from).flatten();
        result.map_err(|error| self.bucket.error(&self.url, error))
    }

    /// Give the object its name; with `replaces` in place of what has it. `tag`: the ETag that it
    /// would have on a server of the kind of S3.
    fn complete(&mut self, tag: &str, replaces: bool) -> Result<(), StoreError> {
        while !self.sending.is_empty() {
            self.wait()?;
        }
        let condition = match replaces {
            true => None,
            false => Condition::free(self.bucket.cloud, &self.bucket.objects, &self.key),
        };
        // What Azure is told in a condition of its own, object_store adds to whole objects only.
        let is_azure = self.bucket.cloud == Cloud::Azure;
        if !replaces && is_azure && self.parts.is_some() && self.present_tag()?.is_some() {
            return Err(self.taken_error());
        }
        let mode = if !replaces && is_azure { PutMode::Create } else { PutMode::Overwrite };
        let (objects, key) = (self.bucket.objects.clone(), self.key.clone());
        let body = std::mem::take(&mut self.body);
        let parts = self.parts.as_mut();
        let put = async {
            match parts {
                Some(parts) => parts.complete().await,
                None => objects.put_opts(&key, body.into(), PutOptions::from(mode)).await,
            }
        };
        let result = match &condition {
            Some(condition) => block_on(&self.url, condition.during(put))?,
            None => block_on(&self.url, put)?,
        };
        if let Err(error) = result {
            let is_refused = matches!(error, object_store::Error::AlreadyExists { .. })
                || condition.as_ref().is_some_and(|condition| condition.is_refused());
            let present = if is_refused { self.present_tag().ok().flatten() } else { None };
            match present {
                // The answer to an earlier request was lost.
                Some(now)
                    if condition.is_some_and(|condition| condition.is_repeated())
                        && now.trim_matches('"') == tag => {}
                Some(_) => return Err(self.taken_error()),
                None => return Err(self.bucket.error(&self.url, error)),
            }
        }
        self.is_complete = true;
        Ok(())
    }

    /// The ETag of the object that has the name now; `None` if there is none.
    fn present_tag(&self) -> Result<Option<String>, StoreError> {
        match block_on(&self.url, self.bucket.objects.head(&self.key))? {
            Ok(metadata) => Ok(Some(metadata.e_tag.unwrap_or_default())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.bucket.error(&self.url, error)),
        }
    }

    fn taken_error(&self) -> StoreError {
        StoreError::Exists { url: self.url.clone() }
    }
}

impl Sink for Upload {
    fn write(&mut self, part: Bytes) -> Result<(), Failure> {
        Ok(self.send(part)?)
    }

    fn part_algorithm(&self) -> PartAlgorithm {
        PartAlgorithm::Md5
    }

    fn finish(
        mut self: Box<Self>,
        sums: &PartSums,
        _part_bytes: u64,
        replaces: bool,
    ) -> Result<Comparison, Failure> {
        self.complete(&sums.etag().unwrap_or_default(), replaces)?;
        Ok(Comparison::Missing)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        for part in &self.sending {
            part.abort();
        }
        if let Some(mut parts) = self.parts.take().filter(|_| !self.is_complete)
            && let Ok(net) = net()
        {
            // Parts that stay are seen by nobody, but some stores charge for them. Not waited for.
            net.runtime.spawn(for_us(async move { parts.abort().await }));
        }
    }
}

/// Something for the threads of the runtime to do, which do not know for what it is.
fn for_us<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let scope = Scope::current();
    async move { connect_events::trace(&Ids::default(), &scope, 0, work).await }
}

fn block_on<T>(url: &str, work: impl Future<Output = T>) -> Result<T, StoreError> {
    let net = net().map_err(|why| StoreError::Network { url: url.to_string(), why })?;
    Ok(net.runtime.block_on(work))
}

#[cfg(test)]
mod tests {
    use super::super::{Cloud, Settings};
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::{Arc, Barrier};
    use swathe_trace::testing::record_trace;

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
        let (mut request, mut piece) = (Vec::new(), [0; 4096]);
        let is_whole = |request: &[u8]| {
            let text = String::from_utf8_lossy(request).to_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
        };
        while !is_whole(&request) {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => return,
                Ok(count) => request.extend_from_slice(&piece[..count]),
            }
        }
        let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_string();
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
        let settings = Settings {
            endpoint: Some(format!("http://{address}")),
            anonymous: true,
            ..Settings::default()
        };
        let folder = tempfile::tempdir().expect("a folder");
        let trace = record_trace(folder.path(), || {
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
            let previous = scope("mine").enter();
            let (bucket, key) = Bucket::new(Cloud::S3, "bucket/key", &settings).expect("a bucket");
            let url = "s3://bucket/key".to_string();
            let mut upload = Upload::create(bucket, key, url, true).expect("begun");
            for _ in 0..4 {
                upload.write(Bytes::from_static(b"part")).expect("sent");
            }
            Box::new(upload).finish(&PartSums::default(), 4, true).expect("finished");
            previous.enter();
        });
        let server = format!("SERVER={address} ");
        let name = "NL.EVNT=CONNECT_END ";
        let lines: Vec<&str> =
            trace.lines().filter(|line| line.contains(name) && line.contains(&server)).collect();
        assert!(lines.len() >= 6, "{trace}");
        assert!(lines.iter().all(|line| line.contains(" JOB=mine ")), "{trace}");
    }
}
