"""How long and at which rates a network is trained; without Lightning, whose import takes seconds."""

from dataclasses import dataclass

__all__ = ["Schedule"]


@dataclass(frozen=True)
class Schedule:
    """Optimiser, rates and steps."""

    optimizer: str
    learning_rate: float
    weight_decay: float
    lr_decay: float
    """Factor on the rate every ``lr_decay_every`` epochs."""
    lr_decay_every: int
    batch_size: int
    max_epochs: int
    momentum: float = 0.0
