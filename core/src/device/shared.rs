//! One graphics card for the window and the numbers: the device that a window draws with is taken over, where it can do the work.
//!
//! Deliberately absent: windows. Who has one hands over its [`Handles`].

use burn::tensor::wgpu::{
    WgpuSetup,
    wgpu::{self, Adapter, Backend, DeviceDescriptor, DeviceType, Features, Instance, Limits, Queue},
};

use super::{DeviceChoice, DeviceError, Opened, describe, open, options};

/// What shaders may be written with if the card has it; cubecl asks the card, not the device that was opened on it.
const WANTED: Features = Features::SHADER_F16
    .union(Features::SHADER_F64)
    .union(Features::SHADER_INT64)
    .union(Features::SHADER_FLOAT32_ATOMIC)
    .union(Features::SUBGROUP)
    .union(Features::TIMESTAMP_QUERY);

/// What a window draws with.
#[derive(Debug, Clone)]
pub struct Handles {
    /// The way to the driver.
    pub instance: Instance,
    /// The graphics card.
    pub adapter: Adapter,
    /// The card as it was opened for the window: see [`window_device`].
    pub device: wgpu::Device,
    /// Where its work goes.
    pub queue: Queue,
}

/// How a window has to open a card so that [`open_beside`] can take it over: with all the room for numbers that the card has.
#[must_use]
pub fn window_device(adapter: &Adapter) -> DeviceDescriptor<'static> {
    let is_old = adapter.get_info().backend == Backend::Gl;
    let (required_features, required_limits) =
        if is_old { (Features::empty(), Limits::downlevel_webgl2_defaults()) } else { needs(adapter) };
    // Large screens, on old cards too.
    let max_texture_dimension_2d = required_limits.max_texture_dimension_2d.max(8192);
    DeviceDescriptor {
        label: Some("window and numbers"),
        required_features,
        required_limits: Limits { max_texture_dimension_2d, ..required_limits },
        ..DeviceDescriptor::default()
    }
}

fn needs(adapter: &Adapter) -> (Features, Limits) {
    (adapter.features() & WANTED, adapter.limits())
}

/// Opens a device for a program with a window: its own card if that is a real one or was asked for, else as [`open`] does.
pub async fn open_beside(choice: &DeviceChoice, window: Handles) -> Result<Opened, DeviceError> {
    let is_software = window.adapter.get_info().device_type == DeviceType::Cpu;
    let is_shared = match choice {
        DeviceChoice::Auto => !is_software,
        DeviceChoice::Wgpu(index) => index.is_none(),
        DeviceChoice::Cpu => false,
        #[cfg(any(feature = "cuda", feature = "remote"))]
        _ => false,
    };
    if !is_shared {
        return open(choice).await;
    }
    match adopt(window) {
        Ok(opened) => Ok(opened),
        Err(reason) => {
            let opened = open(choice).await?;
            let description = format!("{}; not shared with the window: {reason}", opened.description);
            Ok(Opened { description, ..opened })
        }
    }
}

/// Takes a window's card over, once. The reason why not is a phrase without a full stop.
fn adopt(Handles { instance, adapter, device, queue }: Handles) -> Result<Opened, String> {
    let info = adapter.get_info();
    let (features, limits) = needs(&adapter);
    if info.backend == Backend::Gl {
        return Err("it draws through OpenGL".to_owned());
    }
    if !device.features().contains(features) || !limits.check_limits(&device.limits()) {
        return Err("it was opened with less than the card can do".to_owned());
    }
    let setup = WgpuSetup { instance, adapter, device, queue, backend: info.backend };
    let device = options(Some(info.device_type)).setup(setup.clone()).init().map_err(|error| error.to_string())?;
    Ok(Opened { device, description: format!("{}, shared with the window", describe(&info)), shared: Some(setup) })
}
