//! A device that a window opened: the engine works on it, and survives its loss. On whatever adapter there is (a software one will do:
//! Debian's `mesa-vulkan-drivers`). Without an adapter the tests say that they were skipped.

mod drive;

use std::io::Write as _;

use bit_diffusion::{
    bits::{Codec, Encoding},
    device::{
        DeviceChoice,
        shared::{Handles, open_beside, window_device},
    },
    engine::{
        ChainRequest, Command, Engine, Event, Handle, LivePicture, Measure, Model, ModelInfo, PictureSheet, Slot,
    },
    model::ExactDenoiser,
    rng::Rng,
    sampler::Settings,
    schedule::Schedule,
};
use burn::tensor::{
    Device,
    wgpu::wgpu::{
        Adapter, BufferDescriptor, BufferUsages, CommandEncoderDescriptor, DeviceDescriptor, DeviceType, Instance,
        MapMode, PollType, RequestAdapterOptions, TexelCopyBufferInfo, TexelCopyBufferLayout,
    },
};
use drive::{chain, engine, frames, perfect, rest};

/// What a window would have; `None` without a graphics driver, which it says itself, because the test harness hides nothing else.
fn window(descriptor: impl Fn(&Adapter) -> DeviceDescriptor<'static>) -> Option<Handles> {
    let instance = Instance::default();
    let adapter = match pollster::block_on(instance.request_adapter(&RequestAdapterOptions::default())) {
        Ok(adapter) => adapter,
        Err(error) => {
            writeln!(std::io::stderr(), "shared device: SKIPPED, there is no graphics driver ({error})")
                .expect("standard error is open");
            return None;
        }
    };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor(&adapter))).unwrap();
    Some(Handles { instance, adapter, device, queue })
}

fn settings(n_steps: usize) -> Settings {
    Settings { n_steps, ..Settings::default() }
}

#[test]
fn a_chain_on_the_windows_device_makes_the_same_pictures() {
    let Some(window) = window(window_device) else { return };
    let opened = pollster::block_on(open_beside(&DeviceChoice::Wgpu(None), window)).unwrap();
    assert!(opened.description.ends_with("shared with the window"), "{}", opened.description);
    let request = perfect(settings(6));
    let (cpu, gpu) = (chain(&mut engine(), Slot(0), &request), chain(&mut Engine::new(opened), Slot(0), &request));
    assert_eq!((cpu.len(), gpu.len()), (6, 6));
    for (cpu, gpu) in cpu.iter().zip(&gpu) {
        assert_eq!(cpu.x_pred.pictures, gpu.x_pred.pictures, "step {}", cpu.step);
        // Shares of thousands of bits; one that rounding moves over the border is a small part of them.
        assert!((cpu.x_t.share_near_modes - gpu.x_t.share_near_modes).abs() < 1e-3, "step {}", cpu.step);
    }
}

#[test]
fn a_software_adapter_is_left_alone_and_a_poor_device_is_replaced_and_both_are_said() {
    let Some(poor) = window(|_| DeviceDescriptor::default()) else { return };
    let is_software = poor.adapter.get_info().device_type == DeviceType::Cpu;
    let opened = pollster::block_on(open_beside(&DeviceChoice::Auto, poor.clone())).unwrap();
    assert_eq!(is_software, opened.description.starts_with("CPU: the only adapter is a software one"));
    let opened = pollster::block_on(open_beside(&DeviceChoice::Cpu, poor.clone())).unwrap();
    assert_eq!(opened.description, "CPU");
    let opened = pollster::block_on(open_beside(&DeviceChoice::Wgpu(None), poor));
    let description = opened.map_or_else(|error| error.to_string(), |opened| opened.description);
    assert!(description.contains("not shared with the window: it was opened with less"), "{description}");
}

#[test]
fn a_device_that_is_lost_costs_no_picture() {
    let Some(window) = window(window_device) else { return };
    let device = window.device.clone();
    let handle = Handle::start_beside(DeviceChoice::Wgpu(None), window, || {}).unwrap();
    let request = perfect(settings(30));
    handle.send(Command::Chain { slot: Slot(0), request: request.clone() });
    let (mut frames, mut messages, mut is_lost) = (Vec::new(), Vec::new(), false);
    while let Some(event) = handle.recv() {
        match event {
            Event::Started { .. } => frames.clear(),
            Event::Frames { frames: more, .. } => {
                frames.extend(more);
                if frames.len() >= 3 && !std::mem::replace(&mut is_lost, true) {
                    device.destroy();
                }
            }
            Event::Failed { slot: None, message } => messages.push(message),
            Event::Failed { message, .. } => panic!("the job is gone: {message}"),
            Event::Device { description } => messages.push(description),
            Event::Finished { .. } => break,
            _ => {}
        }
    }
    assert!(messages.iter().any(|message| message.contains("going on with the processor")), "{messages:?}");
    assert!(messages.iter().any(|message| message.starts_with("CPU: the device before it failed")), "{messages:?}");
    let cpu = chain(&mut engine(), Slot(0), &request);
    assert_eq!(
        (frames.len(), frames.last().map(|frame| &frame.x_pred.pictures)),
        (30, cpu.last().map(|frame| &frame.x_pred.pictures))
    );
}

