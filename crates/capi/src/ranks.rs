//! The processes that share a run, as the caller's functions reach them.

use crate::fault::Fault;
use libc::{c_int, c_void, size_t};

/// The processes (ranks) that share a run, and how bytes go between them. `swathe_mpi.h` makes one
/// of a communicator of MPI. The functions return 0, or another number if they fail; all ranks call
/// them in the same order, one call at a time.
#[allow(non_camel_case_types)] // as C has it
#[derive(Clone, Copy)]
#[repr(C)]
pub struct sw_ranks {
    /// This rank, from 0.
    pub rank: c_int,
    /// Number of ranks.
    pub size: c_int,
    /// Bring the `length` bytes `own` of each rank to all: in the order of ranks, to `all`.
    pub gather: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            own: *const c_void,
            length: size_t,
            all: *mut c_void,
        ) -> c_int,
    >,
    /// Send `outgoing_lengths[k]` bytes of `outgoing` to each rank k, one part after the other, and
    /// receive `incoming_lengths[k]` bytes from it.
    pub exchange: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            outgoing: *const c_void,
            outgoing_lengths: *const size_t,
            incoming: *mut c_void,
            incoming_lengths: *const size_t,
        ) -> c_int,
    >,
    /// First argument of both, for example the communicator. It must stay valid until sw_run_end.
    pub context: *mut c_void,
}

/// Bytes of a rank's answer to whether it goes on: errno, a hash of what it does, and a text.
const ANSWER_BYTES: usize = 512;
const HEAD_BYTES: usize = 4 + 8 + 2;
const MOST_RANKS: c_int = 1 << 20;

/// The ranks of a run.
pub(crate) struct Ranks {
    raw: Option<sw_ranks>,
    pub(crate) rank: usize,
    pub(crate) size: usize,
}

// SAFETY: the caller promises that the context is used by one call at a time; that any thread may do
// so is what `MPI_THREAD_SERIALIZED` means, and docs/c.md says it.
unsafe impl Send for Ranks {}

impl Ranks {
    /// The ranks of the caller; one process without any.
    pub(crate) fn new(raw: Option<sw_ranks>) -> Result<Ranks, Fault> {
        let Some(of) = raw else { return Ok(Ranks { raw, rank: 0, size: 1 }) };
        if !(1..=MOST_RANKS).contains(&of.size) || !(0..of.size).contains(&of.rank) {
            let text = format!(
                "ranks: expected a rank of 1 to {MOST_RANKS}, found rank {} of {}",
                of.rank, of.size
            );
            return Err(Fault::invalid(text));
        }
        if of.gather.is_none() || of.exchange.is_none() {
            return Err(Fault::new(
                libc::EFAULT,
                "ranks: expected gather and exchange, found NULL",
            ));
        }
        let raw = Some(of).filter(|of| of.size > 1);
        Ok(Ranks { raw, rank: of.rank as usize, size: of.size as usize })
    }

    /// The bytes of all ranks, which are equally long.
    pub(crate) fn gather(&self, own: &[u8]) -> Result<Vec<u8>, Fault> {
        let Some((raw, gather)) = self.raw.and_then(|raw| Some((raw, raw.gather?))) else {
            return Ok(own.to_vec());
        };
        let mut all = vec![0; own.len() * self.size];
        // SAFETY: the caller's function, with memory of the lengths that it is told.
        let status =
            unsafe { gather(raw.context, own.as_ptr().cast(), own.len(), all.as_mut_ptr().cast()) };
        check(status, "gather")?;
        Ok(all)
    }

    /// Send parts of `outgoing` to the ranks; returns what they send.
    pub(crate) fn exchange(
        &self,
        outgoing: Vec<u8>,
        outgoing_lengths: &[usize],
        incoming_lengths: &[usize],
    ) -> Result<Vec<u8>, Fault> {
        let Some((raw, exchange)) = self.raw.and_then(|raw| Some((raw, raw.exchange?))) else {
            return Ok(outgoing);
        };
        let mut incoming = vec![0; incoming_lengths.iter().sum()];
        // SAFETY: the caller's function, with memory of the lengths that it is told.
        let status = unsafe {
            exchange(
                raw.context,
                outgoing.as_ptr().cast(),
                outgoing_lengths.as_ptr(),
                incoming.as_mut_ptr().cast(),
                incoming_lengths.as_ptr(),
            )
        };
        check(status, "exchange")?;
        Ok(incoming)
    }

    /// The result of this rank, if all have one and do the same; the first error of any otherwise,
    /// on all of them.
    pub(crate) fn agree<T>(&self, what: &str, result: Result<T, Fault>) -> Result<T, Fault> {
        if self.size == 1 {
            return result;
        }
        let fault = result.as_ref().err();
        let mut own = Vec::with_capacity(ANSWER_BYTES);
        own.extend(fault.map_or(0, |fault| fault.errno).to_le_bytes());
        own.extend(fnv1a(what.as_bytes()).to_le_bytes());
        let mut text = fault.map_or("", |fault| &fault.text);
        while text.len() > ANSWER_BYTES - HEAD_BYTES {
            let (last, _) = text.char_indices().next_back().unwrap_or_default();
            text = &text[..last];
        }
        own.extend((text.len() as u16).to_le_bytes());
        own.extend(text.as_bytes());
        own.resize(ANSWER_BYTES, 0);
        let all = self.gather(&own)?;
        let (answers, _) = all.as_chunks::<ANSWER_BYTES>();
        for (rank, answer) in answers.iter().enumerate() {
            let errno = i32::from_le_bytes([answer[0], answer[1], answer[2], answer[3]]);
            if errno != 0 {
                let length = usize::from(u16::from_le_bytes([answer[12], answer[13]]));
                let text = answer[HEAD_BYTES..].get(..length).unwrap_or_default();
                let text = String::from_utf8_lossy(text);
                return Err(Fault::new(errno, format!("rank {rank}: {text}")));
            }
        }
        match answers.iter().position(|answer| answer[4..12] != answers[0][4..12]) {
            Some(rank) => Err(Fault::invalid(format!(
                "expected the same of all ranks, found that rank {rank} does something else than \
                 rank 0; rank {}: {what}",
                self.rank
            ))),
            None => result,
        }
    }
}

fn check(status: c_int, what: &str) -> Result<(), Fault> {
    match status {
        0 => Ok(()),
        _ => Err(Fault::new(libc::EIO, format!("{what} of the ranks failed with {status}"))),
    }
}

/// A hash that is the same in all processes.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
