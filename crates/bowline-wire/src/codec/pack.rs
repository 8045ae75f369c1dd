//! Frames above a size travel packed.

use std::cell::RefCell;

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use super::reader::Bad;

/// Below, packing gains less than its own overhead.
const WORTH: usize = 1024;
const LEVEL: i32 = 1;
const ZSTD: &str = "zstd";

thread_local! {
    // A context is half a megabyte: one a thread, not one a link.
    static PACKER: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    static UNPACKER: RefCell<Option<Decompressor<'static>>> =
        RefCell::new(Decompressor::new().ok());
}

/// Packs what is worth it; says how.
pub(super) fn pack(plain: Vec<u8>) -> (Bytes, Option<&'static str>) {
    if plain.len() < WORTH {
        return (plain.into(), None);
    }
    let packed = PACKER.with_borrow_mut(|p| p.as_mut().and_then(|p| p.compress(&plain).ok()));
    match packed {
        Some(packed) if packed.len() < plain.len() => (packed.into(), Some(ZSTD)),
        _ => (plain.into(), None),
    }
}

/// Unpacks to at most `limit` bytes, whatever the data claims.
pub(super) fn unpack(data: Bytes, packing: Option<&str>, limit: usize) -> Result<Bytes, Bad> {
    match packing {
        None if data.len() > limit => Err(Bad::Limit("bytes in a frame", limit)),
        None => Ok(data),
        Some(ZSTD) => {
            let size = zstd::zstd_safe::get_frame_content_size(&data).ok().flatten();
            let size = size.ok_or(Bad::Shape("no size in the packed data"))?;
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > limit {
                return Err(Bad::Limit("bytes in a frame", limit));
            }
            // Never more than it says, which is no more than the limit.
            let unpack =
                |u: &mut Option<Decompressor<'_>>| u.as_mut()?.decompress(&data, size).ok();
            let plain = UNPACKER.with_borrow_mut(unpack);
            Ok(plain.ok_or(Bad::Shape("the packed data is damaged"))?.into())
        }
        Some(_) => Err(Bad::Shape("unknown packing")),
    }
}
