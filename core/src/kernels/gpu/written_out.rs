//! Loops of shaders, written out where the number of their turns is known.
//!
//! Drivers keep small arrays in registers only if each index is known when they compile. Not all of them unroll loops for that, and where one does not, sums lie
//! in memory: `SwiftShader` runs a matrix product three times as fast without the loops.

/// The text without the loops `for (var i = 0u; i < N; i++) {` and `… i += 4u) {` whose N is a number or among `counts`: for each turn there is a block in which
/// `i` is a constant.
pub(super) fn written_out(text: &str, counts: &[(&str, u32)]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    blocks(&lines, counts)
}

fn blocks(lines: &[&str], counts: &[(&str, u32)]) -> String {
    let mut parts = Vec::new();
    let mut rest = lines;
    while let [line, after @ ..] = rest {
        rest = after;
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let head = Loop::of(line.trim_start(), counts);
        if let Some((head, length)) = head.zip(after.iter().position(|line| *line == end)) {
            let body = blocks(&after[..length], counts);
            for turn in (0..head.end).step_by(head.step) {
                parts.push(format!("{indent}{{\n{indent}    const {} = {turn}u;\n{body}{end}\n", head.name));
            }
            rest = &after[length + 1..];
        } else {
            parts.push(format!("{line}\n"));
        }
    }
    parts.concat()
}

/// The head of a loop that can be written out.
struct Loop<'a> {
    name: &'a str,
    end: u32,
    step: usize,
}

impl<'a> Loop<'a> {
    fn of(line: &'a str, counts: &[(&str, u32)]) -> Option<Self> {
        let (name, rest) = line.strip_prefix("for (var ")?.split_once(" = 0u; ")?;
        let (end, step) = rest.strip_prefix(name)?.strip_prefix(" < ")?.split_once("; ")?;
        let step = match step.strip_prefix(name)? {
            "++) {" => 1,
            " += 4u) {" => 4,
            _ => return None,
        };
        let known = counts.iter().find(|(name, _)| *name == end).map(|(_, count)| *count);
        let end = known.or_else(|| end.strip_suffix('u')?.parse().ok())?;
        Some(Self { name, end, step })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_known_length_become_blocks() {
        let text = "\
for (var i = 0u; i < ROWS; i += 4u) {
    for (var j = 0u; j < 2u; j++) {
        a[i] += b[j];
    }
}
";
        let expected = "\
{
    const i = 0u;
    {
        const j = 0u;
        a[i] += b[j];
    }
    {
        const j = 1u;
        a[i] += b[j];
    }
}
";
        let second = expected.replace("i = 0u", "i = 4u");
        assert_eq!(written_out(text, &[("ROWS", 8)]), [expected, &second].concat());
    }

    #[test]
    fn all_other_lines_stay() {
        for head in ["var i = 0u; i < info.rows; i++", "var i = id.x; i < ROWS; i++", "var i = 0u; i < ROWS; i += 2u"] {
            let text = format!("for ({head}) {{\n    a[i] = 0.0;\n}}\n");
            assert_eq!(written_out(&text, &[("ROWS", 8)]), text);
        }
    }
}
