"""Features of your own images: ``python -m experiments.deep.features FOLDER FILE.npz``.

FOLDER has one folder of images for each class. torchvision's ResNet-50, trained on ImageNet, turns every image into
2,048 numbers, those after its last pooling. ``python -m experiments deep --features FILE.npz
--dataset cifar100-imb`` then trains on them with the settings of that set.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.device import check_device
from mauc._io import write_whole
from mauc._typing import Floats, Ints
from mauc._validation import check_whole, invalid

if TYPE_CHECKING:
    from torch import nn

__all__ = ["features_of", "main", "resnet50"]


def resnet50() -> tuple["nn.Module", Any]:
    """Return ResNet-50 without its last layer, and the transformation that prepares an image for it."""
    from torch import nn
    from torchvision.models import ResNet50_Weights, resnet50  # only here: mauc does without torchvision

    weights = ResNet50_Weights.IMAGENET1K_V2
    network = resnet50(weights=weights)
    network.fc = nn.Identity()
    return network, weights.transforms()


def features_of(
    images: Any, network: "nn.Module", *, device: str = "auto", batch_size: int = 64, workers: int = 0
) -> tuple[Floats, Ints]:
    """Return ``(N, d)`` float32 features and ``(N,)`` class codes of a dataset of (image, code), in its order.

    The network is put into evaluation mode; nothing is drawn, so the same images give the same features.
    """
    import torch
    from torch.utils.data import DataLoader

    place = check_device(device)
    network = network.to(place).eval()
    batches = DataLoader(images, batch_size=check_whole("batch_size", batch_size, least=1), num_workers=workers)
    found, codes = [], []
    with torch.inference_mode():
        for x, y in batches:
            found.append(network(x.to(place)).flatten(1).float().cpu().numpy())
            codes.append(y.numpy())
    if not found:
        raise invalid("images", "must hold at least one image", "none", "pass a folder with one folder for each class")
    return np.concatenate(found), np.concatenate(codes)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments, compute, write the file whole."""
    parser = argparse.ArgumentParser(prog="python -m experiments.deep.features", description=__doc__)
    parser.add_argument("folder", type=Path, help="one folder of images for each class")
    parser.add_argument("file", type=Path, help="the .npz file to write: X and y")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=0, help="processes that read images")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"folder not found: {options.folder}")
    try:
        from torchvision.datasets import ImageFolder
    except ImportError:
        parser.error("torchvision is required: pip install torchvision")
    network, prepare = resnet50()
    images = ImageFolder(str(options.folder), transform=prepare)
    X, codes = features_of(
        images, network, device=options.device, batch_size=options.batch_size, workers=options.workers
    )
    write_features(options.file, X, np.asarray(images.classes)[codes])
    print(f"{options.file}: {X.shape[0]:,} images, {X.shape[1]:,} features, {len(images.classes):,} classes")


def write_features(file: Path, X: Floats, y: Any) -> None:
    """Write an ``.npz`` file that ``--features`` reads, whole or not at all."""
    from io import BytesIO

    buffer = BytesIO()
    np.savez(buffer, X=X, y=y)
    write_whole(file, buffer.getvalue())


if __name__ == "__main__":
    main()
