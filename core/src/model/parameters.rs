//! The parameters of a module as a list of flat tensors, in the order of their declaration.

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{Gradients, Tensor},
};

/// Every parameter's name and shape.
pub(crate) fn names<M: Module>(module: &M) -> Vec<(String, Vec<usize>)> {
    #[derive(Default)]
    struct Names {
        path: Vec<String>,
        found: Vec<(String, Vec<usize>)>,
    }
    impl ModuleVisitor for Names {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.found.push((self.path.join("."), param.val().dims().to_vec()));
        }
    }
    let mut names = Names::default();
    module.visit(&mut names);
    names.found
}

/// Every parameter, flattened, without autodiff.
pub(crate) fn values<M: Module>(module: &M) -> Vec<Tensor<1>> {
    struct Values(Vec<Tensor<1>>);
    impl ModuleVisitor for Values {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(flat(param.val().inner()));
        }
    }
    let mut values = Values(Vec::new());
    module.visit(&mut values);
    values.0
}

/// Every parameter's gradient, flattened; zeros for those that the loss does not depend on.
pub(crate) fn gradients<M: Module>(module: &M, gradients: &Gradients) -> Vec<Tensor<1>> {
    struct Collect<'a>(&'a Gradients, Vec<Tensor<1>>);
    impl ModuleVisitor for Collect<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let gradient = value.grad(self.0).unwrap_or_else(|| value.inner().zeros_like());
            self.1.push(flat(gradient));
        }
    }
    let mut collect = Collect(gradients, Vec::new());
    module.visit(&mut collect);
    collect.1
}

/// The module with other values, given as [`values`] returns them.
pub(crate) fn with_values<M: Module>(module: M, values: Vec<Tensor<1>>) -> M {
    struct Replace(std::vec::IntoIter<Tensor<1>>);
    impl ModuleMapper for Replace {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let value = self.0.next().expect("one value for each parameter");
            param.map(|old| {
                let new = value.reshape(old.dims());
                if old.is_autodiff() { Tensor::from_inner(new).set_require_grad(old.is_require_grad()) } else { new }
            })
        }
    }
    let mut replace = Replace(values.into_iter());
    let module = module.map(&mut replace);
    assert!(replace.0.next().is_none(), "more values than parameters");
    module
}

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let n: usize = tensor.dims().iter().product();
    tensor.reshape([n])
}
