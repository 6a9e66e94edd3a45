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
    fn headings(&self) -> Vec<String> {
        let scores = self.rows.first().into_iter().flat_map(|row| &row.scores);
        let fixed = ["sampler", "self-conditioning", "steps", "td", "evaluations", "seconds"].map(str::to_owned);
        fixed.into_iter().chain(scores.map(|spread| spread.score.label().to_owned())).collect()
    }

    fn settings_cells(row: &Row) -> Vec<String> {
        let Some(Settings { sampler, self_cond, n_steps, td, .. }) = row.settings else {
            let none = || "-".to_owned();
            return vec!["autoregressive".to_owned(), none(), none(), none(), row.evaluations.to_string()];
        };
        vec![
            sampler.label().to_owned(),
            self_cond.to_string(),
            n_steps.to_string(),
            td.to_string(),
            row.evaluations.to_string(),
        ]
    }

    /// Columns for people.
    pub fn text(&self) -> String {
        let mut lines = vec![self.headings()];
        for row in &self.rows {
            let scores = row.scores.iter().map(|spread| {
                if self.seeds > 1 {
                    format!("{:.2} ± {:.2}", spread.mean, spread.deviation)
                } else {
                    format!("{:.2}", spread.mean)
                }
            });
            let seconds = format!("{:.2}", row.seconds);
            lines.push(Self::settings_cells(row).into_iter().chain([seconds]).chain(scores).collect());
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
        let mut headings = self.headings();
        let scores = headings.split_off(6);
        headings.extend(scores.iter().flat_map(|score| [score.clone(), format!("{score} deviation")]));
        let mut out = headings.join(",") + "\n";
        for row in &self.rows {
            let mut cells = Self::settings_cells(row);
            cells.push(format!("{:.3}", row.seconds));
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
        let row = Row::new(Some(Settings::default()), 100, 2.0, &by_seed);
        assert_eq!(row.scores, [Spread { score: Score::OffPalette, mean: 2.0, deviation: f64::sqrt(2.0) }]);
        let table = Table { model: "m".to_owned(), model_steps: 7, n: 4, seeds: 2, rows: vec![row] };
        assert!(table.text().contains("2.00 ± 1.41"), "{}", table.text());
        let expected = "sampler,self-conditioning,steps,td,evaluations,seconds,off palette %,off palette % deviation\n\
                        DDIM,previous,100,0,100,2.000,2.00000,1.41421\n";
        assert_eq!(table.csv(), expected);
    }
}
