//! Bytes of long reads are in no memory but that of the caller: what this thread allocates meanwhile
//! is counted.

use crate::boundary::sw_error;
use crate::object_calls::{sw_close, sw_open, sw_pread, sw_preadv, sw_range, sw_read};
use libc::c_int;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// Counts the bytes that each thread allocates.
struct CountingAllocator;

thread_local! {
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    // At the end of a thread nothing is counted.
    let _ = BYTES.try_with(|total| total.set(total.get() + bytes));
}

// SAFETY: the allocator of the system does the work.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Bytes that this thread allocates during `work`.
fn allocated_bytes(work: impl FnOnce()) -> usize {
    let before = BYTES.get();
    work();
    BYTES.get() - before
}

const SIZE: usize = 32 << 20;
/// What the bookkeeping of a request may take.
const LITTLE: usize = 64 << 10;

fn content() -> Vec<u8> {
    (0..SIZE).map(|at| (at * 31 % 251) as u8).collect()
}

fn open(name: &str) -> c_int {
    let name = CString::new(name).expect("text");
    // SAFETY: a text.
    let handle = unsafe { sw_open(name.as_ptr(), libc::O_RDONLY) };
    // SAFETY: a text.
    assert!(handle > 0, "{:?}", unsafe { CStr::from_ptr(sw_error()) });
    handle
}

fn pread(handle: c_int, buffer: &mut [u8], offset: i64) -> isize {
    // SAFETY: memory of this length.
    unsafe { sw_pread(handle, buffer.as_mut_ptr().cast(), buffer.len(), offset) }
}

fn read(handle: c_int, buffer: &mut [u8]) -> isize {
    // SAFETY: memory of this length.
    unsafe { sw_read(handle, buffer.as_mut_ptr().cast(), buffer.len()) }
}

/// A server of one object, with a thread for each connection.
fn serve(content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/object", listener.local_addr().expect("its address"));
    let content = Arc::new(content);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let content = content.clone();
            std::thread::spawn(move || answer(stream, &content));
        }
    });
    url
}

fn answer(mut stream: TcpStream, content: &[u8]) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut range = None;
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        if let Some(bytes) = line.to_lowercase().strip_prefix("range: bytes=") {
            let (first, last) = bytes.trim().split_once('-').expect("a range");
            range = Some((first.parse().expect("first"), last.parse::<usize>().expect("last")));
        }
        if line == "\r\n" {
            let (first, last): (usize, usize) = range.take().expect("a request for a range");
            let last = last.min(content.len() - 1);
            let body = &content[first..=last];
            let size = content.len();
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nETag: \"e\"\r\nContent-Length: {}\r\n\
                 Content-Range: bytes {first}-{last}/{size}\r\n\r\n",
                body.len()
            );
            if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_err() {
                return;
            }
        }
        line.clear();
    }
}

/// Read an object in each way, into memory of the caller.
fn check_copies(name: &str, content: &[u8]) {
    let handle = open(name);
    let mut buffer = vec![0; SIZE];
    pread(handle, &mut buffer[..1 << 20], 0); // connects
    let bytes = allocated_bytes(|| assert_eq!(pread(handle, &mut buffer, 0), SIZE as isize));
    assert!(buffer == content);
    assert!(bytes < LITTLE, "pread of {name}: {bytes} bytes");
    buffer.fill(0);
    let bytes = allocated_bytes(|| assert_eq!(read(handle, &mut buffer), SIZE as isize));
    assert!(buffer == content);
    assert!(bytes < LITTLE, "read of {name}: {bytes} bytes");
    assert_eq!(sw_close(handle), 0);
}

#[test]
fn bytes_of_a_file_go_straight_to_the_caller() {
    let (folder, content) = (tempfile::tempdir().expect("a folder"), content());
    let path = folder.path().join("object");
    std::fs::write(&path, &content).expect("written");
    let name = path.to_str().expect("text");
    check_copies(name, &content);
    // Two ranges far from each other, and nothing between them.
    let handle = open(name);
    let mut buffers = [vec![0u8; 8 << 20], vec![0u8; 8 << 20]];
    let offsets = [0, 20 << 20];
    let mut ranges: Vec<sw_range> = offsets
        .iter()
        .zip(&mut buffers)
        .map(|(&offset, buffer)| sw_range {
            offset,
            buffer: buffer.as_mut_ptr().cast(),
            length: buffer.len(),
            result: 0,
        })
        .collect();
    let bytes = allocated_bytes(|| {
        // SAFETY: a list of this length, with memory of its own.
        assert_eq!(unsafe { sw_preadv(handle, ranges.as_mut_ptr(), 2) }, 16 << 20);
    });
    assert!(bytes < LITTLE, "{bytes} bytes");
    for (buffer, offset) in buffers.iter().zip(offsets) {
        assert!(buffer[..] == content[offset as usize..][..8 << 20]);
    }
    assert_eq!(sw_close(handle), 0);
}

#[test]
fn bytes_of_a_server_go_straight_to_the_caller() {
    let content = content();
    check_copies(&serve(content.clone()), &content);
}

#[test]
fn reads_one_by_one_allocate_a_buffer() {
    let (folder, content) = (tempfile::tempdir().expect("a folder"), content());
    let path = folder.path().join("object");
    std::fs::write(&path, &content).expect("written");
    let handle = open(path.to_str().expect("text"));
    let mut byte = [0];
    let bytes = allocated_bytes(|| {
        for expected in &content[..1 << 20] {
            assert_eq!((read(handle, &mut byte), byte[0]), (1, *expected));
        }
    });
    assert!(bytes < 2 * (256 << 10), "{bytes} bytes");
    assert_eq!(sw_close(handle), 0);
}

/// Print the rate of long reads, beside that of the reader in Rust: a benchmark.
#[test]
#[ignore = "prints rates"]
fn rates_of_long_reads() {
    let (folder, content) = (tempfile::tempdir_in("/dev/shm").expect("a folder"), content());
    let path = folder.path().join("object");
    std::fs::write(&path, &content).expect("written");
    for name in [path.to_str().expect("text").to_string(), serve(content)] {
        let source = swathe_store::open(&name).expect("opened");
        let handle = open(&name);
        let mut buffer = vec![1; 8 << 20];
        let mut seconds = [Vec::new(), Vec::new()];
        for round in 0..80 {
            let begin = std::time::Instant::now();
            for at in (0..SIZE as i64).step_by(buffer.len()) {
                if round % 2 == 0 {
                    source.read_exact_at(at as u64, &mut buffer).expect("read");
                } else {
                    assert_eq!(pread(handle, &mut buffer, at), buffer.len() as isize);
                }
            }
            seconds[round % 2].push(begin.elapsed().as_secs_f64());
        }
        let medians = seconds.map(|mut times| {
            times.sort_by(f64::total_cmp);
            SIZE as f64 / times[times.len() / 2] / 1e6
        });
        println!("{name}: Rust {:.0} MB/s, C {:.0} MB/s", medians[0], medians[1]);
        assert_eq!(sw_close(handle), 0);
    }
}
