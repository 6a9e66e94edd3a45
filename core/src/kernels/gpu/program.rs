//! Shaders as programs that burn's queue can run.

use burn::tensor::{DType, Shape};
use burn_cubecl::{
    cubecl::{
        CubeCount, CubeKernel, PrecompiledSource,
        ir::{UIntKind, attributes::BufferIOAttr, metadata::Info},
        prelude::{
            AddressType, ElemType, ExecutionMode, KernelDefinition, KernelId, KernelMetadata, KernelSettings, Scope,
        },
        server::{CubeDim, KernelArguments, MetadataBindingInfo},
    },
    kernel::into_contiguous,
    ops::numeric::empty_device_contiguous_dtype,
    tensor::CubeTensor,
};

use super::written_out::written_out;

/// Invocations of a workgroup.
pub(super) const N_INVOCATIONS: usize = 64;

/// A file of `shaders/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shader {
    /// Pictures as convolutions read them.
    Pack,
    /// Weights as convolutions read them.
    PackWeights,
    /// Convolution.
    Conv,
    /// The gradient of its weights, in parts.
    ConvWeights,
    /// The sum of parts.
    Parts,
    /// The sum of each channel.
    ChannelSums,
    /// Group normalisation and what follows it.
    Norm,
    /// The gradient of its input.
    NormBackward,
    /// The gradients of its parameters.
    NormParameters,
    /// One step of Adam.
    Adam,
    /// A weighted sum of two.
    Mix,
    /// Matrix products, in vectors of four.
    Product,
    /// The same of any matrices.
    ProductAny,
    /// Softmax of rows.
    Softmax,
    /// Its gradient.
    SoftmaxBackward,
    /// Layer normalisation.
    TokenNorm,
    /// The gradient of its input.
    TokenNormBackward,
    /// The sum of each column.
    ColumnSums,
    /// GELU and its gradient.
    Gelu,
    /// Twice the width and height, and its gradient.
    Double,
    /// Channels of two tensors.
    Join,
    /// The end of a sampler's step.
    Step,
    /// Counts of numbers, in parts.
    Histogram,
    /// Pictures in Winograd's form.
    WinogradIn,
    /// Weights in Winograd's form.
    WinogradWeights,
    /// Back from Winograd's form.
    WinogradOut,
    /// Gradients in Winograd's form.
    WinogradGradient,
    /// The gradient of weights, back from Winograd's form.
    WinogradTaps,
    /// Sums of squares.
    Squares,
    /// Pictures for a screen.
    Pixels,
}

impl Shader {
    fn text(self) -> &'static str {
        match self {
            Self::Pack => include_str!("../../../../shaders/pack.wgsl"),
            Self::PackWeights => include_str!("../../../../shaders/pack_weights.wgsl"),
            Self::Conv => include_str!("../../../../shaders/conv.wgsl"),
            Self::ConvWeights => include_str!("../../../../shaders/conv_weights.wgsl"),
            Self::Parts => include_str!("../../../../shaders/parts.wgsl"),
            Self::ChannelSums => include_str!("../../../../shaders/channel_sums.wgsl"),
            Self::Norm => include_str!("../../../../shaders/norm.wgsl"),
            Self::NormBackward => include_str!("../../../../shaders/norm_backward.wgsl"),
            Self::NormParameters => include_str!("../../../../shaders/norm_parameters.wgsl"),
            Self::Adam => include_str!("../../../../shaders/adam.wgsl"),
            Self::Mix => include_str!("../../../../shaders/mix.wgsl"),
            Self::Product => include_str!("../../../../shaders/product.wgsl"),
            Self::ProductAny => include_str!("../../../../shaders/product_any.wgsl"),
            Self::Softmax => include_str!("../../../../shaders/softmax.wgsl"),
            Self::SoftmaxBackward => include_str!("../../../../shaders/softmax_backward.wgsl"),
            Self::TokenNorm => include_str!("../../../../shaders/token_norm.wgsl"),
            Self::TokenNormBackward => include_str!("../../../../shaders/token_norm_backward.wgsl"),
            Self::ColumnSums => include_str!("../../../../shaders/column_sums.wgsl"),
            Self::Gelu => include_str!("../../../../shaders/gelu.wgsl"),
            Self::Double => include_str!("../../../../shaders/double.wgsl"),
            Self::Join => include_str!("../../../../shaders/join.wgsl"),
            Self::Step => include_str!("../../../../shaders/step.wgsl"),
            Self::Histogram => include_str!("../../../../shaders/histogram.wgsl"),
            Self::WinogradIn => include_str!("../../../../shaders/winograd_in.wgsl"),
            Self::WinogradWeights => include_str!("../../../../shaders/winograd_weights.wgsl"),
            Self::WinogradOut => include_str!("../../../../shaders/winograd_out.wgsl"),
            Self::WinogradGradient => include_str!("../../../../shaders/winograd_gradient.wgsl"),
            Self::WinogradTaps => include_str!("../../../../shaders/winograd_taps.wgsl"),
            Self::Squares => include_str!("../../../../shaders/squares.wgsl"),
            Self::Pixels => include_str!("../../../../shaders/pixels.wgsl"),
        }
    }
}

