"""Networks of the deep experiments, and the scores by which their logits rank."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mauc.nn.classifier import mlp

__all__ = ["CosineLinear", "network", "ranking"]


class CosineLinear(nn.Module):
    """``scale`` times the cosines of the features with a vector for each class: the last layer that LDAM asks for."""

    def __init__(self, n_features: int, n_classes: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.empty(n_classes, n_features))
        nn.init.normal_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the ``(N, C)`` scores. logits."""
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
    """Return the multilayer perceptron of a seed: linear, batch normalisation, rectifier, and dropout where asked for;
    its outputs are logits, or scaled cosines.
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

    Without priors :math:`s` is the softmax, of which this is an increasing map in every column; softmax in float32
    has ties at 1 where this has none. With them :math:`s_i = \eta_i / p_i`, the optimal scores of Theorem 2.
    """
    logs = logits.double()
    if log_prior is not None:
        logs = logs - log_prior.to(logs)
    top, at = logs.max(1, keepdim=True)
    others = logs.scatter(1, at, -torch.inf).logsumexp(1, keepdim=True)
    share = logs - torch.logaddexp(top, others)
    # log s − log(1 − s) with Σ s = 1; 1 − s cancels for the largest of a row, whose others are summed instead.
    odds = share - torch.log1p(-share.exp().clamp(max=0.5))
    return odds.scatter(1, at, top - others)
