//! Frames above a size travel packed.

use bytes::Bytes;

use super::reader::Bad;

/// Below, packing gains less than its own overhead.
const WORTH: usize = 1024;
const LEVEL: i32 = 1;
const ZSTD: &str = "zstd";

/// Packs what is worth it; says how.
pub(super) fn pack(plain: Vec<u8>) -> (Bytes, Option<&'static str>) {
    if plain.len() < WORTH {
        return (plain.into(), None);
    }
    match zstd::bulk::compress(&plain, LEVEL) {
        Ok(packed) if packed.len() < plain.len() => (packed.into(), Some(ZSTD)),
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
            let plain = zstd::bulk::decompress(&data, size);
            Ok(plain.map_err(|_| Bad::Shape("the packed data is damaged"))?.into())
        }
        Some(_) => Err(Bad::Shape("unknown packing")),
    }
}