/// A value that a shader is compiled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Constant {
    Count(u32),
    Flag(bool),
    /// What a `Value` is: four numbers, or one.
    Fours(bool),
}

/// Numbers as shaders take them to which it is all the same: in fours, where they come so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    pub n: usize,
    is_in_fours: bool,
}

impl Values {
    pub fn of(length: usize) -> Self {
        let mut values = Self { n: length, is_in_fours: length.is_multiple_of(4) };
        values.n = values.count(length);
        values
    }

    /// How many values so many other numbers are, that come in fours if these do.
    pub fn count(self, length: usize) -> usize {
        if self.is_in_fours { length / 4 } else { length }
    }

    /// What stands above the shader.
    pub fn constant(self) -> (&'static str, Constant) {
        ("Value", Constant::Fours(self.is_in_fours))
    }

    /// A shader that needs no other constant.
    pub fn program(self, shader: Shader) -> Program {
        Program { shader, constants: vec![self.constant()] }
    }
}

/// A shader and the constants that stand above it. Each combination is compiled once a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Program {
    pub shader: Shader,
    pub constants: Vec<(&'static str, Constant)>,
}

impl Program {
    /// The whole text.
    fn source(&self) -> String {
        let constants = self.constants.iter().map(|(name, value)| match value {
            Constant::Count(count) => format!("const {name} = {count}u;\n"),
            Constant::Flag(flag) => format!("const {name} = {flag};\n"),
            Constant::Fours(true) => include_str!("../../../../shaders/fours.wgsl").to_owned(),
            Constant::Fours(false) => include_str!("../../../../shaders/ones.wgsl").to_owned(),
        });
        let counts: Vec<(&str, u32)> = self
            .constants
            .iter()
            .filter_map(|(name, value)| match value {
                Constant::Count(count) => Some((*name, *count)),
                Constant::Flag(_) | Constant::Fours(_) => None,
            })
            .collect();
        constants.chain([written_out(self.shader.text(), &counts)]).collect()
    }

    /// Runs it over `count` workgroups. `info` are the numbers of the shader's `Info`, in its order.
    pub fn launch(self, count: [usize; 3], inputs: &[&CubeTensor], outputs: &[&CubeTensor], info: &[u32]) {
        let mut arguments = KernelArguments::new().with_info(MetadataBindingInfo::custom(packed(info)));
        for input in inputs {
            arguments = arguments.with_buffer_io(input.handle.clone().binding(), BufferIOAttr::ReadOnly);
        }
        for output in outputs {
            arguments = arguments.with_buffer_io(output.handle.clone().binding(), BufferIOAttr::ReadWrite);
        }
        let [x, y, z] = count.map(|count| u32::try_from(count).expect("a card has no room for so many workgroups"));
        outputs[0].client.launch(Box::new(self), CubeCount::Static(x, y, z), arguments);
    }
}

/// The most workgroups in one direction; WebGPU guarantees 65,535.
const MOST: usize = 1 << 15;

/// Workgroups for so many numbers, of shaders that go on to the next ones by themselves.
pub(super) fn workgroups_for(length: usize) -> usize {
    length.div_ceil(N_INVOCATIONS).min(MOST)
}

