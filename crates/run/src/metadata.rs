//! The metadata of a run in one store: a group of Zarr 3 with an array for each array of the run.
//!
//! The first axis of an array counts its dumps. Arrays whose dumps are at the same iterations share
//! a coordinate, `iteration_EVERY`. An array of mode `overwrite` has two places, written in turn; its
//! attribute `iterations` names the iteration in each.

use crate::settings::{ArraySettings, Mode, SLOTS};
use crate::{Element, Invalid, Sharding};
use serde_json::{Map, Value, json};

/// Name of the metadata of a group or an array in its folder.
pub const NODE: &str = "zarr.json";
/// What names of coordinates begin with.
const COORDINATE: &str = "iteration_";

/// An object to write: its name in the group, and its content.
pub type Content = (String, Vec<u8>);

/// Names and contents of the metadata of a run.
#[derive(Debug)]
pub struct GroupMetadata {
    title: String,
    iterations: u64,
    arrays: Map<String, Value>,
}

impl GroupMetadata {
    /// The metadata of a run without arrays.
    pub fn new(title: &str, iterations: u64) -> GroupMetadata {
        GroupMetadata { title: title.to_string(), iterations, arrays: Map::new() }
    }

    /// The objects to write for an array; the group, which names it, is the last.
    pub fn add(&mut self, array: &ArraySettings) -> Vec<Content> {
        let mut contents = Vec::new();
        let (axis, length, attributes) = match array.mode {
            Mode::Overwrite => {
                let attributes = json!({"iterations": vec![Value::Null; SLOTS as usize]});
                (format!("{}_slot", array.name), SLOTS, attributes)
            }
            Mode::Create => {
                let dumps = array.iterations / array.every + 1;
                (format!("{COORDINATE}{}", array.every), dumps, json!({}))
            }
        };
        if array.mode == Mode::Create && !self.arrays.contains_key(&axis) {
            let values = (0..length).flat_map(|dump| ((dump * array.every) as i64).to_le_bytes());
            contents.push((format!("{axis}/c/0"), values.collect()));
            self.arrays.insert(axis.clone(), coordinate(&axis, length));
            contents.push(self.node(&axis));
        }
        self.arrays.insert(array.name.clone(), description(array, &axis, length, attributes));
        contents.extend(self.nodes(&array.name));
        contents
    }

    /// The objects to write when an array of mode `overwrite` has other iterations in its places.
    pub fn set_iterations(&mut self, name: &str, iterations: &[Option<u64>]) -> Vec<Content> {
        if let Some(array) = self.arrays.get_mut(name) {
            array["attributes"]["iterations"] = json!(iterations);
        }
        self.nodes(name)
    }

    fn nodes(&self, name: &str) -> Vec<Content> {
        let source = concat!("swathe ", env!("CARGO_PKG_VERSION"));
        let root = json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {
                "Conventions": "CF-1.11", "title": self.title, "source": source,
                "iterations": self.iterations,
            },
            "consolidated_metadata": {
                "kind": "inline", "must_understand": false, "metadata": self.arrays,
            },
        });
        vec![self.node(name), (NODE.to_string(), root.to_string().into_bytes())]
    }

    fn node(&self, name: &str) -> Content {
        (format!("{name}/{NODE}"), self.arrays[name].to_string().into_bytes())
    }
}

/// The name of a shard of a dump in its group.
pub fn shard_name(array: &str, slot: u64, place: &[u64]) -> String {
    let places: Vec<String> = place.iter().map(u64::to_string).collect();
    format!("{array}/c/{slot}/{}", places.join("/"))
}

fn little(element_bytes: u64) -> Value {
    match element_bytes {
        1 => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    }
}

fn node(shape: &[u64], kind: &str, chunk: &[u64], codec: Value, fill: Value) -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [codec],
    })
}

fn coordinate(name: &str, length: u64) -> Value {
    let mut node = node(&[length], "int64", &[length], little(8), json!(0));
    node["attributes"] = json!({"long_name": "iteration", "units": "1"});
    node["dimension_names"] = json!([name]);
    node
}

fn description(array: &ArraySettings, axis: &str, length: u64, attributes: Value) -> Value {
    let (sharding, element) = (array.sharding(), array.element);
    let mut node = node(
        &[&[length], &array.shape[..]].concat(),
        element.name(),
        &[&[1], &sharding.shard_shape[..]].concat(),
        codec(&sharding, element),
        element.fill(),
    );
    let axes = (0..array.shape.len()).map(|at| format!("{}_{at}", array.name));
    node["attributes"] = attributes;
    node["dimension_names"] = std::iter::once(axis.to_string()).chain(axes).collect();
    node
}

fn codec(sharding: &Sharding, element: Element) -> Value {
    let chunk = [&[1], &sharding.chunk_shape[..]].concat();
    json!({
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": chunk,
            "codecs": [little(element.bytes())],
            "index_codecs": [little(8), {"name": "crc32c"}],
            "index_location": "end",
        },
    })
}

/// An array of a run, as its group describes it.
#[derive(Debug)]
pub struct ArrayMetadata {
    /// Lengths of a dump.
    pub shape: Vec<u64>,
    /// Type of its elements.
    pub element: Element,
    /// How a dump is cut into shards.
    pub sharding: Sharding,
    dumps: Dumps,
}

#[derive(Debug)]
enum Dumps {
    Every { iterations: u64, count: u64 },
    Slots(Vec<Option<u64>>),
}

