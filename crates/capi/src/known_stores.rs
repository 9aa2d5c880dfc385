//! The stores that `NAME:path` means: those of the file that `SWATHE_STORES` names.

use crate::fault::Fault;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use swathe_store_api::{StoreDescription, StoreSettings, Stores};

/// The variable with the path of the file.
const VARIABLE: &str = "SWATHE_STORES";

/// The stores of this process: the file is read once.
pub(crate) fn known_stores() -> Result<Stores, Fault> {
    static STORES: Mutex<Option<Stores>> = Mutex::new(None);
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stores) = &*stores {
        return Ok(stores.clone());
    }
    let settings = match std::env::var_os(VARIABLE) {
        Some(path) if !path.is_empty() => read(Path::new(&path))?,
        _ => Vec::new(),
    };
    Ok(stores.insert(swathe_stripe::stores(settings)).clone())
}

fn read(path: &Path) -> Result<Vec<StoreSettings>, Fault> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
        Fault::new(errno, format!("{VARIABLE}: {}: {error}", path.display()))
    })?;
    parse(&text).map_err(|why| {
        let expected = "expected what `swathe store export` writes";
        Fault::invalid(format!("{VARIABLE}: {}: {expected}, found: {why}", path.display()))
    })
}

fn parse(text: &str) -> Result<Vec<StoreSettings>, String> {
    let stores: Vec<StoreDescription> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    let result = stores.iter().try_for_each(StoreDescription::check_costs);
    result.map_err(|(name, error)| format!("store {name}: {error}"))?;
    Ok(stores.into_iter().map(StoreSettings::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use swathe_plan::Costs;

    #[test]
    fn stores_have_roots_options_and_costs() {
        let mut costs = Costs::remote();
        costs.buffer_bytes = Some(1 << 20);
        let costs = serde_json::to_string(&costs).expect("text");
        let text = format!(
            r#"[{{"name": "a", "root": "file:///data"}},
                {{"name": "b", "root": "s3://b", "options": {{"region": "x"}}, "costs": {costs}}}]"#
        );
        let stores = parse(&text).expect("stores");
        assert_eq!((stores[0].root.as_str(), stores[0].is_measured), ("file:///data", false));
        assert_eq!(stores[1].option("region").as_deref(), Some("x"));
        assert_eq!(stores[1].costs.buffer_bytes(), 1 << 20);
    }

    #[test]
    fn striped_stores_lie_over_others() {
        let text = r#"[{"name": "wide", "root": "striped://wide", "options": {"parity": "1"},
            "over": [{"prefix": "d", "store": {"name": "a", "root": "file:///a"}},
                     {"store": {"name": "b", "root": "file:///b"}}]}]"#;
        let stores = parse(text).expect("stores");
        let over: Vec<_> =
            stores[0].over.iter().map(|of| (of.store.root.as_str(), of.prefix.as_str())).collect();
        assert_eq!(over, [("file:///a", "d"), ("file:///b", "")]);
    }

    #[test]
    fn what_is_no_list_of_stores_is_refused() {
        let mut costs = Costs::remote();
        costs.buffer_bytes = Some(0);
        let costs = serde_json::to_string(&costs).expect("text");
        let impossible = format!(r#"[{{"name": "b", "root": "s3://b", "costs": {costs}}}]"#);
        for text in ["", "{}", r#"[{"name": "a"}]"#, r#"[{"name": "a", "root": "/", "x": 1}]"#] {
            assert!(parse(text).is_err(), "{text}");
        }
        let why = parse(&impossible).unwrap_err();
        assert!(why.contains("store b") && why.contains("buffer_bytes"), "{why}");
    }
}
