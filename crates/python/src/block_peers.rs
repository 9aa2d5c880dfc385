//! Blocks that workers share: served, fetched and described.

use crate::errors::to_python;
use crate::gil::enter;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use swathe_cache::{BlockCache, Identity, ObjectDescription};
use swathe_engine::Cancel;

/// Serve blocks to other workers, and fetch theirs. See `_swathe.pyi`.
#[pyfunction]
#[pyo3(signature = (address, token, certificates=None))]
pub(crate) fn share_blocks(
    py: Python<'_>,
    address: IpAddr,
    token: String,
    certificates: Option<(PathBuf, PathBuf, PathBuf)>,
) -> PyResult<Option<u16>> {
    let Some(blocks) = blocks(py)? else { return Ok(None) };
    let identity =
        certificates.map(|(authority, certificate, key)| Identity { authority, certificate, key });
    enter(py, &Cancel::default(), move || {
        blocks.use_peers(identity.as_ref())?;
        Ok(Some(blocks.serve(address, &token, identity.as_ref())?.port()))
    })
}

/// Set which workers have blocks of objects. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn set_block_peers(
    py: Python<'_>,
    peers: HashMap<String, Vec<(String, String)>>,
) -> PyResult<()> {
    if let Some(blocks) = blocks(py)? {
        peers.into_iter().for_each(|(object, peers)| blocks.set_peers(&object, peers));
    }
    Ok(())
}

/// Cached bytes of objects. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn cached_bytes(py: Python<'_>, objects: Vec<String>) -> PyResult<Vec<u64>> {
    let Some(blocks) = blocks(py)? else { return Ok(vec![0; objects.len()]) };
    enter(py, &Cancel::default(), move || {
        Ok(objects.iter().map(|object| blocks.cached_bytes(object)).collect())
    })
}

/// A worker's description of an object: URL, prefix of keys, size, costs of its store, cells.
type DescriptionTuple = (String, String, u64, f64, f64, Vec<u64>);

/// Describe objects so that others can pull them. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn describe_blocks(
    py: Python<'_>,
    objects: Vec<String>,
) -> PyResult<Vec<Option<DescriptionTuple>>> {
    let Some(blocks) = blocks(py)? else { return Ok(vec![None; objects.len()]) };
    let to_tuple = |description: ObjectDescription| {
        (
            description.url,
            description.object,
            description.size,
            description.request_s,
            description.byte_s,
            description.cells,
        )
    };
    enter(py, &Cancel::default(), move || {
        Ok(objects.iter().map(|object| blocks.describe(object).map(to_tuple)).collect())
    })
}

/// Fetch blocks from other workers. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn pull_blocks(
    py: Python<'_>,
    name: String,
    description: DescriptionTuple,
    peers: Vec<(String, String)>,
    limit_s: f64,
    only: bool,
) -> PyResult<(u64, u64)> {
    let Some(blocks) = blocks(py)? else { return Ok((0, 0)) };
    let limit = Duration::try_from_secs_f64(limit_s)
        .map_err(|error| PyValueError::new_err(format!("limit_s: {limit_s}: {error}")))?;
    let (url, key, size, request_s, byte_s, cells) = description;
    let description = ObjectDescription { url, object: key, size, request_s, byte_s, cells };
    enter(py, &Cancel::default(), move || {
        let result = blocks.pull(&name, &description, peers, limit, only);
        Ok((result.bytes, result.blocks))
    })
}

/// The costs of other workers. See `_swathe.pyi`.
#[pyfunction]
pub(crate) fn peer_costs(py: Python<'_>) -> PyResult<Option<(f64, f64)>> {
    Ok(blocks(py)?.and_then(|blocks| blocks.peer_costs()))
}

pub(crate) fn blocks(py: Python<'_>) -> PyResult<Option<Arc<BlockCache>>> {
    BlockCache::user().map_err(|error| to_python(py, &error.into()))
}
