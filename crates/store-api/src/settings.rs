//! The settings of a store.

use serde::Deserialize;
use std::collections::BTreeMap;
use swathe_plan::{Costs, CostsError};

/// A place of a striped store: a store, and a folder of it.
#[derive(Clone, Debug)]
pub struct StripePlace {
    /// The store.
    pub store: StoreSettings,
    /// The folder, without a slash at its start; empty for the root.
    pub prefix: String,
}

/// The settings of a store: its root, its credentials, the costs of reading it.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// By which objects are called, `NAME:path`; empty for a root that has no name.
    pub name: String,
    /// URL without a final slash, of files not percent-encoded: `file:///data`, `https://host/path`, `s3://bucket/prefix`.
    pub root: String,
    /// `endpoint`, `region`, `profile`, `account`, `anonymous`, `door`, `token_file`, `roots`,
    /// `http2`, `delegation`: no credentials.
    pub options: BTreeMap<String, String>,
    /// The costs of reading from it.
    pub costs: Costs,
    /// Whether the costs were measured.
    pub is_measured: bool,
    /// The places that the objects of a striped store lie in; none for others.
    pub over: Vec<StripePlace>,
}

impl StoreSettings {
    /// A store with costs taken for granted.
    pub fn new(name: String, root: String, options: BTreeMap<String, String>) -> StoreSettings {
        let is_local = root.starts_with("file://");
        let costs = if is_local { Costs::local() } else { Costs::remote() };
        StoreSettings { name, root, options, costs, is_measured: false, over: Vec::new() }
    }

    /// The same, with costs that were measured.
    #[must_use]
    pub fn with_costs(self, costs: &Costs) -> StoreSettings {
        StoreSettings { costs: costs.clone(), is_measured: true, ..self }
    }

    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<String> {
        self.options.get(name).cloned()
    }

    /// The scheme of its root.
    pub fn scheme(&self) -> &str {
        self.root.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Whether it is to be read without credentials.
    pub fn is_anonymous(&self) -> bool {
        self.options.get("anonymous").is_some_and(|value| value == "true")
    }
}

/// A store as JSON describes it: in calls of the Python package, and in what `swathe store export`
/// prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreDescription {
    /// Its name.
    pub name: String,
    /// Its root.
    pub root: String,
    /// Its options.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Its costs, if they were measured.
    pub costs: Option<Costs>,
    /// The places of a striped store.
    #[serde(default)]
    pub over: Vec<PlaceDescription>,
}

/// A place of a striped store, as JSON describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceDescription {
    /// The store.
    pub store: StoreDescription,
    /// The folder in it.
    #[serde(default)]
    pub prefix: String,
}

impl StoreDescription {
    /// Refuse costs that no store can have; the name of the store is given with the error.
    ///
    /// # Errors
    /// The first impossible number.
    pub fn check_costs(&self) -> Result<(), (String, CostsError)> {
        if let Some(costs) = &self.costs {
            costs.check().map_err(|error| (self.name.clone(), error))?;
        }
        self.over.iter().try_for_each(|place| place.store.check_costs())
    }

    /// Whether it, or a store that it lies over, comes with costs.
    pub fn has_costs(&self) -> bool {
        self.costs.is_some() || self.over.iter().any(|place| place.store.has_costs())
    }
}

impl From<StoreDescription> for StoreSettings {
    fn from(StoreDescription { name, root, options, costs, over }: StoreDescription) -> Self {
        let over = over.into_iter().map(|PlaceDescription { store, prefix }| {
            let store = StoreSettings::from(store);
            StripePlace { store, prefix }
        });
        let over = over.collect();
        let settings = StoreSettings { over, ..StoreSettings::new(name, root, options) };
        match costs {
            Some(costs) => settings.with_costs(&costs),
            None => settings,
        }
    }
}
