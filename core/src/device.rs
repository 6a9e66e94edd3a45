//! Devices: what the numbers are worked out on, chosen while the program runs.
//!
//! A software adapter (llvmpipe, `SwiftShader`) is a graphics card played by the processor, a hundred times slower than using the processor
//! directly; it is never chosen unless asked for. A program with a window can share its card: see [`shared`]. Deliberately absent: windows.

#[cfg(not(target_arch = "wasm32"))]
pub mod shared;

use std::{fmt, str::FromStr};

#[cfg(not(target_arch = "wasm32"))]
use burn::tensor::wgpu::{
    WgpuOptions,
    wgpu::{AdapterInfo, DeviceType},
};
use burn::tensor::{Device, wgpu::WgpuSetup};

use crate::Error;

/// What is allowed, in words.
const ALLOWED: &str = if cfg!(all(feature = "cuda", feature = "remote")) {
    "auto, cpu, wgpu, wgpu:N, cuda, cuda:N or remote=ADDRESS"
} else if cfg!(feature = "cuda") {
    "auto, cpu, wgpu, wgpu:N, cuda or cuda:N"
} else if cfg!(feature = "remote") {
    "auto, cpu, wgpu, wgpu:N or remote=ADDRESS"
} else {
    "auto, cpu, wgpu or wgpu:N"
};

/// Which device to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// A graphics card if there is a real one, else the processor.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// A graphics card, or a software one: the best there is, or one by its number.
    Wgpu(Option<usize>),
    /// An NVIDIA card through CUDA, the first or one by its number.
    #[cfg(feature = "cuda")]
    Cuda(Option<usize>),
    /// A device of another machine, that runs burn's server at this address, say `ws://gpu:3000`.
    #[cfg(feature = "remote")]
    Remote(String),
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Wgpu(None) => f.write_str("wgpu"),
            Self::Wgpu(Some(index)) => write!(f, "wgpu:{index}"),
            #[cfg(feature = "cuda")]
            Self::Cuda(None) => f.write_str("cuda"),
            #[cfg(feature = "cuda")]
            Self::Cuda(Some(index)) => write!(f, "cuda:{index}"),
            #[cfg(feature = "remote")]
            Self::Remote(address) => write!(f, "remote={address}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::argument("device", text, ALLOWED);
        let (name, index) = match text.split_once(':') {
            Some((name, index)) if !text.contains('=') => (name, Some(index.parse().map_err(|_| wrong())?)),
            _ => (text, None),
        };
        match (name, index) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("wgpu", index) => Ok(Self::Wgpu(index)),
            #[cfg(feature = "cuda")]
            ("cuda", index) => Ok(Self::Cuda(index)),
            #[cfg(feature = "remote")]
            (name, None) if name.strip_prefix("remote=").is_some_and(|address| !address.is_empty()) => {
                Ok(Self::Remote(name["remote=".len()..].to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

/// Why a device that was asked for cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// No graphics driver, or none that works.
    #[error(
        "no graphics card can be used ({0}); install its driver (on Linux, a Vulkan one), or use the processor with the device `cpu`"
    )]
    Gpu(String),
    /// WebGPU says that there is an adapter, and does not open it.
    #[error(
        "the graphics card cannot be used in this page ({0}); reload the page, or use the processor with `?device=cpu`"
    )]
    Page(String),
    /// There are fewer adapters.
    #[error("there is no graphics card {index}; there are {}; `wgpu` without a number takes the best", listed(.found))]
    Index {
        /// The one asked for.
        index: usize,
        /// Those there are, in order.
        found: Vec<String>,
    },
    /// Another machine does not answer.
    #[error("the device at {address} cannot be reached ({reason}); check that burn's server runs there")]
    Remote {
        /// Its address.
        address: String,
        /// What the network said.
        reason: String,
    },
}

fn listed(found: &[String]) -> String {
    if found.is_empty() {
        return "none".to_owned();
    }
    let numbered: Vec<String> = found.iter().enumerate().map(|(index, name)| format!("{index}: {name}")).collect();
    numbered.join(", ")
}

/// A device that is ready.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The device, without autodiff.
    pub device: Device,
    /// What it is and, for [`DeviceChoice::Auto`], why it was chosen; a phrase without a full stop.
    pub description: String,
    /// What a window draws with, where that is this very device.
    pub shared: Option<WgpuSetup>,
}

impl Opened {
    fn cpu(description: impl Into<String>) -> Self {
        Self { device: Device::flex(), description: description.into(), shared: None }
    }
}

