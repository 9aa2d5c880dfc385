//! The parts that every cutout of an HDU shares, with the tables its WCS needs.

use super::Object;
use crate::error::EngineError;
use crate::part::Part;
use crate::selector::Selector;
use crate::template::{BLOCK, Companion, FitsHead, Head, Template};
use crate::worker_context::ReadContext;
use swathe_array::Region;
use swathe_fits::{CutHeader, Hdu, Lookup, companions, primary_for_extension};
use swathe_plan::Break;

/// A table that a WCS needs is carried along whole, up to this size; real ones are below 10 MB.
const COMPANION_LIMIT: u64 = 256 << 20;

impl Object {
    pub(super) fn new_template(&self, hdu: &Hdu) -> Result<Template, EngineError> {
        let wrong = |source| self.header_error(hdu.index, source);
        let image = hdu.image().map_err(wrong)?;
        let header = CutHeader::new(&image).map_err(wrong)?;
        let needs = companions(&image);
        let mut companions = Vec::new();
        for need in needs {
            let selector = Selector::Name(need.name.clone(), need.version);
            let hdu = match self.find(&selector) {
                Ok(hdu) => hdu,
                // The source lacks the table its own header names: so will the cut.
                Err(EngineError::NoSuchHdu { .. } | EngineError::LostHdus { .. }) => continue,
                Err(error) => return Err(error),
            };
            let read = || self.read_companion(&hdu, need.kind == Lookup::Image);
            companions.push(self.opening(read)?);
        }
        let primary = if image.primary {
            Vec::new()
        } else {
            let primary = self.find(&Selector::Index(0))?;
            primary_for_extension(&primary.header, 1 + companions.len()).to_bytes()
        };
        Ok(Template {
            url: self.url().to_string(),
            name: self.display_name().to_string(),
            version: self.version(),
            part: Part::hdu(hdu.index),
            layout: image.layout.clone(),
            plane: [0, 1],
            content_len: self.content.len(),
            is_folder: false,
            head: Head::Fits(Box::new(FitsHead { image, header, primary, companions })),
        })
    }

    fn read_companion(&self, hdu: &Hdu, moves: bool) -> Result<Companion, EngineError> {
        if hdu.data_len > COMPANION_LIMIT {
            return Err(EngineError::TooLarge {
                url: self.url().to_string(),
                part: Part::hdu(hdu.index),
                region: Region::of_shape(&[hdu.data_len]),
                bytes: hdu.data_len,
                limit: COMPANION_LIMIT,
            });
        }
        let mut data = Vec::new();
        if hdu.data_len > 0 {
            let what = || format!("the table of HDU {}", hdu.index);
            let segments = [hdu.data_start..hdu.data_start + hdu.data_len];
            let mut reading = ReadContext::default();
            let plan = self.content.plan(&segments, Break::Anywhere, &what, &reading)?;
            self.content.read(plan, &what, &mut reading, &mut |_, piece| {
                data.extend_from_slice(piece);
                Ok(())
            })?;
        }
        data.resize(data.len().next_multiple_of(BLOCK), 0);
        Ok(Companion { header: hdu.header.clone(), data, moves })
    }
}
