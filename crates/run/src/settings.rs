//! The settings of an array of a run.

use crate::{Division, Element, Invalid, Pattern, Sharding};

/// Places of an array of mode `overwrite`: the dump before stays until the next one is durable.
pub const SLOTS: u64 = 2;
const MOST_AXES: usize = 32;
const MOST_BYTES: u64 = 1 << 50;
const MOST_DUMPS: u64 = 1_000_000;
const MOST_ITERATIONS: u64 = 1_000_000_000_000;

/// Whether an array has all its dumps, or the last one only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All.
    Create,
    /// The last.
    Overwrite,
}

/// An array that a run writes.
#[derive(Clone, Debug)]
pub struct ArraySettings {
    /// Its name.
    pub name: String,
    /// Lengths of its axes.
    pub shape: Vec<u64>,
    /// Type of its elements.
    pub element: Element,
    /// Iterations from one dump to the next.
    pub every: u64,
    /// How its axes are divided over ranks.
    pub pattern: Pattern,
    /// Which dumps it has.
    pub mode: Mode,
    /// Number of the last iteration of the run.
    pub iterations: u64,
}

impl ArraySettings {
    /// Check what a caller says of an array.
    pub fn check(&self) -> Result<(), Invalid> {
        let Self { name, shape, every, iterations, .. } = self;
        check_name(name)?;
        let label = |key: &str| format!("array {name}: {key}");
        if name == "zarr.json" || name.starts_with("iteration_") {
            let expected = "another name than zarr.json and iteration_...";
            return Err(Invalid::new("array", expected, name));
        }
        if shape.is_empty() || shape.len() > MOST_AXES || shape.contains(&0) {
            let expected = format!("1 to {MOST_AXES} axes of at least 1 element");
            return Err(Invalid::new(&label("shape"), &expected, format!("{shape:?}")));
        }
        let bytes = shape.iter().try_fold(self.element.bytes(), |all, &axis| all.checked_mul(axis));
        if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
            let expected = format!("at most {MOST_BYTES} bytes at one iteration");
            return Err(Invalid::new(&label("shape"), &expected, format!("{shape:?}")));
        }
        if !(1..=MOST_ITERATIONS).contains(every) {
            return Err(Invalid::new(&label("every"), &format!("1 to {MOST_ITERATIONS}"), every));
        }
        if iterations / every + 1 > MOST_DUMPS {
            let expected = format!("at most {MOST_DUMPS} dumps");
            return Err(Invalid::new(&label("every"), &expected, iterations / every + 1));
        }
        Ok(())
    }

    /// How a dump is cut into shards.
    pub fn sharding(&self) -> Sharding {
        Sharding::new(&self.shape, self.element)
    }

    /// Who has what of it.
    pub fn division(&self, ranks: u64) -> Result<Division, Invalid> {
        self.pattern.division(&self.shape, ranks)
    }
}

/// Check the name of a run or an array.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins && name.len() <= 100 && name.bytes().all(is_plain) {
        return Ok(());
    }
    let expected = "letters, digits, '_', '.' and '-', at most 100";
    Err(Invalid::new("name", expected, format!("{name:?}")))
}

/// Check the number of the last iteration of a run.
pub fn check_iterations(iterations: u64) -> Result<(), Invalid> {
    if iterations <= MOST_ITERATIONS {
        return Ok(());
    }
    Err(Invalid::new("iterations", &format!("at most {MOST_ITERATIONS}"), iterations))
}