/// Opens a device. A graphics card can be opened once in a process: keep what this returns, and clone it.
///
/// Asynchronous because finding a graphics card is, in a browser.
pub async fn open(choice: &DeviceChoice) -> Result<Opened, DeviceError> {
    match choice {
        DeviceChoice::Auto => Ok(gpu::auto().await),
        DeviceChoice::Cpu => Ok(Opened::cpu("CPU")),
        DeviceChoice::Wgpu(index) => gpu::open(*index).await,
        #[cfg(feature = "cuda")]
        DeviceChoice::Cuda(index) => {
            let device = Device::cuda(index.unwrap_or(0));
            Ok(Opened { device, description: format!("CUDA card {}", index.unwrap_or(0)), shared: None })
        }
        #[cfg(feature = "remote")]
        DeviceChoice::Remote(address) => {
            let host = burn::tensor::remote::RemoteHost::websocket(address);
            let connected = Device::remote_options(&host).init_async().await;
            let unreachable = |error: burn::tensor::remote::ConnectError| DeviceError::Remote {
                address: address.clone(),
                reason: error.to_string(),
            };
            let device = connected.map_err(unreachable)?;
            Ok(Opened { device, description: format!("a device at {address}"), shared: None })
        }
    }
}

#[cfg(target_arch = "wasm32")]
pub use gpu::open_to_share;

/// What an adapter is, in words.
#[cfg(not(target_arch = "wasm32"))]
fn describe(info: &AdapterInfo) -> String {
    let kind = match info.device_type {
        DeviceType::DiscreteGpu => "graphics card",
        DeviceType::IntegratedGpu => "built-in graphics",
        DeviceType::VirtualGpu => "virtual graphics card",
        DeviceType::Cpu => "software, slow",
        DeviceType::Other => "unknown kind",
    };
    format!("{} ({kind}, {:?})", info.name, info.backend)
}

/// How an adapter of this kind is to be opened.
#[cfg(not(target_arch = "wasm32"))]
fn options(kind: Option<DeviceType>) -> WgpuOptions {
    // A software adapter works on the cores that tell it what to do, and better starts when it has been told of a whole sampling step.
    const LAUNCHES_OF_A_STEP: usize = 512;
    let options = Device::wgpu_options();
    if kind == Some(DeviceType::Cpu) { options.tasks_max(LAUNCHES_OF_A_STEP) } else { options }
}

#[cfg(not(target_arch = "wasm32"))]
mod gpu {
    use burn::tensor::{
        DeviceKind,
        wgpu::{
            WgpuBackend, WgpuOptions,
            wgpu::{Adapter, AdapterInfo, Backend, Backends, DeviceType, Instance, InstanceDescriptor},
        },
    };

    use super::{DeviceError, Opened, describe, options};

    /// A real graphics card, else the processor and why.
    pub async fn auto() -> Opened {
        let adapters = adapters().await;
        if adapters.is_empty() {
            return Opened::cpu("CPU: there is no graphics card, or no driver for it");
        }
        if let Some(software) = adapters.iter().find(|info| info.device_type == DeviceType::Cpu)
            && adapters.iter().all(|info| info.device_type == DeviceType::Cpu)
        {
            return Opened::cpu(format!("CPU: the only adapter is a software one ({})", software.name));
        }
        match start(options(None)).await {
            Ok((opened, DeviceType::Cpu)) => {
                Opened::cpu(format!("CPU: the default adapter is a software one ({})", opened.description))
            }
            Ok((opened, _)) => opened,
            Err(error) => Opened::cpu(format!("CPU: {error}")),
        }
    }

    /// The best adapter, or one by its number; a software one too.
    pub async fn open(index: Option<usize>) -> Result<Opened, DeviceError> {
        let adapters = adapters().await;
        let options = match index {
            None => {
                let is_software = adapters.iter().all(|info| info.device_type == DeviceType::Cpu);
                options(is_software.then_some(DeviceType::Cpu))
            }
            Some(index) => {
                let Some((kind, api)) = selector(&adapters, index) else {
                    return Err(DeviceError::Index { index, found: adapters.iter().map(describe).collect() });
                };
                options(Some(adapters[index].device_type)).device_kind(kind).graphics_api(api)
            }
        };
        start(options).await.map(|(opened, _)| opened)
    }

    /// Every adapter of the modern graphics interfaces.
    async fn adapters() -> Vec<AdapterInfo> {
        let backends = Backends::VULKAN | Backends::METAL | Backends::DX12;
        let instance =
            Instance::new(InstanceDescriptor { backends, ..InstanceDescriptor::new_without_display_handle() });
        instance.enumerate_adapters(backends).await.iter().map(Adapter::get_info).collect()
    }

