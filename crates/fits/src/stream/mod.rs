//! Whole-file compression.
