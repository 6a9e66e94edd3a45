//! `bit-diffusion relabel`: captions of all training pictures by one captioner, for another to learn from.
//!
//! People say many things of one picture; a captioner that writes word by word says one, and mostly the likeliest. What writes all words at once learns
//! that much sooner (sequence-level distillation, Kim & Rush 2016; Gu et al. 2018).
//!
//! A picture of which the captioner says nothing keeps a caption of its own. Deliberately absent: pictures without captions, and scenes of shapes, whose captions are right as they are.

use anyhow::Result;
use bit_diffusion::{data::CaptionedPictures as _, device, sampler::Settings};
use burn::tensor::{Tensor, TensorData};

use crate::{
    caption::Opened, captioned::open_coco, captions, cli::RelabelArguments, data::Split, files::check_out,
    output::print, progress::Reporter, save::write_atomically,
};

/// Pictures that are captioned at once.
const BATCH: usize = 64;

pub(crate) fn run(arguments: &RelabelArguments) -> Result<()> {
    let RelabelArguments { model, data: folder, out, beam, .. } = arguments;
    check_out(out)?;
    let opened_device = pollster::block_on(device::open(&arguments.device))?;
    eprintln!("device: {}", opened_device.description);
    let opened = Opened::open(model, &arguments.captions, &opened_device.device)?;
    let network = &opened.header.config.network;
    let settings = Settings {
        n_steps: arguments.steps,
        td: arguments.td,
        schedule: opened.header.config.schedule,
        ..Settings::default()
    };
    settings.validate()?;
    let mut data = captions::open(&arguments.captions, Some(folder), Split::Train, network)?;
    let table = open_coco(folder, Split::Train, data.pictures.size())?;
    let indices: Vec<usize> = (0..table.n_examples()).collect();
    let [channels, height, width] = network.eye.input_shape();
    let mut reporter = Reporter::new(indices.len(), 0);
    let mut written = Vec::with_capacity(indices.len());
    for batch in indices.chunks(BATCH) {
        let mut inputs = Vec::new();
        for &index in batch {
            inputs.extend(data.read(network, index)?.0);
        }
        let inputs = TensorData::new(inputs, [batch.len(), channels, height, width]);
        let seen = opened.captioner.look(Tensor::from_data(inputs, &opened_device.device))?;
        written.extend(opened.write(&seen, opened.how(settings, batch[0] as u64, *beam))?.captions);
        reporter.step(written.len(), "pictures");
    }
    reporter.finish();
    let mut n_silent = 0;
    for (index, caption) in written.iter_mut().enumerate().filter(|(_, caption)| caption.is_empty()) {
        table.captions(index)?[0].clone_into(caption);
        n_silent += 1;
    }
    write_atomically(out, table.table(&written).as_bytes())?;
    let n = written.len();
    print(&format!("{}: captions of {n} pictures, {n_silent} of which keep one of their own\n", out.display()))
}
