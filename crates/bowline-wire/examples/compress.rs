//! What packing frames costs and gains: zstd level 1 against lz4, on frames of about 47 KiB whose
//! records are Kubernetes-shaped JSON of about 400 bytes. `cargo run --release --example compress`

#![expect(clippy::print_stdout, reason = "its figures are what it is for")]

use std::hint::black_box;
use std::time::Instant;

fn main() {
    let frames: Vec<Vec<u8>> = (0..64).map(frame).collect();
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let records = 64 * RECORDS;
    println!("{} frames, {} bytes a record", frames.len(), bytes / records);
    println!("{:<10} {:>6} {:>14} {:>14}", "packing", "ratio", "pack MB/s", "unpack MB/s");
    let zstd_1 = |plain: &[u8]| zstd::bulk::compress(plain, 1).expect("plain bytes can be packed");
    let zstd_fast =
        |plain: &[u8]| zstd::bulk::compress(plain, -3).expect("plain bytes can be packed");
    let unzstd = |packed: &[u8]| zstd::bulk::decompress(packed, 1 << 20).expect("just packed");
    let unlz4 =
        |packed: &[u8]| lz4_flex::block::decompress_size_prepended(packed).expect("just packed");
    measure("zstd 1", &frames, zstd_1, unzstd);
    measure("zstd -3", &frames, zstd_fast, unzstd);
    let mut packer = zstd::bulk::Compressor::new(1).expect("a context");
    let mut unpacker = zstd::bulk::Decompressor::new().expect("a context");
    measure(
        "zstd 1, kept",
        &frames,
        move |plain: &[u8]| packer.compress(plain).expect("plain bytes can be packed"),
        move |packed: &[u8]| unpacker.decompress(packed, 1 << 20).expect("just packed"),
    );
    measure("lz4", &frames, lz4_flex::block::compress_prepend_size, unlz4);
}

const RECORDS: usize = 115;

fn measure(
    name: &str,
    frames: &[Vec<u8>],
    mut pack: impl FnMut(&[u8]) -> Vec<u8>,
    mut unpack: impl FnMut(&[u8]) -> Vec<u8>,
) {
    let bytes: usize = frames.iter().map(Vec::len).sum();
    let packed: Vec<Vec<u8>> = frames.iter().map(|f| pack(f)).collect();
    let small: usize = packed.iter().map(Vec::len).sum();
    let rate = |mut once: Box<dyn FnMut() + '_>| {
        let (started, mut rounds) = (Instant::now(), 0);
        while started.elapsed().as_millis() < 1000 {
            once();
            rounds += 1;
        }
        (bytes * rounds) as f64 / started.elapsed().as_secs_f64() / 1e6
    };
    let packing = rate(Box::new(|| frames.iter().for_each(|f| drop(black_box(pack(f))))));
    let unpacking = rate(Box::new(|| packed.iter().for_each(|p| drop(black_box(unpack(p))))));
    let ratio = bytes as f64 / small as f64;
    println!("{name:<12} {ratio:>6.1} {packing:>14.0} {unpacking:>14.0}");
}

/// Records as an agent reports them: much alike, with ids, times and counts that differ.
fn frame(number: usize) -> Vec<u8> {
    let mut out = vec![];
    for n in 0..RECORDS {
        let seed = mixed((number * RECORDS + n) as u64);
        let (health, sync) =
            [("Healthy", "Synced"), ("Progressing", "OutOfSync")][(seed % 2) as usize];
        let body = serde_json::json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": format!("web-{}", seed % 5000),
                "namespace": format!("team-{}", seed % 40),
                "uid": format!("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", mixed(seed) as u32, seed as u16,
                    seed % 4096, seed % 4093, mixed(seed + 1) & 0xffff_ffff_ffff),
                "resourceVersion": (seed % 90_000_000).to_string(),
                "labels": { "app": format!("web-{}", seed % 5000), "tier": "frontend" },
            },
            "status": {
                "sync": sync, "health": health, "replicas": seed % 7, "ready": seed % 5,
                "revision": format!("{:016x}{:016x}", mixed(seed + 2), mixed(seed + 3)),
                "observedAt": format!("2026-11-16T0{}:{:02}:{:02}.{:03}Z", seed % 10, seed % 60, seed % 59, seed % 997),
            },
        });
        let key = format!("apps/Deployment/team-{}/web-{}", seed % 40, seed % 5000);
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(&seed.to_le_bytes());
        out.extend_from_slice(body.to_string().as_bytes());
    }
    out
}

fn mixed(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
