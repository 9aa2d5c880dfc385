//! Tile codecs.
