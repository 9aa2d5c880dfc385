//! The calls for objects: open, read, write, seek, close.

use crate::boundary::{SUCCESS, bytes_of, check_buffer, guard, offset_of, text_of};
use crate::fault::Fault;
use crate::handles::{self, OpenObject};
use crate::reader::Reader;
use crate::writer::Writer;
use libc::{c_char, c_int, c_void, size_t, ssize_t};
use std::sync::{Arc, Mutex, PoisonError};

/// A range of an object, and the memory for its bytes.
#[allow(non_camel_case_types)] // as C has it
#[repr(C)]
pub struct sw_range {
    /// First byte, from 0.
    pub offset: i64,
    /// Memory for `length` bytes; ranges of a call share none.
    pub buffer: *mut c_void,
    /// Bytes to read.
    pub length: size_t,
    /// Bytes that were read: fewer only at the end of the object.
    pub result: ssize_t,
}

/// What an object is.
#[allow(non_camel_case_types)] // as C has it
#[repr(C)]
pub struct sw_stat {
    /// Bytes of the object.
    pub size: i64,
    /// 1 if it is a file of this machine, else 0.
    pub is_local: c_int,
    /// ETag or date of the version; cut after 127 bytes.
    pub version: [c_char; 128],
}

const WAYS: &str = "O_RDONLY, or O_WRONLY with O_CREAT, O_TRUNC or both, and O_EXCL with O_CREAT";

/// Open an object: a path, a URL, or NAME:path of a store in the file that SWATHE_STORES names.
///
/// O_RDONLY reads the version that the object has now. O_WRONLY | O_CREAT writes a new object, with
/// O_TRUNC in place of the one of this name; it has its name once it is closed. O_EXCL, or no
/// O_TRUNC: an object that exists is an error (EEXIST). O_CLOEXEC is accepted.
///
/// Returns a handle for the calls below, which is no descriptor of a file.
/// Errors: ENOENT, EACCES, EEXIST, EISDIR, ENOTDIR, EINVAL (flags), ENOTSUP, EIO, EMFILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_open(url: *const c_char, flags: c_int) -> c_int {
    guard(|| {
        // SAFETY: a text of the caller.
        let name = unsafe { text_of("url", url)? };
        let flags = flags & !libc::O_CLOEXEC;
        let object = if flags == libc::O_RDONLY {
            OpenObject::Reader(Arc::new(Reader::open(name)?))
        } else {
            check_flags(flags)?;
            OpenObject::Writer(Arc::new(Mutex::new(Some(Writer::open(name, flags)?))))
        };
        handles::add(object)
    })
}

fn check_flags(flags: c_int) -> Result<(), Fault> {
    let has = |flag| flags & flag != 0;
    let (creates, truncates) = (has(libc::O_CREAT), has(libc::O_TRUNC));
    let all = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_EXCL;
    let is_writing = flags & libc::O_ACCMODE == libc::O_WRONLY && flags & !all == 0;
    if is_writing && (creates || truncates) && (creates || !has(libc::O_EXCL)) {
        return Ok(());
    }
    Err(Fault::invalid(format!("flags: expected {WAYS}, found {flags:#o}")))
}

/// Read on from the position. Small reads are served from a buffer of the size that is best for the
/// store; reads of at least that size go straight into the memory of the caller.
///
/// Returns how many bytes: fewer than length only at the end of the object, and before what cannot
/// be read. Errors: EBADF, EFAULT, EINVAL, ESTALE (the object changed), EACCES, EIO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_read(handle: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    // Small reads one after the other: the guard would take as long as they do.
    if !buffer.is_null() && (1..=isize::MAX as usize).contains(&length) {
        // SAFETY: memory of the caller.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) };
        if handles::read_ready(handle, buffer) {
            return length as ssize_t;
        }
    }
    guard(|| {
        // SAFETY: memory of the caller.
        let buffer = unsafe { bytes_of(buffer, length)? };
        Ok(handles::with_cursor(handle, |cursor| cursor.read(buffer))? as ssize_t)
    })
}

/// Read at an offset, straight into the memory of the caller. The position stays, and threads may
/// read one handle at the same time.
///
/// Returns and errors as sw_read; EINVAL for a negative offset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_pread(
    handle: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: i64,
) -> ssize_t {
    guard(|| {
        let reader = handles::reader(handle)?;
        let offset = offset_of(offset)?;
        // SAFETY: memory of the caller.
        let buffer = unsafe { bytes_of(buffer, length)? };
        Ok(reader.read_at(offset, buffer)? as ssize_t)
    })
}

/// Read many ranges, with the requests that cost least for all of them together. Each range gets
/// its result; after an error that is -1.
///
/// Returns the sum of the results. Errors: as sw_pread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_preadv(handle: c_int, ranges: *mut sw_range, count: c_int) -> ssize_t {
    guard(|| {
        let reader = handles::reader(handle)?;
        let count = usize::try_from(count)
            .map_err(|_| Fault::invalid(format!("count: expected 0 or more, found {count}")))?;
        if count == 0 {
            return Ok(0);
        }
        if ranges.is_null() {
            return Err(Fault::new(libc::EFAULT, "ranges: expected a list, found NULL"));
        }
        // SAFETY: a list of the caller, of this length.
        let ranges = unsafe { std::slice::from_raw_parts_mut(ranges, count) };
        ranges.iter_mut().for_each(|range| range.result = -1);
        check_ranges(ranges)?;
        let (mut within, mut buffers) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for range in ranges.iter() {
            let offset = offset_of(range.offset)?;
            let rest = reader.source.len().saturating_sub(offset);
            let length = rest.min(range.length as u64);
            within.push(offset..offset + length);
            // SAFETY: memory of the caller; no two share any, as was checked.
            buffers.push(unsafe { bytes_of(range.buffer, length as usize)? });
        }
        reader.read_ranges(&within, &mut buffers)?;
        let mut sum = 0;
        for (range, within) in ranges.iter_mut().zip(&within) {
            range.result = (within.end - within.start) as ssize_t;
            sum += range.result;
        }
        Ok(sum)
    })
}

