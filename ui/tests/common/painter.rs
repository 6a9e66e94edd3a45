//! Draws what the studio shows, pixel by pixel on the processor: the same picture on every machine, with or without a graphics card.
//!
//! It does what egui's shader does: textured triangles, premultiplied, blended in gamma space.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use egui::{
    Color32, ColorImage, ImageData, Mesh, Pos2, Rect, TextureFilter, TextureId, TexturesDelta,
    epaint::{Primitive, Vertex},
};
use egui_kittest::{Harness, TestRenderer};
use image::{Rgb, RgbImage};

/// What the harness leaves free around the studio, in points.
pub const MARGIN: f32 = 8.0;

/// A colour as numbers from 0 to 255: red, green, blue, alpha.
type Rgba = [f32; 4];

#[derive(Default)]
struct Textures {
    all: HashMap<TextureId, (ColorImage, TextureFilter)>,
    /// Gone after the frame that was drawn last.
    to_free: Vec<TextureId>,
}

/// A painter; its copies share their textures, one with the harness.
#[derive(Clone, Default)]
pub struct Painter(Rc<RefCell<Textures>>);

impl TestRenderer for Painter {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        let Textures { all, to_free } = &mut *self.0.borrow_mut();
        for id in to_free.drain(..) {
            all.remove(&id);
        }
        for (id, changes) in delta.set.drain() {
            for change in changes {
                let ImageData::Color(image) = change.image;
                match change.pos {
                    None => _ = all.insert(id, ((*image).clone(), change.options.magnification)),
                    Some([left, top]) => {
                        let (whole, _) = all.get_mut(&id).expect("a part of a texture that there is");
                        for (y, row) in image.pixels.chunks(image.width()).enumerate() {
                            let start = (top + y) * whole.width() + left;
                            whole.pixels[start..start + row.len()].copy_from_slice(row);
                        }
                    }
                }
            }
        }
        to_free.extend(delta.free.drain());
    }
}

impl Painter {
    /// The frame that was drawn last, without the harness's own margin around it.
    pub fn paint<S>(&self, harness: &Harness<'_, S>) -> RgbImage {
        let (ctx, output) = (&harness.ctx, harness.output());
        let scale = output.pixels_per_point;
        let size = ctx.content_rect().size() * scale;
        let mut canvas = Canvas::new(size.x.round() as usize, size.y.round() as usize);
        for clipped in ctx.tessellate(output.shapes.clone(), scale) {
            let Primitive::Mesh(mesh) = clipped.primitive else { panic!("the studio has no callbacks") };
            let textures = self.0.borrow();
            let (texture, filter) = &textures.all[&mesh.texture_id];
            canvas.mesh(&mesh, scale, clipped.clip_rect * scale, |at| sample(texture, *filter, at));
        }
        canvas.picture((MARGIN * scale).round() as u32)
    }
}

/// A texture at a place from 0 to 1.
fn sample(texture: &ColorImage, filter: TextureFilter, at: Pos2) -> Rgba {
    let [width, height] = texture.size;
    let texel = |x: f32, y: f32| {
        let (x, y) = (x.clamp(0.0, width as f32 - 1.0) as usize, y.clamp(0.0, height as f32 - 1.0) as usize);
        numbers(texture.pixels[y * width + x])
    };
    let (x, y) = (at.x * width as f32, at.y * height as f32);
    match filter {
        TextureFilter::Nearest => texel(x, y),
        TextureFilter::Linear => {
            let (x, y) = (x - 0.5, y - 0.5);
            let (left, top) = (x.floor(), y.floor());
            let above = mix(texel(left, top), texel(left + 1.0, top), x - left);
            let below = mix(texel(left, top + 1.0), texel(left + 1.0, top + 1.0), x - left);
            mix(above, below, y - top)
        }
    }
}

fn numbers(colour: Color32) -> Rgba {
    colour.to_array().map(f32::from)
}

