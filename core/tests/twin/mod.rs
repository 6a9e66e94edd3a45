//! What comparing a network with its PyTorch twin takes: the twin's weights, and sums of the gradients.

use bit_diffusion::rng::Rng;
use burn::{
    module::{ModuleMapper, ModuleVisitor, Param},
    tensor::{Gradients, Tensor},
};

/// Fills every parameter, in the order of declaration, from one generator.
pub struct Fill {
    pub rng: Rng,
}

impl ModuleMapper for Fill {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let rng = &mut self.rng;
        param.map(|tensor| rng.normal_tensor(tensor.dims(), &tensor.device()).mul_scalar(0.2).require_grad())
    }
}

/// Collects the sum of each parameter's gradient, and of its absolute value.
pub struct Sums<'a> {
    pub gradients: &'a Gradients,
    pub sums: Vec<[f32; 2]>,
}

impl ModuleVisitor for Sums<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.gradients).expect("every parameter is used");
        self.sums.push([gradient.clone().sum().into_scalar(), gradient.abs().sum().into_scalar()]);
    }
}
