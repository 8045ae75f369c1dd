//! A codec with small buffers: ten thousand idle streams should not hold 8 KiB each.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstEncoder};

const START: usize = 1024;
/// Messages that are ready together leave together until this much is gathered.
const GATHER: usize = 64 * 1024;

/// The codec that the generated services use.
pub(crate) struct SmallCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for SmallCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for SmallCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = SmallDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(START, GATHER))
    }

    fn decoder(&mut self) -> Self::Decoder {
        SmallDecoder(PhantomData)
    }
}

/// Tells bytes that make no message apart from what a peer may say: nobody sends `DataLoss`.
pub(crate) struct SmallDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for SmallDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(buf).map(Some).map_err(|e| Status::data_loss(e.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(START, GATHER)
    }
}
