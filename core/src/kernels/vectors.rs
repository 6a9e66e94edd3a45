//! Plain loops in the widest vectors that a machine has.

/// Defines a function whose loops the compiler turns into vectors of the widest kind there is at run time.
///
/// pulp's own way, a closure, is not enough: what calls it is not always inlined, and then the loops have the oldest vectors there are.
macro_rules! in_vectors {
    ($(#[$attribute:meta])* fn $name:ident<$life:lifetime>($($given:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$attribute])*
        fn $name<$life>($($given: $type),*) {
            struct Work<$life> {
                $($given: $type),*
            }
            impl<$life> pulp::WithSimd for Work<$life> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    let Self { $($given),* } = self;
                    $body
                }
            }
            pulp::Arch::new().dispatch(Work { $($given),* });
        }
    };
}

pub(super) use in_vectors;