    /// How burn names adapter `index`: by its kind, counted within its kind and graphics interface.
    fn selector(adapters: &[AdapterInfo], index: usize) -> Option<(DeviceKind, WgpuBackend)> {
        let chosen = adapters.get(index)?;
        let is_alike = |info: &&AdapterInfo| info.device_type == chosen.device_type && info.backend == chosen.backend;
        let nth = adapters[..index].iter().filter(is_alike).count();
        let kind = match chosen.device_type {
            DeviceType::DiscreteGpu => DeviceKind::DiscreteGpu(nth),
            DeviceType::IntegratedGpu => DeviceKind::IntegratedGpu(nth),
            DeviceType::VirtualGpu => DeviceKind::VirtualGpu(nth),
            DeviceType::Cpu => DeviceKind::Cpu,
            DeviceType::Other => return None,
        };
        let api = match chosen.backend {
            Backend::Vulkan => WgpuBackend::Vulkan,
            Backend::Metal => WgpuBackend::Metal,
            Backend::Dx12 => WgpuBackend::Dx12,
            _ => return None,
        };
        Some((kind, api))
    }

    async fn start(options: WgpuOptions) -> Result<(Opened, DeviceType), DeviceError> {
        let started = options.init_with_setup_async().await;
        let (device, setup) = started.map_err(|error| DeviceError::Gpu(error.to_string()))?;
        let info = setup.adapter.get_info();
        Ok((Opened { device, description: describe(&info), shared: None }, info.device_type))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn adapter(device_type: DeviceType, backend: Backend) -> AdapterInfo {
            AdapterInfo::new(device_type, backend)
        }

        #[test]
        fn adapters_are_counted_within_their_kind() {
            let adapters = [
                adapter(DeviceType::IntegratedGpu, Backend::Vulkan),
                adapter(DeviceType::DiscreteGpu, Backend::Vulkan),
                adapter(DeviceType::DiscreteGpu, Backend::Vulkan),
                adapter(DeviceType::DiscreteGpu, Backend::Dx12),
                adapter(DeviceType::Cpu, Backend::Vulkan),
            ];
            let kinds: Vec<_> = (0..6).map(|index| selector(&adapters, index).map(|(kind, _)| kind)).collect();
            let expected = [
                Some(DeviceKind::IntegratedGpu(0)),
                Some(DeviceKind::DiscreteGpu(0)),
                Some(DeviceKind::DiscreteGpu(1)),
                Some(DeviceKind::DiscreteGpu(0)),
                Some(DeviceKind::Cpu),
                None,
            ];
            assert_eq!(kinds, expected);
        }
    }
}

/// In a browser. Whether a page's adapter is a real one has to be asked of the page: its shell does that, and chooses.
#[cfg(target_arch = "wasm32")]
mod gpu {
    use burn::tensor::{Device, wgpu::WgpuSetup};

    use super::{DeviceError, Opened};

    #[expect(clippy::unused_async, reason = "the same as outside of a browser")]
    pub async fn auto() -> Opened {
        Opened::cpu("CPU: nobody asked the page for its graphics card")
    }

    pub async fn open(_index: Option<usize>) -> Result<Opened, DeviceError> {
        open_to_share().await.map(|(opened, _)| opened)
    }

    /// Opens the adapter that the browser prefers, with all of its abilities, and gives what a canvas has to draw with: one device computes
    /// and draws, if the canvas takes it.
    pub async fn open_to_share() -> Result<(Opened, WgpuSetup), DeviceError> {
        let started = Device::wgpu_options().init_with_setup_async().await;
        let (device, setup) = started.map_err(|error| DeviceError::Page(error.to_string()))?;
        let name = setup.adapter.get_info().name;
        let description = if name.is_empty() { "WebGPU".to_owned() } else { format!("{name} (WebGPU)") };
        Ok((Opened { device, description, shared: None }, setup))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_written_one_way() {
        for text in ["auto", "cpu", "wgpu", "wgpu:2"] {
            let choice: DeviceChoice = text.parse().unwrap();
            assert_eq!(choice.to_string(), text);
        }
        assert_eq!("wgpu:2".parse(), Ok(DeviceChoice::Wgpu(Some(2))));
        for text in ["", "gpu", "cpu:0", "wgpu:", "wgpu:-1", "wgpu:x", "CPU"] {
            let error = text.parse::<DeviceChoice>().unwrap_err().to_string();
            assert!(error.contains("auto, cpu, wgpu"), "{text}: {error}");
        }
    }

    #[test]
    fn a_card_that_is_not_there_is_an_error_with_its_cure() {
        let error = pollster::block_on(open(&DeviceChoice::Wgpu(Some(99)))).unwrap_err();
        assert!(matches!(error, DeviceError::Index { index: 99, .. }), "{error}");
        assert!(error.to_string().contains("`wgpu` without a number"), "{error}");
    }

    #[test]
    fn auto_opens_something_and_says_what() {
        let opened = pollster::block_on(open(&DeviceChoice::Auto)).unwrap();
        assert!(!opened.description.is_empty());
        // A software adapter is never chosen.
        assert!(!opened.description.contains("software, slow"), "{}", opened.description);
    }
}
