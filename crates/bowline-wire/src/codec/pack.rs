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
            let plain = zstd::bulk::decompress(&data, limit).map_err(|_| Bad::Shape("zstd"))?;
            Ok(plain.into())
        }
        Some(_) => Err(Bad::Shape("unknown packing")),
    }
}
