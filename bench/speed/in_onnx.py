"""A contender of `bench/speed.sh`: the same networks in onnxruntime, from files that `in_torch.py` exports. It samples only."""

import numpy as np
import onnxruntime

from subject import THREADS, Subject, answer_questions


class Onnx(Subject):
    def __init__(self, model, config, parameters, onnx):
        super().__init__(config)
        self.onnx, self.sessions = onnx, {}

    def look(self, batch, pictures):
        if batch not in self.sessions:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = THREADS
            path = f"{self.onnx}.{batch}"
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            self.sessions[batch] = session, np.load(f"{path}.condition.npy")
        return self.sessions[batch]

    def ddim(self, x_T, found, n_steps, only, sees_last):
        session, condition = found
        x_t, x_pred, zeros = x_T, np.zeros_like(x_T), np.zeros_like(x_T)
        given = {value.name for value in session.get_inputs()}
        for gamma, keep, add in self.times(n_steps, only):
            feed = {"x_t": x_t, "x_pred": x_pred if sees_last else zeros, "gamma": np.full(len(x_t), gamma), "condition": condition}
            [y] = session.run(None, {name: value for name, value in feed.items() if name in given})
            x_pred = np.clip(y, -1, 1)
            x_t = np.float32(keep) * x_t + np.float32(add) * x_pred
        return x_pred


if __name__ == "__main__":
    answer_questions(Onnx)
