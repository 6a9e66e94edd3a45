//! `bit-diffusion features`: what a pretrained encoder sees in captioned pictures, worked out once and kept in a file.
//!
//! Deliberately absent: the file's format, which is the core's.

use std::io::{BufWriter, Write as _};

use anyhow::{Context as _, Result, bail};
use bit_diffusion::{
    data::CaptionedPictures as _,
    device,
    model::features::{CacheInfo, EncoderConfig, ImageEncoder},
};
use burn::tensor::{Tensor, TensorData};

use crate::{
    captioned::open_coco,
    cli::FeaturesArguments,
    data::Split,
    files::{check_out, in_file},
    output::print,
    progress::Reporter,
    save::{cannot_write, write_atomically_with},
};

pub(crate) fn run(arguments: &FeaturesArguments) -> Result<()> {
    let FeaturesArguments { encoder: path, out, pictures: picture_size, batch_size, .. } = arguments;
    check_out(out)?;
    if *batch_size == 0 {
        bail!("--batch-size is 0, but must be at least 1");
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let opened = pollster::block_on(device::open(&arguments.device))?;
    eprintln!("device: {}", opened.description);
    let config = EncoderConfig { size: arguments.size, layer: arguments.layer };
    let encoder = ImageEncoder::load(&bytes, config, &opened.device).with_context(|| in_file(path))?;
    let split = if arguments.test { Split::Test } else { Split::Train };
    let mut data = open_coco(&arguments.data, split, *picture_size)?;
    let info = CacheInfo {
        n_examples: data.n_examples(),
        picture_size: *picture_size,
        encoder: config,
        weights: encoder.fingerprint(),
        data: data.fingerprint(),
    };
    let mut reporter = Reporter::new(info.n_examples, 0);
    write_atomically_with(out, |file| {
        let mut file = BufWriter::new(file);
        file.write_all(&info.to_bytes()).with_context(|| cannot_write(out))?;
        let indices: Vec<usize> = (0..info.n_examples).collect();
        for batch in indices.chunks(*batch_size) {
            let mut pixels = Vec::with_capacity(batch.len() * 3 * picture_size * picture_size);
            for &index in batch {
                pixels.extend(data.read(index)?.pixels.into_iter().map(f32::from));
            }
            let pixels = TensorData::new(pixels, [batch.len(), 3, *picture_size, *picture_size]);
            let tokens = encoder.forward(Tensor::from_data(pixels, &opened.device)).into_data();
            let tokens: Vec<f32> = tokens.iter::<f32>().collect();
            for tokens in tokens.chunks(tokens.len() / batch.len()) {
                file.write_all(&info.encode(tokens)?).with_context(|| cannot_write(out))?;
            }
            reporter.step(batch[batch.len() - 1] + 1, "pictures");
        }
        file.flush().with_context(|| cannot_write(out))
    })?;
    reporter.finish();
    let [n, tokens, channels] = [info.n_examples, config.n_tokens(), config.channels()];
    print(&format!("{}: {n} pictures of {tokens} tokens, {channels} channels each\n", out.display()))
}