/// So many workgroups in two directions.
pub(super) fn folded(count: usize) -> [usize; 2] {
    [count.min(MOST), count.div_ceil(MOST)]
}

/// Pairs of numbers in the order that a shader reads them.
fn packed(info: &[u32]) -> Vec<u64> {
    info.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32).collect()
}

impl KernelMetadata for Program {
    fn id(&self) -> KernelId {
        // Unchecked: a bound on every loop keeps drivers from unrolling them, and the shaders check their own.
        KernelId::new::<Self>().info(self.clone()).mode(ExecutionMode::Unchecked)
    }

    fn address_type(&self) -> ElemType {
        UIntKind::U32.into()
    }
}

impl CubeKernel for Program {
    /// Never compiled: `source` stands for it.
    fn define(&self) -> KernelDefinition {
        let settings = KernelSettings::new(CubeDim::new_single().0, ExecutionMode::Unchecked, AddressType::U32);
        KernelDefinition { body: Scope::root(settings.clone()), settings, info: Info::default() }
    }

    fn source(&self) -> Option<PrecompiledSource> {
        let mut source = Self::source(self);
        // Outside of a browser tensors share buffers, and a buffer that is written to anywhere in a launch must be bound so everywhere.
        if !cfg!(target_arch = "wasm32") {
            source = source.replace("var<storage, read>", "var<storage, read_write>");
        }
        Some(PrecompiledSource { source, entrypoint_name: "main".to_owned(), lang: "wgsl" })
    }
}

/// The same tensor with its numbers in order.
pub(super) fn in_order(tensor: CubeTensor) -> CubeTensor {
    into_contiguous(tensor)
}

/// A tensor beside another, with room for its numbers and none in it yet.
pub(super) fn empty_beside<const D: usize>(other: &CubeTensor, shape: [usize; D]) -> CubeTensor {
    empty_of(other, Shape::from(shape))
}

/// The same, of the same sizes.
pub(super) fn empty_like(other: &CubeTensor) -> CubeTensor {
    empty_of(other, other.meta.shape().clone())
}

/// The same, of as many dimensions as the shape has.
pub(super) fn empty_of(other: &CubeTensor, shape: Shape) -> CubeTensor {
    empty_device_contiguous_dtype(other.client.clone(), other.device.clone(), shape, DType::F32)
}

/// The sum of parts, each of the sizes of the result.
pub(super) fn sum_of_parts<const D: usize>(parts: &CubeTensor, n_parts: usize, shape: [usize; D]) -> CubeTensor {
    let length: usize = shape.iter().product();
    let sum = empty_beside(parts, shape);
    let values = Values::of(length);
    let info = [n_parts, values.n].map(|n| n as u32);
    values.program(Shader::Parts).launch([workgroups_for(values.n), 1, 1], &[parts], &[&sum], &info);
    sum
}

