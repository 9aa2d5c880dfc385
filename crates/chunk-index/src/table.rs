//! The chunks of one array.

use crate::columns::Columns;
use std::ops::Range;
use std::sync::Arc;
use swathe_codecs::chunk::Filters;
use swathe_layout::{Chunk, ChunkGrid, ChunkTable, Coding, DecodeError, Scratch};

/// The chunks of one array of an index.
#[derive(Debug)]
pub(crate) struct IndexTable {
    pub grid: ChunkGrid,
    pub element_bytes: usize,
    pub filters: Filters,
    pub codec_name: String,
    pub fill: Vec<u8>,
    pub positions: Positions,
}

/// Where chunks lie.
#[derive(Debug)]
pub(crate) enum Positions {
    /// In these rows of the columns, by ascending number; those without a row are not stored.
    Listed { columns: Arc<Columns>, rows: Range<usize> },
    /// At regular distances, fastest axis first.
    Regular { offset: u64, strides: Vec<u64> },
}

impl IndexTable {
    /// Bytes of a chunk when it is decoded. The index was refused if they cannot be counted.
    fn decoded_bytes(&self, number: u64) -> u64 {
        let elements = self.grid.chunk(number).shape().iter().product::<u64>();
        elements * self.element_bytes as u64
    }

    fn regular_offset(&self, number: u64, offset: u64, strides: &[u64]) -> u64 {
        let (mut rest, mut at) = (number, offset);
        let axes = self.grid.shape.iter().zip(&self.grid.chunk_shape);
        for ((&side, &chunk), &stride) in axes.zip(strides) {
            let along = side.div_ceil(chunk);
            at += (rest % along) * stride;
            rest /= along;
        }
        at
    }
}

impl ChunkTable for IndexTable {
    fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    fn codec_name(&self) -> &str {
        &self.codec_name
    }

    fn position(&self, chunk: u64) -> Option<Chunk> {
        let skips = |skips| Coding::Filters { skips };
        Some(match &self.positions {
            Positions::Listed { columns, rows } => match columns.find(rows.clone(), chunk) {
                Some(row) => Chunk {
                    offset: columns.offset(row),
                    len: columns.length(row),
                    coding: skips(columns.skips(row)),
                },
                None => Chunk { offset: 0, len: 0, coding: skips(0) },
            },
            Positions::Regular { offset, strides } => Chunk {
                offset: self.regular_offset(chunk, *offset, strides),
                len: self.decoded_bytes(chunk),
                coding: skips(0),
            },
        })
    }

    fn is_whole(&self) -> bool {
        match &self.positions {
            Positions::Listed { rows, .. } => self.grid.count() == Some(rows.len() as u64),
            Positions::Regular { .. } => true,
        }
    }

    fn fill(&self) -> &[u8] {
        &self.fill
    }

    fn decode(
        &self,
        number: u64,
        chunk: &Chunk,
        bytes: &[u8],
        _need: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let Coding::Filters { skips } = chunk.coding else { return Err(DecodeError::Coding) };
        let bytes_of_chunk = self.decoded_bytes(number) as usize;
        Ok(self.filters.decode(bytes, skips, bytes_of_chunk, &mut scratch.chunk, out)?)
    }
}
