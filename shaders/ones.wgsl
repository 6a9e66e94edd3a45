// A value is one number: for shaders that take either, where numbers do not come in fours. See `fours.wgsl`.

alias Value = f32;

const WIDTH = 1u;

fn first_of(value: Value) -> f32 {
    return value;
}

fn sum_of(value: Value) -> f32 {
    return value;
}

fn largest_of(value: Value) -> f32 {
    return value;
}
