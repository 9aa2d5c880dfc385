//! temporary
#![allow(missing_docs)]
use serde::Deserialize;
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Filter {
    Deflate,
    Shuffle { size: usize },
    Fletcher32,
}
#[derive(Clone, Debug)]
pub struct Filters(Vec<Filter>);
#[derive(Debug, Default)]
pub struct Scratch {
    a: Vec<u8>,
}
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("bad")]
pub struct FilterError;
impl Filters {
    pub fn new(f: Vec<Filter>) -> Result<Filters, FilterError> {
        Ok(Filters(f))
    }
    pub fn name(&self) -> String {
        "x".into()
    }
    pub fn decode(
        &self,
        bytes: &[u8],
        skips: u32,
        n: usize,
        s: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let mut data = bytes.to_vec();
        for (i, f) in self.0.iter().enumerate().rev() {
            if skips >> i & 1 == 1 {
                continue;
            }
            match f {
                Filter::Deflate => {
                    s.a.resize(n, 0);
                    let m = libdeflater::Decompressor::new()
                        .zlib_decompress(&data, &mut s.a)
                        .map_err(|_| FilterError)?;
                    data = s.a[..m].to_vec();
                }
                Filter::Shuffle { size } => {
                    let c = data.len() / size;
                    let mut o = data.clone();
                    for k in 0..*size {
                        for j in 0..c {
                            o[j * size + k] = data[k * c + j];
                        }
                    }
                    data = o;
                }
                Filter::Fletcher32 => {
                    data.truncate(data.len() - 4);
                }
            }
        }
        if data.len() != n {
            return Err(FilterError);
        }
        *out = data;
        Ok(())
    }
}