/// An exact denoiser of a few random pictures of 6 × 6 pixels.
fn random_model(encoding: Encoding, alphabet: usize, channels: usize, device: &Device) -> Model {
    let (size, n) = (6, 4);
    let codec = Codec::new(encoding, alphabet, 0.8).unwrap();
    let mut rng = Rng::new(5);
    let symbols: Vec<u32> = (0..n * channels * size * size).map(|_| rng.below(alphabet) as u32).collect();
    let points = codec.encode_tensor(&symbols, [n, channels, size, size], device).unwrap();
    let info = ModelInfo {
        name: format!("{encoding:?} of {alphabet}"),
        size,
        channels,
        n_classes: 0,
        n_parameters: 0,
        schedule: Schedule::default(),
        measure: Measure::None,
        codec,
    };
    let denoiser = ExactDenoiser::new(points, info.codec.scale()).unwrap();
    Model { info, denoiser: Box::new(denoiser) }
}

/// What a texture holds, row by row.
fn texels(window: &Handles, picture: &LivePicture) -> Vec<[u8; 4]> {
    let [width, height] = picture.size();
    let pitch = (4 * width).next_multiple_of(256);
    let buffer = window.device.create_buffer(&BufferDescriptor {
        label: None,
        size: u64::from(pitch * height),
        usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut commands = window.device.create_command_encoder(&CommandEncoderDescriptor::default());
    let layout = TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(pitch), rows_per_image: None };
    let (from, to) = (picture.texture().as_image_copy(), TexelCopyBufferInfo { buffer: &buffer, layout });
    commands.copy_texture_to_buffer(from, to, picture.texture().size());
    window.queue.submit([commands.finish()]);
    buffer.map_async(MapMode::Read, .., |result| result.unwrap());
    window.device.poll(PollType::wait_indefinitely()).unwrap();
    let bytes = buffer.get_mapped_range(..).unwrap();
    let rows = bytes.chunks_exact(pitch as usize).flat_map(|row| row[..4 * width as usize].chunks_exact(4));
    rows.map(|texel| texel.try_into().unwrap()).collect()
}

/// What it should hold.
fn grid(sheet: &PictureSheet) -> Vec<[u8; 4]> {
    let columns = (sheet.n as f64).sqrt().ceil() as usize;
    let pitch = sheet.size + 1;
    let (width, height) = (columns * pitch - 1, sheet.n.div_ceil(columns) * pitch - 1);
    let mut texels = vec![[0; 4]; width * height];
    for index in 0..sheet.n {
        for (i, pixel) in sheet.picture(index).chunks_exact(sheet.channels).enumerate() {
            let (x, y) = (index % columns * pitch + i % sheet.size, index / columns * pitch + i / sheet.size);
            texels[y * width + x] = [pixel[0], pixel[sheet.channels / 2], pixel[sheet.channels - 1], 255];
        }
    }
    texels
}

#[test]
fn a_step_is_drawn_before_it_is_read_back_and_looks_the_same() {
    let Some(window) = window(window_device) else { return };
    let opened = pollster::block_on(open_beside(&DeviceChoice::Wgpu(None), window.clone())).unwrap();
    let device = opened.device.clone();
    let mut engine = Engine::new(opened);
    for (encoding, alphabet, channels, n) in [
        (Encoding::Uint8, 256, 3, 5),
        (Encoding::Gray, 256, 1, 1),
        // Not every code has a symbol.
        (Encoding::Gray, 200, 3, 12),
        (Encoding::Uint8Rand, 256, 3, 2),
        (Encoding::Uint8, 2, 1, 3),
    ] {
        let model = engine.insert_model(random_model(encoding, alphabet, channels, &device));
        let request = ChainRequest { model, settings: settings(3), n, seed: 3, ..ChainRequest::default() };
        engine.handle(Command::Chain { slot: Slot(0), request });
        let (mut drawn, mut n_drawn) = (None, 0);
        while let Some(event) = pollster::block_on(engine.work()) {
            match event {
                Event::Live { slot: Slot(0), step } => {
                    drawn = Some((step.step, [&step.x_t, &step.x_pred].map(|picture| texels(&window, picture))));
                }
                Event::Frames { frames, .. } => {
                    let frame = &frames[0];
                    let read = [&frame.x_t, &frame.x_pred].map(|view| grid(&view.pictures));
                    assert!(
                        drawn.take() == Some((frame.step, read)),
                        "{encoding:?} of {alphabet}, step {}",
                        frame.step
                    );
                    n_drawn += 1;
                }
                Event::Failed { message, .. } => panic!("{message}"),
                _ => {}
            }
        }
        assert_eq!(n_drawn, 3, "{encoding:?} of {alphabet}");
    }

    // Numbers that are no bits are shown when they are here.
    let model = engine.insert_model(random_model(Encoding::OneHot, 4, 1, &device));
    let request = ChainRequest { model, settings: settings(2), n: 1, ..ChainRequest::default() };
    engine.handle(Command::Chain { slot: Slot(0), request });
    let events = rest(&mut engine);
    assert_eq!(frames(&events, Slot(0)).len(), 2);
    assert!(!events.iter().any(|event| matches!(event, Event::Live { .. })), "{events:?}");
}

#[test]
fn a_chain_that_is_cancelled_when_a_step_is_drawn_loses_nothing() {
    let Some(window) = window(window_device) else { return };
    let opened = pollster::block_on(open_beside(&DeviceChoice::Wgpu(None), window)).unwrap();
    let mut engine = Engine::new(opened);
    let request = perfect(settings(4));
    engine.handle(Command::Chain { slot: Slot(0), request: request.clone() });
    let is_live = |event| matches!(event, Event::Live { .. });
    assert!(std::iter::from_fn(|| pollster::block_on(engine.work())).any(is_live));
    engine.handle(Command::Cancel { slot: Slot(0) });
    assert!(frames(&rest(&mut engine), Slot(0)).is_empty());
    let steps: Vec<usize> = chain(&mut engine, Slot(0), &request).iter().map(|frame| frame.step).collect();
    assert_eq!((steps, engine.n_evaluations()), (vec![0, 1, 2, 3], 4));
}