/// Refuse buffers that cannot be, or that share memory.
fn check_ranges(ranges: &[sw_range]) -> Result<(), Fault> {
    let mut places = Vec::with_capacity(ranges.len());
    let mut total = 0usize;
    for range in ranges {
        check_buffer(range.buffer, range.length)?;
        total = total.saturating_add(range.length);
        let start = range.buffer as usize;
        if range.length > 0 {
            places.push((start, start.saturating_add(range.length)));
        }
    }
    if total > isize::MAX as usize {
        return Err(Fault::invalid(format!("ranges: expected at most {} bytes", isize::MAX)));
    }
    places.sort_unstable();
    match places.windows(2).any(|pair| pair[1].0 < pair[0].1) {
        true => Err(Fault::invalid("ranges: expected memory of their own, found it shared")),
        false => Ok(()),
    }
}

/// Append bytes to an object that is open to write. Parts of 8 MiB are sent when they are full, so
/// an error may be that of earlier bytes. After an error nothing more is written.
///
/// Returns length. Errors: EBADF, EFAULT, EINVAL, ENOSPC, EACCES, EFBIG, EIO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_write(handle: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    guard(|| {
        check_buffer(buffer, length)?;
        let bytes = match length {
            0 => &[],
            // SAFETY: memory of the caller, only read.
            _ => unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) },
        };
        handles::with_writer(handle, |writer| writer.write(bytes))?;
        Ok(length as ssize_t)
    })
}

/// Move the position of sw_read: from the start (SEEK_SET), from here (SEEK_CUR), from the end
/// (SEEK_END). Nothing is read yet.
///
/// Returns the new position, which may be after the end. Of a handle that is open to write, the
/// bytes that were written are returned for an offset of 0 from SEEK_CUR; any other is ESPIPE.
/// Errors: EBADF, EINVAL (a negative position, another whence), EOVERFLOW, ESPIPE.
#[unsafe(no_mangle)]
pub extern "C" fn sw_lseek(handle: c_int, offset: i64, whence: c_int) -> i64 {
    guard(|| {
        if !handles::is_writer(handle) {
            return handles::with_cursor(handle, |cursor| cursor.seek(offset, whence));
        }
        if (offset, whence) != (0, libc::SEEK_CUR) {
            let text = format!("handle {handle}: an object that is written is only appended to");
            return Err(Fault::new(libc::ESPIPE, text));
        }
        handles::with_writer(handle, |writer| Ok(writer.bytes() as i64))
    })
}

/// Reserve room for `bytes` bytes in all, before the object is written or meanwhile: in a folder, on a
/// block server, or on all servers of a striped store. Closing it frees the room that it did not use.
///
/// Returns 0. Errors: ENOSPC, of a striped store with the name of the server; ENOTSUP if its store, or
/// a server of it, cannot; EBADF, EINVAL, EACCES, EIO. After an error there is what was there before.
#[unsafe(no_mangle)]
pub extern "C" fn sw_alloc(handle: c_int, bytes: i64) -> c_int {
    guard(|| {
        let bytes = u64::try_from(bytes)
            .map_err(|_| Fault::invalid(format!("bytes: expected 0 or more, found {bytes}")))?;
        handles::with_writer(handle, |writer| writer.reserve(bytes))?;
        Ok(SUCCESS)
    })
}

/// Fill in size and version of an object.
///
/// Returns 0. Errors: as sw_open to read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_stat(url: *const c_char, stat: *mut sw_stat) -> c_int {
    guard(|| {
        // SAFETY: a text of the caller.
        let name = unsafe { text_of("url", url)? };
        if stat.is_null() {
            return Err(Fault::new(libc::EFAULT, "stat: expected memory, found NULL"));
        }
        let source = Reader::open(name)?.source;
        let version = source.version();
        let mut text = [0; 128];
        for (to, from) in text[..127].iter_mut().zip(version.tag.bytes()) {
            *to = from as c_char;
        }
        let (size, is_local) = (version.size as i64, c_int::from(source.is_local()));
        // SAFETY: memory of the caller.
        unsafe { stat.write(sw_stat { size, is_local, version: text }) };
        Ok(SUCCESS)
    })
}

/// Close a handle. An object that was written gets its name now, after what was written is read
/// back and compared; one that could not be written whole is removed. A run that is written is left
/// as it is: see sw_run_end.
///
/// Returns 0. The handle is closed in any case. Errors: EBADF; of an object that was written
/// EEXIST, ENOSPC, EACCES, EIO, and those of earlier writes.
#[unsafe(no_mangle)]
pub extern "C" fn sw_close(handle: c_int) -> c_int {
    guard(|| {
        match handles::remove(handle)? {
            OpenObject::Writer(writer) => {
                // Another thread may be writing: its part is the last.
                let writer = writer.lock().unwrap_or_else(PoisonError::into_inner).take();
                writer.map_or(Ok(()), Writer::close)?;
            }
            OpenObject::RunWriter(run) => {
                drop(run.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
            OpenObject::Reader(_) | OpenObject::RunReader(_) => {}
        }
        Ok(SUCCESS)
    })
}