/// The sizes of a tensor.
pub(super) fn dims<const D: usize>(tensor: &CubeTensor) -> [usize; D] {
    let shape = tensor.meta.shape();
    std::array::from_fn(|i| shape[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::bits::N_BINS;
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    impl Shader {
        const ALL: [Self; 30] = [
            Self::Pack,
            Self::PackWeights,
            Self::Conv,
            Self::ConvWeights,
            Self::Parts,
            Self::ChannelSums,
            Self::Norm,
            Self::NormBackward,
            Self::NormParameters,
            Self::Adam,
            Self::Mix,
            Self::Product,
            Self::ProductAny,
            Self::Softmax,
            Self::SoftmaxBackward,
            Self::TokenNorm,
            Self::TokenNormBackward,
            Self::ColumnSums,
            Self::Gelu,
            Self::Double,
            Self::Join,
            Self::Step,
            Self::Histogram,
            Self::WinogradIn,
            Self::WinogradWeights,
            Self::WinogradOut,
            Self::WinogradGradient,
            Self::WinogradTaps,
            Self::Squares,
            Self::Pixels,
        ];

        /// Every program that there is of the shader.
        fn programs(self) -> Vec<Program> {
            let counts = |values: &[u32]| values.iter().copied().map(Constant::Count).collect::<Vec<_>>();
            let flags = vec![Constant::Flag(false), Constant::Flag(true)];
            let value = ("Value", vec![Constant::Fours(false), Constant::Fours(true)]);
            let choices = match self {
                Self::Pack => vec![("BORDER", counts(&[0, 1])), ("SPREAD", counts(&[1, 2]))],
                Self::PackWeights => vec![("TAPS", counts(&[1, 9])), ("MIRRORED", flags)],
                Self::Conv => vec![
                    ("SIZE", counts(&[1, 3])),
                    ("STRIDE", counts(&[1, 2])),
                    ("BIASED", flags),
                    ("PIXELS", counts(&[4, 8])),
                    ("CHANNELS", counts(&[4, 8])),
                ],
                Self::ConvWeights => {
                    vec![("SIZE", counts(&[1, 3])), ("STRIDE", counts(&[1, 2])), ("N_VALUES", counts(&[2, 3]))]
                }
                Self::Parts
                | Self::ChannelSums
                | Self::Adam
                | Self::Mix
                | Self::Softmax
                | Self::SoftmaxBackward
                | Self::TokenNorm
                | Self::TokenNormBackward
                | Self::ColumnSums
                | Self::Join
                | Self::Squares => vec![value],
                Self::WinogradIn | Self::WinogradGradient | Self::WinogradTaps | Self::Pixels => Vec::new(),
                Self::Product => vec![
                    ("ACROSS", counts(&[8, 16, 32, 64])),
                    ("ROWS", counts(&[4, 8, 16])),
                    ("VECTORS", counts(&[1, 2])),
                    ("A_TURNED", flags.clone()),
                    ("B_TURNED", flags.clone()),
                    ("Y_TURNED", flags.clone()),
                    ("BIAS_OF_COLUMNS", flags.clone()),
                    ("BIAS_OF_ROWS", flags.clone()),
                    ("SILU", flags.clone()),
                    ("ONTO", flags),
                ],
                Self::ProductAny => vec![
                    ("ROWS", counts(&[1, 2, 4, 8])),
                    ("COLUMNS", counts(&[1, 2, 4, 8])),
                    ("BIASED", flags.clone()),
                    ("SILU", flags.clone()),
                    ("ONTO", flags),
                ],
                Self::Gelu => vec![value, ("GRADIENT", flags)],
                Self::Double => vec![("GRADIENT", flags)],
                Self::Step => vec![value, ("OTHERS", counts(&[0, 1, 2]))],
                Self::Histogram => vec![("N_BINS", counts(&[N_BINS as u32]))],
                Self::WinogradWeights => vec![("MIRRORED", flags)],
                Self::WinogradOut => vec![("BIASED", flags.clone()), ("ONTO", flags)],
                Self::Norm | Self::NormBackward => vec![value, ("MODULATED", flags.clone()), ("SILU", flags)],
                Self::NormParameters => vec![("MODULATED", flags)],
            };
            let mut programs = vec![Program { shader: self, constants: Vec::new() }];
            for (name, values) in choices {
                let with = |program: &Program, value: &Constant| {
                    let constants = [program.constants.clone(), vec![(name, *value)]].concat();
                    Program { shader: self, constants }
                };
                programs =
                    programs.iter().flat_map(|program| values.iter().map(move |value| with(program, value))).collect();
            }
            programs
        }
    }

    /// What a browser guarantees, and no more.
    #[test]
    fn every_program_is_plain_webgpu() {
        for program in Shader::ALL.into_iter().flat_map(Shader::programs) {
            let source = Program::source(&program);
            let what = format!("{:?} {:?}", program.shader, program.constants);
            let parsed = naga::front::wgsl::parse_str(&source);
            let module = parsed.unwrap_or_else(|error| panic!("{what}: {}", error.emit_to_string(&source)));
            let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
            let validated = validator.validate(&module);
            validated.unwrap_or_else(|error| panic!("{what}: {}", error.emit_to_string(&source)));
            assert!(module.entry_points[0].workgroup_size.iter().product::<u32>() <= 64);
            let bindings = module.global_variables.iter().filter(|(_, variable)| variable.binding.is_some());
            assert!(bindings.count() <= 8, "{what}");
        }
    }

    #[test]
    fn numbers_come_in_pairs() {
        assert_eq!(packed(&[1, 2, 3]), [1 | 2 << 32, 3]);
    }
}
