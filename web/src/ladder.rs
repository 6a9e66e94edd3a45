//! The start: what computes, and what draws.
//!
//! A real graphics card computes and draws, as one device. A software one would be slower than the processor itself, so that then, and where
//! there is none, the processor computes, and whatever draws draws. `?device=cpu` and `?device=webgpu` in the address decide otherwise.

use bit_diffusion::device::{self, DeviceChoice, Opened};
use eframe::{egui_wgpu, wgpu};
use web_sys::js_sys::Reflect;

use crate::browser;

/// A way to draw.
pub(crate) enum Drawing {
    /// With the device that computes.
    Shared(egui_wgpu::WgpuSetupExisting),
    /// With a WebGPU device of its own.
    Webgpu,
    /// With WebGL 2.
    Webgl,
}

impl Drawing {
    /// What eframe wants to know.
    pub fn options(self) -> eframe::WebOptions {
        let mut options = eframe::WebOptions::default();
        let mut fresh = egui_wgpu::WgpuSetupCreateNew::without_display_handle();
        options.wgpu_options.wgpu_setup = match self {
            Self::Shared(setup) => setup.into(),
            Self::Webgpu => {
                fresh.instance_descriptor.backends = wgpu::Backends::BROWSER_WEBGPU;
                fresh.into()
            }
            Self::Webgl => {
                fresh.instance_descriptor.backends = wgpu::Backends::GL;
                fresh.into()
            }
        };
        options
    }
}

/// What was found.
pub(crate) struct Start {
    /// What computes, and why.
    pub opened: Opened,
    /// What was asked for and cannot be had.
    pub error: Option<String>,
    /// Ways to draw, the best first; none if nothing draws.
    pub drawings: Vec<Drawing>,
}

/// The graphics card that WebGPU has to offer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Adapter {
    Hardware,
    /// Played by the processor, under this name.
    Software(String),
    /// None, and why.
    None(String),
}

/// Looks at what there is; `wish` is the address's word for the device.
pub(crate) async fn start(wish: Option<&str>) -> Start {
    let adapter = find_adapter().await;
    let (mut error, mut drawings) = (None, Vec::new());
    let why = match (wish, &adapter) {
        (Some("cpu"), _) => "asked for in the address".to_owned(),
        (Some("webgpu"), Adapter::Hardware | Adapter::Software(_)) | (_, Adapter::Hardware) => {
            match device::open_to_share().await {
                Ok((opened, setup)) => {
                    let opened = Opened { shared: Some(setup.clone()), ..opened };
                    drawings.push(Drawing::Shared(egui_wgpu::WgpuSetupExisting {
                        instance: setup.instance,
                        adapter: setup.adapter,
                        device: setup.device,
                        queue: setup.queue,
                    }));
                    return Start { opened, error, drawings: with_webgl(drawings) };
                }
                Err(failed) => {
                    error = Some(failed.to_string());
                    "the graphics card does not start".to_owned()
                }
            }
        }
        (Some("webgpu"), Adapter::None(reason)) => {
            error = Some(format!("the graphics card that the address asks for cannot be used: {reason}"));
            reason.clone()
        }
        (_, Adapter::Software(name)) => format!("the graphics card is played by software ({name}), which is slower"),
        (_, Adapter::None(reason)) => reason.clone(),
    };
    let opened = match device::open(&DeviceChoice::Cpu).await {
        Ok(opened) => Opened { description: format!("CPU: {why}"), ..opened },
        Err(error) => unreachable!("the processor is always there: {error}"),
    };
    match adapter {
        Adapter::Hardware => {
            drawings.push(Drawing::Webgpu);
            drawings = with_webgl(drawings);
        }
        // WebGL may have the real card that WebGPU has not.
        Adapter::Software(_) => {
            drawings = with_webgl(drawings);
            drawings.push(Drawing::Webgpu);
        }
        Adapter::None(_) => drawings = with_webgl(drawings),
    }
    Start { opened, error, drawings }
}

fn with_webgl(mut drawings: Vec<Drawing>) -> Vec<Drawing> {
    if browser::has_webgl() {
        drawings.push(Drawing::Webgl);
    }
    drawings
}

async fn find_adapter() -> Adapter {
    let found = browser::find_adapter().await;
    let field = |name: &str| {
        let value = Reflect::get(&found, &name.into()).ok();
        value.and_then(|value| value.as_string()).unwrap_or_default()
    };
    match field("kind").as_str() {
        "hardware" => Adapter::Hardware,
        "software" => Adapter::Software(field("name")),
        _ => Adapter::None(field("reason")),
    }
}
