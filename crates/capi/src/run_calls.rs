//! The calls for runs: begin, add arrays, write, end; open, read.

use crate::boundary::{SUCCESS, bytes_of, check_buffer, guard, optional_text, text_of};
use crate::fault::Fault;
use crate::handles::{self, OpenObject};
use crate::ranks::{Ranks, sw_ranks};
use crate::run_reader::RunReader;
use crate::run_writer::RunWriter;
use libc::{c_char, c_int, c_void, size_t};
use std::sync::{Arc, Mutex, PoisonError};
use swathe_run::{ArraySettings, Element, Mode, Pattern};

/// Only the last dump of an array is kept; the one before stays until it is durable.
pub const SW_OVERWRITE: c_int = 1;
const MOST_AXES: c_int = 32;

fn count_of(name: &str, value: i64) -> Result<u64, Fault> {
    u64::try_from(value)
        .map_err(|_| Fault::invalid(format!("{name}: expected 0 or more, found {value}")))
}

/// Numbers of the caller, one for each axis.
///
/// # Safety
/// There are `axes` numbers.
unsafe fn lengths_of(name: &str, values: *const i64, axes: usize) -> Result<Vec<u64>, Fault> {
    if values.is_null() {
        return Err(Fault::new(libc::EFAULT, format!("{name}: expected numbers, found NULL")));
    }
    // SAFETY: the caller's promise.
    let values = unsafe { std::slice::from_raw_parts(values, axes) };
    values.iter().map(|&value| count_of(name, value)).collect()
}

/// Begin a run: a group of Zarr in a new folder `FOLDER/NAME-xxxxxxxxxxxx.zarr`. All ranks call it, as
/// all calls up to sw_run_end, in the same order; an error of one is returned by all.
///
/// folder is a path, a URL, or NAME:path of a store. iterations is the number of the last iteration;
/// the first is 0. ranks are the processes that share the arrays; NULL: this one only.
///
/// Returns a handle. Errors: EINVAL, EFAULT, EIO (ranks), EMFILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_begin(
    folder: *const c_char,
    name: *const c_char,
    iterations: i64,
    ranks: *const sw_ranks,
) -> c_int {
    guard(|| {
        // SAFETY: texts of the caller, and ranks or NULL.
        let (folder, name, raw) = unsafe {
            (text_of("folder", folder)?, text_of("name", name)?, ranks.as_ref().copied())
        };
        let iterations = count_of("iterations", iterations)?;
        let run = RunWriter::begin(folder, name, iterations, Ranks::new(raw)?)?;
        handles::add(OpenObject::RunWriter(Arc::new(Mutex::new(Some(run)))))
    })
}

/// Fill in the folder of a run that is written, as sw_run_open takes it, with a zero at the end.
///
/// Returns 0. Errors: EBADF, EFAULT, ERANGE (the memory is too small).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_folder(run: c_int, buffer: *mut c_char, length: size_t) -> c_int {
    guard(|| {
        let folder = handles::with_run_writer(run, |run| Ok(run.folder.clone()))?;
        // SAFETY: memory of the caller.
        let buffer = unsafe { bytes_of(buffer.cast(), length)? };
        if folder.len() >= buffer.len() {
            let text = format!("length: expected at least {}, found {length}", folder.len() + 1);
            return Err(Fault::new(libc::ERANGE, text));
        }
        buffer[..folder.len()].copy_from_slice(folder.as_bytes());
        buffer[folder.len()] = 0;
        Ok(SUCCESS)
    })
}

/// Add an array to a run. All ranks call it.
///
/// type is that of NumPy, as "f4" or "u1". shape has the lengths of its axes, the last one fastest, as
/// C has them; a program in Fortran gives its own in reverse. It is written at each iteration that is
/// a multiple of every. pattern says how its axes are divided over ranks, as High Performance Fortran
/// does: "BBB", "B**", "BLOCK,*,CYCLIC(4)"; NULL: the first by blocks. flags: 0 or SW_OVERWRITE.
///
/// Returns the number of the array, from 0. Errors: EBADF, EINVAL, EFAULT, EEXIST, ENOSPC, EACCES,
/// EIO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_array(
    run: c_int,
    name: *const c_char,
    type_: *const c_char,
    axes: c_int,
    shape: *const i64,
    every: i64,
    pattern: *const c_char,
    flags: c_int,
) -> c_int {
    guard(|| {
        let read = |iterations: u64| -> Result<ArraySettings, Fault> {
            if !(1..=MOST_AXES).contains(&axes) {
                let text = format!("axes: expected 1 to {MOST_AXES}, found {axes}");
                return Err(Fault::invalid(text));
            }
            // SAFETY: texts of the caller, and a number for each axis.
            let (name, kind, shape, pattern) = unsafe {
                let shape = lengths_of("shape", shape, axes as usize)?;
                let pattern = optional_text("pattern", pattern)?.unwrap_or_default();
                (text_of("name", name)?, text_of("type", type_)?, shape, pattern)
            };
            let mode = match flags {
                0 => Mode::Create,
                SW_OVERWRITE => Mode::Overwrite,
                _ => {
                    return Err(Fault::invalid(format!(
                        "flags: expected 0 or SW_OVERWRITE, found {flags}"
                    )));
                }
            };
            let (element, pattern) = (Element::parse(kind)?, Pattern::parse(pattern, shape.len())?);
            let (name, every) = (name.to_string(), count_of("every", every)?);
            Ok(ArraySettings { name, shape, element, every, pattern, mode, iterations })
        };
        handles::with_run_writer(run, |run| {
            let settings = read(run.iterations);
            Ok(run.add(settings)? as c_int)
        })
    })
}

