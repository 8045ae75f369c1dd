//! Makes Rust of `proto/`, without `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "authapi.proto",
        "versionapi.proto",
        "eventstreamapi.proto",
        "cloudevents.proto",
        "sync.proto",
        "join.proto",
        "tunnel.proto",
    ];
    println!("cargo:rerun-if-changed=proto");
    let set = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::buffers::SmallCodec")
        .bytes(".")
        .btree_map(".")
        .compile_fds(set)?;
    Ok(())
}
