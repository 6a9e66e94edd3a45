//! A device that a window opened: the engine works on it, and survives its loss. On whatever adapter there is (a software one will do:
//! Debian's `mesa-vulkan-drivers`). Without an adapter the tests say that they were skipped.

mod drive;

use std::io::Write as _;

use bit_diffusion::{
    device::{
        DeviceChoice,
        shared::{Handles, open_beside, window_device},
    },
    engine::{Command, Engine, Event, Handle, Slot},
    sampler::Settings,
};
use burn::tensor::wgpu::wgpu::{Adapter, DeviceDescriptor, DeviceType, Instance, RequestAdapterOptions};
use drive::{chain, engine, perfect};

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
