//! The demo models do what assets/SOURCES.md says of them.

use std::ops::ControlFlow;

use bit_diffusion::{
    bits::Encoding,
    checkpoint,
    data::shapes,
    demo::Demo,
    experiment::CaptionPreset,
    model::Condition,
    sampler::{Chain, Settings, State},
};
use burn::tensor::Device;

/// Samples of a model without classes, as colour values.
fn samples(demo: Demo, n: usize, settings: Settings) -> Vec<u32> {
    let device = Device::flex();
    let network = checkpoint::load_network(demo.bytes(), &device).unwrap();
    let state = State::from_seed(network.state_shape(n), 5, &device);
    let mut chain = Chain::new(settings, Condition::None, state).unwrap();
    let bits = chain.run(&network, |_| ControlFlow::Continue(())).unwrap();
    network.config().codec().unwrap().decode_tensor(bits).unwrap().into_data().iter::<u32>().collect()
}

#[test]
fn every_model_loads_and_is_what_its_name_says() {
    for demo in Demo::PICTURES {
        let header = checkpoint::inspect(demo.bytes()).unwrap();
        let network = checkpoint::load_network(demo.bytes(), &Device::flex()).unwrap();
        assert_eq!(*network.config(), header.config.network);
        assert_eq!(demo.label().parse::<Demo>().unwrap(), demo);
        let preset = bit_diffusion::experiment::Preset::from_label(demo.label()).unwrap().config();
        assert_eq!(header.config.network, preset.network, "{demo}");
        assert_eq!(header.config.data, preset.data, "{demo}");
    }
    assert!("no such model".parse::<Demo>().is_err());
}

#[test]
fn every_captioner_loads_and_is_what_its_name_says() {
    for (demo, method) in Demo::CAPTIONERS {
        let header = checkpoint::inspect_captioner(demo.bytes()).unwrap();
        let captioner = checkpoint::load_captioner(demo.bytes(), &Device::flex()).unwrap();
        assert_eq!(*captioner.config(), header.config.network);
        let preset = demo.label().parse::<CaptionPreset>().unwrap().config(header.config.network.vocabulary.clone());
        assert_eq!(header.config.network, preset.network, "{demo}");
        assert_eq!(header.config.network.method, method, "{demo}");
        assert_eq!(demo.sees_photographs(), header.config.data != shapes::NAME, "{demo}");
    }
}

#[test]
fn shapes_in_uint8_keep_to_the_palette() {
    let demo = Demo::ShapesUint8;
    let pictures = samples(demo, 48, Settings::default());
    let off: usize = pictures.chunks_exact(3 * shapes::SIZE * shapes::SIZE).map(shapes::n_off_palette).sum();
    let share = off as f64 / (48 * shapes::SIZE * shapes::SIZE) as f64;
    assert!(share < 0.01, "{:.2} % of the pixels are off the palette", 100.0 * share);
    assert_eq!(checkpoint::inspect(demo.bytes()).unwrap().config.network.encoding, Encoding::Uint8);
}
