//! What of the settings of a training run is kept. Files are not: they belong to the person who brought them.

use bit_diffusion::saved::Saved;

use super::{NetworkSize, TrainForm};

/// The sizes that pictures can be brought to.
const SIZES: [usize; 3] = [16, 32, 64];

impl TrainForm {
    pub fn saved(&self) -> Saved {
        let mut saved = Saved::default();
        saved.put("size", &self.size);
        saved.put("encoding", &self.encoding);
        saved.put("prediction", &self.prediction);
        saved.put("loss", &self.loss);
        saved.put("network", &format!("{:?}", self.network));
        saved.put("self_cond_share", &self.self_cond_share);
        saved.put("learning_rate", &self.learning_rate);
        saved.put("batch_size", &self.batch_size);
        saved.put("n_steps", &self.n_steps);
        saved.put("sheet_every", &self.sheet_every);
        saved.put("seed", &self.seed);
        saved
    }

    pub fn restore(&mut self, saved: &Saved) {
        saved.restore("size", &mut self.size, |size| SIZES.contains(size));
        saved.restore("encoding", &mut self.encoding, |_| true);
        saved.restore("prediction", &mut self.prediction, |_| true);
        saved.restore("loss", &mut self.loss, |_| true);
        let network: Option<String> = saved.value("network");
        if let Some(network) = NetworkSize::ALL.into_iter().find(|size| network == Some(format!("{size:?}"))) {
            self.network = network;
        }
        saved.restore("self_cond_share", &mut self.self_cond_share, |share| (0.0..=1.0).contains(share));
        saved.restore("learning_rate", &mut self.learning_rate, |rate| (1e-5..=1e-2).contains(rate));
        saved.restore("batch_size", &mut self.batch_size, |n| (1..=64).contains(n));
        saved.restore("n_steps", &mut self.n_steps, |n| (10..=20_000).contains(n));
        saved.restore("sheet_every", &mut self.sheet_every, |n| (5..=1000).contains(n));
        saved.restore("seed", &mut self.seed, |_| true);
    }
}
