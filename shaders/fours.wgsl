// A value is four neighbouring numbers, which a card loads and stores in one go: for shaders that take either. See `ones.wgsl`.

alias Value = vec4<f32>;

const WIDTH = 4u;

fn first_of(value: Value) -> f32 {
    return value.x;
}

fn sum_of(value: Value) -> f32 {
    return dot(value, vec4(1.0));
}

fn largest_of(value: Value) -> f32 {
    return max(max(value.x, value.y), max(value.z, value.w));
}
