"""Networks of the deep experiments, and the scores by which their logits rank."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mauc.nn._loss.plain import log_odds

__all__ = ["CosineLinear", "network", "ranking"]


def mlp(n_features: int, hidden: Sequence[int], n_classes: int) -> nn.Sequential:
    """Return linear layers with batch normalisation and rectifiers between them."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(n_features, width), nn.BatchNorm1d(width), nn.ReLU()]
        n_features = width
    return nn.Sequential(*layers, nn.Linear(n_features, n_classes))


class CosineLinear(nn.Module):
    """Return ``scale`` times the cosine of the features and a vector for each class: the last layer of LDAM."""

    def __init__(self, n_features: int, n_classes: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.empty(n_classes, n_features))
        nn.init.normal_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the ``(N, C)`` logits."""
        normal = nn.functional.normalize
        return self.scale * nn.functional.linear(normal(x, dim=1), normal(self.weight, dim=1))


def network(
    n_features: int,
    hidden: Sequence[int],
    n_classes: int,
    *,
    seed: int,
    cosine_scale: float | None = None,
    dropout: float = 0.0,
) -> nn.Sequential:
    """Return the multilayer perceptron of a seed: linear, batch normalisation, rectifier and, if given, dropout.

    Its outputs are logits, or scaled cosines.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = mlp(n_features, hidden, n_classes)
        if cosine_scale is not None:
            layers[-1] = CosineLinear([n_features, *hidden][-1], n_classes, cosine_scale)
    if not dropout:
        return layers
    after = ([layer, nn.Dropout(dropout)] if isinstance(layer, nn.ReLU) else [layer] for layer in layers)
    return nn.Sequential(*(layer for some in after for layer in some))


def ranking(logits: Tensor, log_prior: Tensor | None = None) -> Tensor:
    r"""Return the ``(N, C)`` scores that rank each column, :math:`\log s_i - \log \sum_{j \ne i} s_j`.

    Without priors s is the softmax. These log-odds rank each column as the softmax does, without its ties at 1 in
    float32. With priors :math:`s_i = \eta_i / p_i`, the optimal scores of Theorem 2.
    """
    logs = logits.double()
    return log_odds(logs if log_prior is None else logs - log_prior.to(logs)).scores
