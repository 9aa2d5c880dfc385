//! Names of files, variables and folders that a request may use.

/// Longest name of an input or output, in bytes.
const LONGEST_NAME: usize = 200;
/// Names that results have besides the outputs.
const OWN_NAMES: [&str; 2] = ["manifest", "result"];
/// Variables that do no harm. Any that begins with `SWATHE_` is accepted, too.
const VARIABLES: [&str; 8] = [
    "HDF5_USE_FILE_LOCKING",
    "MKL_NUM_THREADS",
    "MPLBACKEND",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PROJ_DATA",
    "TZ",
];
/// Variables that say where the inputs and outputs are.
const OWN_VARIABLES: [&str; 2] = ["SWATHE_IN", "SWATHE_OUT"];
/// Places in the box that are not the machine's, or that show more of it than a job may see.
const OWN_PLACES: [&str; 5] = ["/in", "/out", "/proc", "/dev", "/sys"];

/// Return why a name is not one of a file in the box, if it is none.
pub(crate) fn fault_of_name(name: &str) -> Option<String> {
    let wrong = if name.is_empty() || name.len() > LONGEST_NAME {
        format!("expected 1 to {LONGEST_NAME} bytes, found {}", name.len())
    } else if name.starts_with(['-', '.']) {
        "expected no - or . at its start".into()
    } else if name.chars().any(|char| char == '/' || char.is_control()) {
        "expected neither / nor control characters".into()
    } else {
        return None;
    };
    Some(format!("name {name:?}: {wrong}"))
}

/// Return why a name is not one of an output, if it is none.
pub(crate) fn fault_of_output(name: &str) -> Option<String> {
    let stem = name.split('.').next().unwrap_or_default().to_lowercase();
    if OWN_NAMES.contains(&stem.as_str()) {
        return Some(format!("name {name:?}: expected another one, this one is Swathe's own"));
    }
    fault_of_name(name)
}

/// Return why a variable may not be set, if it may not.
pub(crate) fn fault_of_variable(name: &str, value: &str) -> Option<String> {
    let is_harmless = VARIABLES.contains(&name)
        || (name.starts_with("SWATHE_")
            && !OWN_VARIABLES.contains(&name)
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
    if !is_harmless {
        return Some(format!(
            "variable {name:?}: expected SWATHE_... or one of {}",
            VARIABLES.join(", ")
        ));
    }
    value.contains('\0').then(|| format!("variable {name}: expected no NUL in its value"))
}

/// Return why a folder may not be shown in the box, if it may not.
pub(crate) fn fault_of_folder(path: &str) -> Option<String> {
    let is_plain = path.starts_with('/')
        && path.len() > 1
        && !path.contains('\0')
        && path[1..].split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !is_plain {
        return Some(format!("folder {path:?}: expected a full path without . and .."));
    }
    let is_inside = |place: &str| {
        path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let is_own = path == "/tmp" || OWN_PLACES.iter().any(|place| is_inside(place));
    is_own.then(|| format!("folder {path:?}: expected another place, the box has its own there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(255);
        for name in ["", "../x", "/x", "-rf", ".x", "a\nb", "a\0b", "a\u{1b}b", "a\u{85}b", &long] {
            assert!(fault_of_name(name).is_some(), "{name:?}");
        }
        for name in ["manifest", "Result", "manifest.csv"] {
            assert!(fault_of_output(name).is_some() && fault_of_name(name).is_none());
        }
        for name in ["grid.nc", "x y", "größe", "manifests"] {
            assert_eq!(fault_of_output(name), None);
        }
    }

    #[test]
    fn variables_that_load_code_are_refused() {
        for name in ["LD_PRELOAD", "PYTHONPATH", "http_proxy", "BASH_ENV", "SWATHE_OUT", ""] {
            assert!(fault_of_variable(name, "x").is_some(), "{name}");
        }
        assert!(fault_of_variable("SWATHE_1", "a\0b").is_some());
        assert_eq!(fault_of_variable("SWATHE_1", "1"), None);
    }

    #[test]
    fn folders_of_the_box_are_refused() {
        for path in ["", "/", "x", "/a/../b", "/a//b", "/tmp", "/proc/1", "/out", "/dev/shm"] {
            assert!(fault_of_folder(path).is_some(), "{path}");
        }
        for path in ["/opt/env", "/tmp/env", "/output"] {
            assert_eq!(fault_of_folder(path), None);
        }
    }
}
