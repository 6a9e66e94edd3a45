//! Group normalisation with what follows it, and its gradients.

use burn_cubecl::tensor::CubeTensor;

use super::program::{
    Constant::Flag, N_INVOCATIONS, Program, Shader, Values, dims, empty_beside, empty_like, in_order,
};
use crate::kernels::norm::Activation;

/// What a normalisation is, but for its tensors.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct Norm {
    pub groups: usize,
    pub epsilon: f64,
    pub activation: Activation,
}

/// The tensors that a normalisation takes.
#[derive(Clone)]
pub(super) struct Given {
    pub x: CubeTensor,
    pub weight: CubeTensor,
    pub bias: CubeTensor,
    /// `[b, 2·c]`, all scales first.
    pub scale_shift: Option<CubeTensor>,
}

/// The gradients of what was given.
pub(super) struct Gradients {
    pub x: CubeTensor,
    pub weight: CubeTensor,
    pub bias: CubeTensor,
    /// Means nothing where there was neither scale nor shift.
    pub scale_shift: CubeTensor,
}

impl Given {
    fn in_order(self) -> Self {
        let [x, weight, bias] = [self.x, self.weight, self.bias].map(in_order);
        Self { x, weight, bias, scale_shift: self.scale_shift.map(in_order) }
    }

    /// In the order of the shaders' bindings. Without scale and shift they do not read the last, so that it may be any.
    fn inputs(&self) -> [&CubeTensor; 4] {
        [&self.x, &self.weight, &self.bias, self.scale_shift.as_ref().unwrap_or(&self.bias)]
    }
}

/// A channel of a picture.
fn plane(x: &CubeTensor) -> Values {
    let [_, _, height, width] = dims(x);
    Values::of(height * width)
}

impl Norm {
    fn program(&self, shader: Shader, given: &Given) -> Program {
        let mut constants = vec![("MODULATED", Flag(given.scale_shift.is_some()))];
        if shader != Shader::NormParameters {
            constants.extend([plane(&given.x).constant(), ("SILU", Flag(self.activation == Activation::Silu))]);
        }
        Program { shader, constants }
    }

    /// One workgroup for each group of each picture.
    fn workgroups(&self, x: &CubeTensor) -> [usize; 3] {
        let [batch, ..]: [usize; 4] = dims(x);
        [self.groups, batch, 1]
    }

    fn info(&self, x: &CubeTensor) -> [u32; 4] {
        let [_, channels, ..]: [usize; 4] = dims(x);
        let [channels, per_group, area] = [channels, channels / self.groups, plane(x).n].map(|n| n as u32);
        [channels, per_group, area, (self.epsilon as f32).to_bits()]
    }

    pub fn forward(&self, given: Given) -> CubeTensor {
        let given = given.in_order();
        let y = empty_like(&given.x);
        let program = self.program(Shader::Norm, &given);
        program.launch(self.workgroups(&given.x), &given.inputs(), &[&y], &self.info(&given.x));
        y
    }

    pub fn backward(&self, given: Given, dy: CubeTensor) -> Gradients {
        let given = given.in_order();
        let dy = in_order(dy);
        let [x, weight, bias, scale_shift] = given.inputs();
        let [batch, channels, ..]: [usize; 4] = dims(x);
        let dx = empty_like(x);
        let sums = empty_beside(x, [batch, channels, 2]);
        self.program(Shader::NormBackward, &given).launch(
            self.workgroups(x),
            &[x, weight, bias, scale_shift, &dy],
            &[&dx, &sums],
            &self.info(x),
        );
        let [d_weight, d_bias] = [(); 2].map(|()| empty_beside(x, [channels]));
        let d_scale_shift = match &given.scale_shift {
            Some(_) => empty_beside(x, [batch, 2 * channels]),
            None => empty_beside(x, [1]),
        };
        self.program(Shader::NormParameters, &given).launch(
            [channels.div_ceil(N_INVOCATIONS), 1, 1],
            &[&sums, weight, bias, scale_shift],
            &[&d_weight, &d_bias, &d_scale_shift],
            &[batch, channels].map(|n| n as u32),
        );
        Gradients { x: dx, weight: d_weight, bias: d_bias, scale_shift: d_scale_shift }
    }
}
