"""A ResNet for images of 32 pixels, and a perceptron with batch normalisation for tables."""

from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["network_for"]


class Block(nn.Module):
    """Two convolutions and a short cut that pads with zeros (He et al., CVPR 2016, option A)."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(n_out), nn.BatchNorm2d(n_out)
        self.stride, self.pad = stride, (n_out - n_in) // 2

    def forward(self, x: Tensor) -> Tensor:
        out = self.norm2(self.second(F.relu(self.norm1(self.first(x)))))
        if self.pad:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(out + x)


class ResNet(nn.Module):
    """Three stages of 16, 32 and 64 channels: ResNet-32 has five blocks in each, ResNet-8 one."""

    def __init__(self, n_classes: int, *, blocks: int, cosine: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        n_in = 16
        for n_out, stride in ((16, 1), (32, 2), (64, 2)):
            for k in range(blocks):
                layers.append(Block(n_in, n_out, stride if k == 0 else 1))
                n_in = n_out
        self.features = nn.Sequential(*layers)
        self.last = Cosine(64, n_classes) if cosine else nn.Linear(64, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.features(x).mean((2, 3)))


class Cosine(nn.Linear):
    """Cosines of normalised features with normalised weights, which LDAM's margins belong to."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_in, n_out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.normalize(x), F.normalize(self.weight))


def network_for(shape: tuple[int, ...], n_classes: int, *, blocks: int = 5, cosine: bool = False) -> nn.Module:
    """Return the network for rows of this shape; of images, with this number of blocks in each stage."""
    if len(shape) == 3:
        return ResNet(n_classes, blocks=blocks, cosine=cosine)
    wide = (512, 256) if shape[0] > 500 else (128, 64)
    layers: list[nn.Module] = []
    n_in = shape[0]
    for n_out in wide:
        layers += [nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU()]
        n_in = n_out
    return nn.Sequential(*layers, Cosine(n_in, n_classes) if cosine else nn.Linear(n_in, n_classes))
