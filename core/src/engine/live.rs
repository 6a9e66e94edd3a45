//! The newest step of a chain in textures that a window draws: the card that made it fills them, and none of it is read back.
//!
//! Deliberately absent: windows. Theirs is the device that computes, see [`crate::device::Opened::shared`].

use std::collections::BTreeMap;

use burn::tensor::wgpu::{
    WgpuSetup,
    wgpu::{
        CommandEncoder, CommandEncoderDescriptor, Device, Extent3d, Queue, TexelCopyBufferInfo, TexelCopyBufferLayout,
        Texture, TextureDescriptor, TextureDimension, TextureFormat, TextureUsages,
    },
};
use burn_cubecl::cubecl::wgpu::{AutoCompiler, WgpuResource, WgpuServer};

use super::{PictureSheet, Slot};
use crate::{
    bits::Codec,
    kernels::{Pixels, pixels},
    sampler::Step,
};

/// The texture that holds the pictures of a slot's newest step: read from analog bits by threshold, in a grid with transparent gaps of a pixel.
/// The next step is drawn over it. Two are equal if they are the same texture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LivePicture(Texture);

impl LivePicture {
    /// Width and height of the grid, in pixels.
    #[must_use]
    pub fn size(&self) -> [u32; 2] {
        [self.0.width(), self.0.height()]
    }

    /// The texture, for whoever draws with its device: bytes of red, green, blue and opacity, as a screen has them.
    #[must_use]
    pub fn texture(&self) -> &Texture {
        &self.0
    }
}

/// A step of a chain that lies on its card: a [`super::Frame`] without the numbers that have to be read back.
#[derive(Debug, Clone)]
pub struct LiveStep {
    /// Which step since the noise, from 0.
    pub step: usize,
    /// The clock: the time that the network was told.
    pub t_now: f64,
    /// The time that the step took the state to.
    pub t_next: f64,
    /// How many estimates the network has made of each sample since the noise, this step too.
    pub n_evaluations: usize,
    /// The state that the step started from.
    pub x_t: LivePicture,
    /// The estimate x̃₀ of the step.
    pub x_pred: LivePicture,
}

/// Fills the textures.
pub(super) struct Canvas {
    device: Device,
    queue: Queue,
    /// Of each slot, the state and the estimate.
    pictures: BTreeMap<(Slot, usize), LivePicture>,
}

impl Canvas {
    /// A canvas on the device that computes and draws.
    pub fn new(shared: WgpuSetup) -> Self {
        Self { device: shared.device, queue: shared.queue, pictures: BTreeMap::new() }
    }

    /// Draws a step; `None` where its colour values are no bits, or the card does not do it.
    pub fn draw(&mut self, slot: Slot, step: &Step<4>, codec: &Codec) -> Option<LiveStep> {
        let codes = codec.symbols();
        if codes.is_empty() || codec.alphabet() > 256 {
            return None;
        }
        let bright = PictureSheet::of(codes, 1, 1, codec.alphabet()).pixels;
        let made = [pixels(step.x_t.clone(), &bright)?, pixels(step.x_pred.clone(), &bright)?];
        let mut commands = self.device.create_command_encoder(&CommandEncoderDescriptor::default());
        let [x_t, x_pred] =
            [self.copy((slot, 0), &made[0], &mut commands)?, self.copy((slot, 1), &made[1], &mut commands)?];
        // What the colours are made of goes into the queue first. What the window draws comes before all of this, or after.
        made[0].colours.client.flush().ok()?;
        self.queue.submit([commands.finish()]);
        let n_evaluations = step.next.memory.n_evaluations;
        Some(LiveStep { step: step.step, t_now: step.t_now, t_next: step.t_next, n_evaluations, x_t, x_pred })
    }

    /// Copies pictures into the texture of their place.
    fn copy(&mut self, place: (Slot, usize), made: &Pixels, commands: &mut CommandEncoder) -> Option<LivePicture> {
        let Pixels { colours, width, height, bytes_per_row } = made;
        let picture = self.picture(place, *width, *height)?;
        let buffer = colours.client.get_resource::<WgpuServer<AutoCompiler>>(colours.handle.clone()).ok()?;
        let WgpuResource { buffer, offset, .. } = buffer.resource();
        let layout =
            TexelCopyBufferLayout { offset: *offset, bytes_per_row: Some(*bytes_per_row), rows_per_image: None };
        let from = TexelCopyBufferInfo { buffer, layout };
        commands.copy_buffer_to_texture(from, picture.0.as_image_copy(), picture.0.size());
        Some(picture)
    }

    /// The texture of a place: the one there is, or a new one where that has another size.
    fn picture(&mut self, place: (Slot, usize), width: u32, height: u32) -> Option<LivePicture> {
        if let Some(picture) = self.pictures.get(&place).filter(|picture| picture.size() == [width, height]) {
            return Some(picture.clone());
        }
        if width.max(height) > self.device.limits().max_texture_dimension_2d {
            return None;
        }
        let picture = LivePicture(self.device.create_texture(&TextureDescriptor {
            label: Some("newest step"),
            size: Extent3d { width, height, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: TextureDimension::D2,
            format: TextureFormat::Rgba8Unorm,
            usage: TextureUsages::COPY_SRC | TextureUsages::COPY_DST | TextureUsages::TEXTURE_BINDING,
            view_formats: &[],
        }));
        self.pictures.insert(place, picture.clone());
        Some(picture)
    }
}
