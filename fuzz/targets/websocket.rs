//! A WebSocket message of the fallback: gRPC frames and header lines. What can be read must survive
//! the way back, and frames are the same however their bytes come.

#![no_main]

use bowline_fuzz::seed;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: seed(SEEDS), |data: &[u8]| bowline_wire::fuzz_websocket(data));

const SEEDS: [&[u8]; 4] = [
    b"\x00\x00\x00\x00\x03abc",
    b"\x00\x00\x00\x00\x01a\x01\x00\x00\x00\x02bc\x00\x00",
    b"\x80\x00\x00\x00\x00",
    b"\x80\x00\x00\x00\x21grpc-status: 7\r\ngrpc-message: no\r\n",
];
