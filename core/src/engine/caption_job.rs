//! Captions as a job: one evaluation at a time, of a chain of analog bits or of the next token.

use std::{rc::Rc, sync::Arc};

use super::{
    EngineError, Event, Slot,
    captions::{CaptionModel, CaptionRequest, CaptionStep, Looked, Seen},
    desk::{Desk, Status},
};
use crate::{
    Error,
    model::{Condition, Method, Writing},
    sampler::{Chain, Piece, SingleChain, State},
};

/// Captions under way.
pub(super) struct CaptionJob {
    request: Arc<CaptionRequest>,
    under_way: Option<UnderWay>,
}

struct UnderWay {
    model: Rc<CaptionModel>,
    pictures: Rc<Looked>,
    way: Way,
}

enum Way {
    Bits(Box<SingleChain<3>>),
    Tokens(Box<Writing>),
}

impl CaptionJob {
    pub fn new(request: CaptionRequest) -> Self {
        Self { request: Arc::new(request), under_way: None }
    }

    /// The same from the beginning, for another device.
    pub fn afresh(&self) -> Self {
        Self { request: self.request.clone(), under_way: None }
    }

    /// Looks at the pictures, or makes one evaluation.
    pub async fn advance(&mut self, slot: Slot, desk: &mut Desk) -> Result<Status, EngineError> {
        let Some(UnderWay { model, pictures, way }) = &mut self.under_way else {
            self.under_way = Some(begin(&self.request, slot, desk).await?);
            return Ok(Status::Going);
        };
        let (step, is_done) = match way {
            Way::Bits(chain) => {
                desk.count_evaluation();
                match chain.advance(&model.captioner)? {
                    Piece::Part | Piece::Evaluation | Piece::End => return Ok(Status::Going),
                    Piece::Step(step) => {
                        let bits = step.x_pred.into_data_async().await;
                        let bits = bits.map_err(Error::readback)?;
                        let bits: Vec<f32> = bits.iter::<f32>().collect();
                        let captions = model.read_bits(&bits, pictures)?;
                        let n_evaluations = step.next.memory.n_evaluations;
                        let step = CaptionStep { step: step.step, t_now: Some(step.t_now), n_evaluations, captions };
                        (step, chain.chain().is_finished())
                    }
                }
            }
            Way::Tokens(writing) => {
                desk.count_evaluation();
                writing.step().await?;
                let captions = model.read_drafts(writing, pictures)?;
                let n = writing.n_tokens();
                let step = CaptionStep { step: n.saturating_sub(1), t_now: None, n_evaluations: n, captions };
                (step, writing.is_finished())
            }
        };
        let n_evaluations = step.n_evaluations;
        desk.events.push_back(Event::Captions { slot, step: Arc::new(step) });
        if !is_done {
            return Ok(Status::Going);
        }
        desk.events.push_back(Event::Finished { slot, n_evaluations });
        Ok(Status::Done)
    }
}

/// Looks at the pictures, and says that it begins.
async fn begin(request: &Arc<CaptionRequest>, slot: Slot, desk: &mut Desk) -> Result<UnderWay, EngineError> {
    request.settings.validate()?;
    let model = desk.models.captioner(request.model, &desk.device)?;
    let Seen { pictures, tokens } = model.look(&request.pictures, &desk.device).await?;
    let n = pictures.scenes.len();
    let (way, n_steps) = match model.info.method {
        Method::BitDiffusion => {
            let state = State::from_seed(model.captioner.state_shape(n), request.seed, &desk.device);
            let chain = Chain::new(request.settings, Condition::picture(tokens), state)?;
            (Way::Bits(Box::new(SingleChain::new(chain, usize::MAX))), request.settings.n_steps)
        }
        Method::Autoregressive => {
            (Way::Tokens(Box::new(Writing::new(&model.captioner, &tokens, request.beam)?)), model.info.length)
        }
    };
    desk.events.push_back(Event::CaptionsStarted {
        slot,
        request: request.clone(),
        captioner: model.info.clone(),
        pictures: pictures.sheet(model.info.size),
        n_steps,
    });
    Ok(UnderWay { model, pictures, way })
}
