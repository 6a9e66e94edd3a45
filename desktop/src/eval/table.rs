//! The results of an evaluation, as a table to read and as CSV.

use std::fmt::Write as _;

use bit_diffusion::sampler::Settings;
use serde::Serialize;

use super::scores::Score;

/// A score over the seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    pub score: Score,
    pub mean: f64,
    /// The standard deviation over the seeds; 0 for one seed.
    pub deviation: f64,
}

/// One setting and its scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    /// How noise became samples; none of an autoregressive captioner.
    pub settings: Option<Settings>,
    /// Runs of the network for each picture.
    pub evaluations: usize,
    /// For the pictures of one seed.
    pub seconds: f64,
    pub scores: Vec<Spread>,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Table {
    pub model: String,
    /// Training steps of the model.
    pub model_steps: usize,
    /// Pictures a seed.
    pub n: usize,
    pub seeds: usize,
    pub rows: Vec<Row>,
}

impl Row {
    /// Mean and spread of the scores of each seed.
    pub fn new(settings: Option<Settings>, evaluations: usize, seconds: f64, by_seed: &[Vec<(Score, f64)>]) -> Self {
        let n = by_seed.len() as f64;
        let spread = |(i, &(score, _)): (usize, &(Score, f64))| {
            let values: Vec<f64> = by_seed.iter().map(|scores| scores[i].1).collect();
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            Spread { score, mean, deviation: (squares / (n - 1.0).max(1.0)).sqrt() }
        };
        let scores = by_seed.first().into_iter().flatten().enumerate().map(spread).collect();
        Self { settings, evaluations, seconds, scores }
    }
}

impl Table {
    /// The names of the columns before the scores.
    fn headings(&self) -> Vec<&'static str> {
        let mut headings = vec!["sampler", "self-conditioning", "steps", "td", "evaluations", "seconds"];
        headings.extend(self.baseline_seconds().map(|_| "time ÷ baseline"));
        headings
    }

    fn scores(&self) -> impl Iterator<Item = &'static str> {
        self.rows.first().into_iter().flat_map(|row| &row.scores).map(|spread| spread.score.label())
    }

    /// How long the autoregressive baseline took, if there is one to compare with.
    fn baseline_seconds(&self) -> Option<f64> {
        let baseline = self.rows.iter().find(|row| row.settings.is_none())?;
        self.rows.iter().any(|row| row.settings.is_some()).then_some(baseline.seconds)
    }

    /// What stands before the scores; times with so many digits.
    fn cells(&self, row: &Row, digits: usize) -> Vec<String> {
        let none = || "-".to_owned();
        let mut cells = match row.settings {
            None => vec!["autoregressive".to_owned(), none(), none(), none()],
            Some(Settings { sampler, self_cond, n_steps, td, .. }) => {
                vec![sampler.label().to_owned(), self_cond.to_string(), n_steps.to_string(), td.to_string()]
            }
        };
        cells.extend([row.evaluations.to_string(), format!("{:.digits$}", row.seconds)]);
        cells.extend(self.baseline_seconds().map(|seconds| format!("{:.digits$}", row.seconds / seconds)));
        cells
    }

    /// Columns for people.
    pub fn text(&self) -> String {
        let headings = self.headings().into_iter().chain(self.scores());
        let mut lines: Vec<Vec<String>> = vec![headings.map(str::to_owned).collect()];
        for row in &self.rows {
            let scores = row.scores.iter().map(|spread| {
                if self.seeds > 1 {
                    format!("{:.2} ± {:.2}", spread.mean, spread.deviation)
                } else {
                    format!("{:.2}", spread.mean)
                }
            });
            lines.push(self.cells(row, 2).into_iter().chain(scores).collect());
        }
        let widths: Vec<usize> = (0..lines[0].len())
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut out = format!(
            "{} ({} training steps), {} pictures for each of {} seeds{}\n",
            self.model,
            self.model_steps,
            self.n,
            self.seeds,
            if self.seeds > 1 { ": mean ± standard deviation" } else { "" }
        );
        for line in lines {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    /// Comma-separated values: a mean and a deviation for each score.
    pub fn csv(&self) -> String {
        let mut headings: Vec<String> = self.headings().into_iter().map(str::to_owned).collect();
        headings.extend(self.scores().flat_map(|score| [score.to_owned(), format!("{score} deviation")]));
        let mut out = headings.join(",") + "\n";
        for row in &self.rows {
            let mut cells = self.cells(row, 3);
            cells.extend(
                row.scores.iter().flat_map(|spread| [spread.mean, spread.deviation].map(|v| format!("{v:.5}"))),
            );
            out += &(cells.join(",") + "\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_over_seeds_by_hand() {
        let by_seed = [1.0, 3.0].map(|value| vec![(Score::OffPalette, value)]);
        let mut row = Row::new(Some(Settings::default()), 100, 2.0, &by_seed);
        assert_eq!(row.scores, [Spread { score: Score::OffPalette, mean: 2.0, deviation: f64::sqrt(2.0) }]);
        let mut table = Table { model: "m".to_owned(), model_steps: 7, n: 4, seeds: 2, rows: vec![row.clone()] };
        assert!(table.text().contains("2.00 ± 1.41"), "{}", table.text());
        let expected = "sampler,self-conditioning,steps,td,evaluations,seconds,wrong colours %,wrong colours % deviation\n\
                        DDIM,previous,100,0,100,2.000,2.00000,1.41421\n";
        assert_eq!(table.csv(), expected);
        row.settings = None;
        row.seconds = 8.0;
        table.rows.push(row);
        assert!(table.csv().contains("DDIM,previous,100,0,100,2.000,0.250,2.00000"), "{}", table.csv());
        assert!(table.csv().contains("autoregressive,-,-,-,100,8.000,1.000,2.00000"), "{}", table.csv());
    }
}
