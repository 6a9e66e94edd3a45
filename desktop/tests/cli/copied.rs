//! What the studio shows, made again by the line that it copies.

use bit_diffusion::{
    device::DeviceChoice,
    engine::{ChainRequest, Command, Event, Handle, PictureSheet, Slot, StartedJob},
    picture_file,
    sampler::{Sampler, Settings},
    self_cond::SelfCond,
};

use crate::program::Place;

/// The line for a chain, and the pictures of its last step, as the engine of a window makes them.
fn made(request: &ChainRequest) -> (String, PictureSheet) {
    let engine = Handle::start(DeviceChoice::Cpu, || {}).unwrap();
    engine.send(Command::Chain { slot: Slot(0), request: request.clone() });
    let (mut line, mut pictures) = (None, None);
    loop {
        match engine.try_recv() {
            Some(Event::Started { job: StartedJob::Chain { request, .. }, model, .. }) => {
                line = Some(bit_diffusion_ui::command_line(&request, &model, "", "sheet.png").unwrap());
            }
            Some(Event::Frames { frames, .. }) => pictures = frames.last().map(|frame| frame.x_pred.pictures.clone()),
            Some(Event::Finished { .. }) => break,
            Some(Event::Failed { message, .. }) => panic!("{message}"),
            Some(_) => {}
            None => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    (line.unwrap(), pictures.unwrap())
}

#[test]
fn the_copied_line_makes_the_same_pictures() {
    for (sampler, self_cond) in
        [(Sampler::Ddim, SelfCond::Previous), (Sampler::Ddpm, SelfCond::SelfGuidance { weight: 2.0 })]
    {
        let place = Place::new();
        let settings = Settings { n_steps: 4, td: 1.5, sampler, self_cond, ..Settings::default() };
        let (line, pictures) = made(&ChainRequest { settings, n: 5, seed: 11, ..ChainRequest::default() });
        let arguments = line.strip_prefix("bit-diffusion ").unwrap();
        place.ok(&format!("{arguments} --device cpu"));
        // Both have the same layout: the files are the same pixel by pixel.
        let expected = picture_file::png(&vec![vec![pictures]]).unwrap();
        let pixels = |bytes: &[u8]| image::load_from_memory(bytes).unwrap().into_rgb8();
        let (found, expected) = (pixels(&place.read("sheet.png")), pixels(&expected));
        assert_eq!(found.dimensions(), expected.dimensions());
        assert!(found == expected, "{line}");
        // Noise it is not: some pictures differ from each other.
        assert!(found.pixels().any(|pixel| pixel != found.get_pixel(4, 4)));
    }
}