/// Fill in where the block of this rank begins in an array, and its lengths, for each axis. Of an
/// axis that is dealt out in turn (CYCLIC) its ranges lie in the block without gaps.
///
/// Returns 0. Errors: EBADF, EINVAL, EFAULT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_block(
    run: c_int,
    array: c_int,
    start: *mut i64,
    shape: *mut i64,
) -> c_int {
    guard(|| {
        let array = count_of("array", array.into())? as usize;
        let (starts, lengths) = handles::with_run_writer(run, |run| run.block(array))?;
        if start.is_null() || shape.is_null() {
            return Err(Fault::new(libc::EFAULT, "start, shape: expected memory, found NULL"));
        }
        for (axis, (&first, &length)) in starts.iter().zip(&lengths).enumerate() {
            // SAFETY: memory of the caller, a number for each axis.
            unsafe {
                *start.add(axis) = first as i64;
                *shape.add(axis) = length as i64;
            }
        }
        Ok(SUCCESS)
    })
}

/// Write the block of this rank at an iteration; the memory may be changed when it returns. All ranks
/// call it. It is durable after sw_run_sync. Nothing is written at iterations without a dump.
///
/// Returns 1 if there was a dump to write, else 0. Errors: EBADF, EFAULT, EINVAL (another iteration or
/// length than expected), EEXIST (written before), and those of earlier writes: ENOSPC, EACCES, EIO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_write(
    run: c_int,
    array: c_int,
    iteration: i64,
    block: *const c_void,
    length: size_t,
) -> c_int {
    guard(|| {
        let read = || {
            check_buffer(block, length)?;
            let array = count_of("array", array.into())? as usize;
            let iteration = count_of("iteration", iteration)?;
            let block = match length {
                0 => &[],
                // SAFETY: memory of the caller, only read.
                _ => unsafe { std::slice::from_raw_parts(block.cast::<u8>(), length) },
            };
            Ok((array, iteration, block))
        };
        // Wrong arguments of one rank are an error of all.
        handles::with_run_writer(run, |run| Ok(c_int::from(run.write(read())?)))
    })
}

/// Wait until all that was written is durable. All ranks call it.
///
/// Returns 0. Errors: EBADF, ENOSPC, EACCES, EIO.
#[unsafe(no_mangle)]
pub extern "C" fn sw_run_sync(run: c_int) -> c_int {
    guard(|| {
        handles::with_run_writer(run, RunWriter::sync)?;
        Ok(SUCCESS)
    })
}

/// End a run when all is durable. All ranks call it. The handle is closed in any case.
///
/// Returns 0. Errors: as sw_run_sync.
#[unsafe(no_mangle)]
pub extern "C" fn sw_run_end(run: c_int) -> c_int {
    guard(|| {
        let result = handles::with_run_writer(run, RunWriter::sync);
        // Not of a handle that is something else.
        if handles::is_run_writer(run)
            && let OpenObject::RunWriter(run) = handles::remove(run)?
        {
            drop(run.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        result.map(|()| SUCCESS)
    })
}

/// Open a run to read: the folder of its group. sw_close closes it.
///
/// Returns a handle, which any number of threads may use. Errors: ENOENT, EACCES, EBADMSG, EIO,
/// EMFILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_open(folder: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: a text of the caller.
        let folder = unsafe { text_of("folder", folder)? };
        handles::add(OpenObject::RunReader(Arc::new(RunReader::open(folder)?)))
    })
}

/// Read a box of an array at an iteration: from start, of lengths shape, the last axis fastest. Only
/// the chunks that it touches are read.
///
/// Returns 0. Errors: EBADF, EFAULT, EINVAL (length is not that of the box), EDOM (the box is outside
/// the array), ENXIO (no such array), ENOENT (no such iteration), ESTALE (a checkpoint
/// that was replaced meanwhile), EBADMSG (damaged), EACCES, EIO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_run_read(
    run: c_int,
    array: *const c_char,
    iteration: i64,
    axes: c_int,
    start: *const i64,
    shape: *const i64,
    buffer: *mut c_void,
    length: size_t,
) -> c_int {
    guard(|| {
        let run = handles::run_reader(run)?;
        if !(1..=MOST_AXES).contains(&axes) {
            return Err(Fault::invalid(format!("axes: expected 1 to {MOST_AXES}, found {axes}")));
        }
        // SAFETY: texts, numbers for each axis, and memory of the caller.
        let (array, start, shape, buffer) = unsafe {
            let start = lengths_of("start", start, axes as usize)?;
            let shape = lengths_of("shape", shape, axes as usize)?;
            (text_of("array", array)?, start, shape, bytes_of(buffer, length)?)
        };
        run.read(array, count_of("iteration", iteration)?, &start, &shape, buffer)?;
        Ok(SUCCESS)
    })
}