impl ArrayMetadata {
    /// The array of a name in a group, from the metadata of the group.
    pub fn read(group: &[u8], name: &str) -> Result<ArrayMetadata, Invalid> {
        let group: Value = serde_json::from_slice(group)
            .map_err(|error| Invalid::new(NODE, "a group of a run", error))?;
        let arrays = &group["consolidated_metadata"]["metadata"];
        let node = arrays.get(name).ok_or_else(|| {
            let names: Vec<&str> = arrays
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .filter(|name| !name.starts_with(COORDINATE))
                .collect();
            Invalid::new("array", &format!("one of {}", names.join(", ")), format!("{name:?}"))
        })?;
        ArrayMetadata::of_node(node, name).ok_or_else(|| {
            Invalid::new(&format!("array {name}"), "one that a run has written", "another")
        })
    }

    fn of_node(node: &Value, name: &str) -> Option<ArrayMetadata> {
        let whole: Vec<u64> = serde_json::from_value(node["shape"].clone()).ok()?;
        let (&length, shape) = whole.split_first()?;
        let element = Element::parse(node["data_type"].as_str()?).ok()?;
        let bytes = shape.iter().try_fold(element.bytes(), |all, &axis| all.checked_mul(axis))?;
        if shape.is_empty() || shape.contains(&0) || bytes > 1 << 50 {
            return None;
        }
        let sharding = Sharding::new(shape, element);
        let shard = [&[1], &sharding.shard_shape[..]].concat();
        let chunk = json!(shard);
        let is_ours = node["chunk_grid"]["configuration"]["chunk_shape"] == chunk
            && node["codecs"] == json!([codec(&sharding, element)])
            && node["chunk_key_encoding"]["configuration"]["separator"] == "/";
        let axis = node["dimension_names"][0].as_str().filter(|_| is_ours)?;
        let dumps = if axis == format!("{name}_slot") {
            Dumps::Slots(serde_json::from_value(node["attributes"]["iterations"].clone()).ok()?)
        } else {
            let iterations = axis.strip_prefix(COORDINATE)?.parse().ok()?;
            (iterations > 0).then_some(Dumps::Every { iterations, count: length })?
        };
        Some(ArrayMetadata { shape: shape.to_vec(), element, sharding, dumps })
    }

    /// Whether places have other iterations in turn.
    pub fn changes(&self) -> bool {
        matches!(self.dumps, Dumps::Slots(_))
    }

    /// The place of an iteration along the first axis; `None` if it has none.
    pub fn slot(&self, iteration: u64) -> Option<u64> {
        match &self.dumps {
            Dumps::Every { iterations, count } => Some(iteration / iterations)
                .filter(|slot| iteration.is_multiple_of(*iterations) && slot < count),
            Dumps::Slots(slots) => {
                slots.iter().position(|&at| at == Some(iteration)).map(|slot| slot as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;

    fn settings(mode: Mode) -> ArraySettings {
        ArraySettings {
            name: "temp".into(),
            shape: vec![4, 6],
            element: Element::parse("f4").expect("a type"),
            every: 5,
            pattern: Pattern::parse("BB", 2).expect("a pattern"),
            mode,
            iterations: 12,
        }
    }

    fn group_of(contents: &[Content]) -> &[u8] {
        let (name, content) = contents.last().expect("a group");
        assert_eq!(name, NODE);
        content
    }

    #[test]
    fn what_is_written_is_read() {
        let mut group = GroupMetadata::new("astro3d", 12);
        let contents = group.add(&settings(Mode::Create));
        let names: Vec<&str> = contents.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["iteration_5/c/0", "iteration_5/zarr.json", "temp/zarr.json", "zarr.json"]
        );
        let array = ArrayMetadata::read(group_of(&contents), "temp").expect("an array");
        assert_eq!((&array.shape[..], array.element.name()), (&[4, 6][..], "float32"));
        assert_eq!(
            [0, 5, 10, 15, 7].map(|at| array.slot(at)),
            [Some(0), Some(1), Some(2), None, None]
        );
        let error = ArrayMetadata::read(group_of(&contents), "vx").expect_err("none").to_string();
        assert_eq!(error, "array: expected one of temp, found \"vx\"");
    }

    #[test]
    fn checkpoints_have_two_places() {
        let mut group = GroupMetadata::new("astro3d", 12);
        group.add(&settings(Mode::Overwrite));
        let contents = group.set_iterations("temp", &[Some(10), None]);
        let array = ArrayMetadata::read(group_of(&contents), "temp").expect("an array");
        assert_eq!([10, 5].map(|at| array.slot(at)), [Some(0), None]);
    }

    #[test]
    fn arrays_of_others_are_refused() {
        let mut group = GroupMetadata::new("astro3d", 12);
        let contents = group.add(&settings(Mode::Create));
        let text = String::from_utf8(group_of(&contents).to_vec()).expect("text");
        for (from, to) in [
            ("\"end\"", "\"start\""),
            ("iteration_5\"", "iteration_0\""),
            ("[3,4,6]", "[3,4,0]"),
            ("float32", "float33"),
            ("{", "["),
        ] {
            assert!(
                ArrayMetadata::read(text.replace(from, to).as_bytes(), "temp").is_err(),
                "{to}"
            );
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let good = settings(Mode::Create);
        assert_eq!(good.check(), Ok(()));
        for bad in [
            ArraySettings { name: "../temp".into(), ..good.clone() },
            ArraySettings { name: "iteration_5".into(), ..good.clone() },
            ArraySettings { shape: vec![], ..good.clone() },
            ArraySettings { shape: vec![0], ..good.clone() },
            ArraySettings { shape: vec![1 << 40, 1 << 40], ..good.clone() },
            ArraySettings { every: 0, ..good.clone() },
            ArraySettings { every: 1, iterations: 1 << 30, ..good.clone() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