fn mix(a: Rgba, b: Rgba, share: f32) -> Rgba {
    std::array::from_fn(|i| a[i] + (b[i] - a[i]) * share)
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<[f32; 3]>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![[0.0; 3]; width * height] }
    }

    fn mesh(&mut self, mesh: &Mesh, scale: f32, clip: Rect, texture: impl Fn(Pos2) -> Rgba) {
        let edge = |at: f32, most: usize| at.round().clamp(0.0, most as f32) as usize;
        let columns = [edge(clip.left(), self.width), edge(clip.right(), self.width)];
        let rows = [edge(clip.top(), self.height), edge(clip.bottom(), self.height)];
        for triangle in mesh.triangles() {
            let corners = triangle.map(|index| mesh.vertices[index as usize]);
            self.triangle(corners, scale, columns, rows, &texture);
        }
    }

    fn triangle(
        &mut self,
        mut corners: [Vertex; 3],
        scale: f32,
        columns: [usize; 2],
        rows: [usize; 2],
        texture: impl Fn(Pos2) -> Rgba,
    ) {
        let place = |vertex: &Vertex| [f64::from(vertex.pos.x * scale), f64::from(vertex.pos.y * scale)];
        let twice_area = |[a, b, c]: [[f64; 2]; 3]| (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        let mut at = corners.each_ref().map(place);
        if twice_area(at) < 0.0 {
            corners.swap(1, 2);
            at.swap(1, 2);
        }
        let area = twice_area(at);
        if area <= 0.0 {
            return;
        }
        let span = |axis: usize, [least, most]: [usize; 2]| {
            let ends = at.iter().map(|point| point[axis]);
            let (low, high) = ends.fold((f64::MAX, f64::MIN), |(low, high), end| (low.min(end), high.max(end)));
            (low.floor().max(least as f64) as usize)..(high.ceil().min(most as f64).max(0.0) as usize)
        };
        // A pixel on an edge belongs to the triangle that is below it, or to the right of it: to one of two neighbours, never to both.
        let owns = [(1, 2), (2, 0), (0, 1)].map(|(from, to)| {
            let [dx, dy] = [at[to][0] - at[from][0], at[to][1] - at[from][1]];
            dy < 0.0 || (dy == 0.0 && dx > 0.0)
        });
        let (inks, uvs) = (corners.map(|corner| numbers(corner.color)), corners.map(|corner| corner.uv));
        // Most of what is drawn has one colour.
        let is_plain = corners.iter().all(|corner| corner.uv == uvs[0] && corner.color == corners[0].color);
        let plain = is_plain.then(|| multiply(inks[0], texture(uvs[0])));
        for y in span(1, rows) {
            for x in span(0, columns) {
                let middle = [x as f64 + 0.5, y as f64 + 0.5];
                let parts = [(1, 2), (2, 0), (0, 1)].map(|(from, to)| twice_area([at[from], at[to], middle]));
                if parts.iter().zip(owns).any(|(part, owns)| *part < 0.0 || (*part == 0.0 && !owns)) {
                    continue;
                }
                let weights = parts.map(|part| (part / area) as f32);
                let source = plain.unwrap_or_else(|| {
                    let ink = std::array::from_fn(|i| inks.iter().zip(weights).map(|(ink, w)| ink[i] * w).sum());
                    let uv = uvs.iter().zip(weights).fold(Pos2::ZERO, |sum, (uv, w)| sum + uv.to_vec2() * w);
                    multiply(ink, texture(uv))
                });
                let pixel = &mut self.pixels[y * self.width + x];
                for (old, new) in pixel.iter_mut().zip(source) {
                    *old = new + *old * (1.0 - source[3] / 255.0);
                }
            }
        }
    }

    fn picture(&self, margin: u32) -> RgbImage {
        RgbImage::from_fn(self.width as u32 - 2 * margin, self.height as u32 - 2 * margin, |x, y| {
            let (x, y) = ((x + margin) as usize, (y + margin) as usize);
            Rgb(self.pixels[y * self.width + x].map(|value| value.round().clamp(0.0, 255.0) as u8))
        })
    }
}

fn multiply(a: Rgba, b: Rgba) -> Rgba {
    std::array::from_fn(|i| a[i] * b[i] / 255.0)
}
