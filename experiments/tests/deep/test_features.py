"""Feature files from a folder of images: with a tiny network of random weights in torchvision's place."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from experiments.deep.data import read_features
from experiments.deep.features import features_of, main, resnet50


class Folder(torch.utils.data.Dataset):
    """As torchvision's ImageFolder: one class per folder, in the order of their names."""

    def __init__(self, root, transform):
        self.classes = sorted(p.name for p in Path(root).iterdir())
        self.files = [(p, k) for k, name in enumerate(self.classes) for p in sorted((Path(root) / name).iterdir())]
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, k):
        path, code = self.files[k]
        return self.transform(Image.open(path)), code


class Tiny(torch.nn.Module):
    """A convolution, a pooling and a last layer named as in ResNet-50."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3), torch.nn.BatchNorm2d(6), torch.nn.AdaptiveAvgPool2d(1)
        )
        self.fc = torch.nn.Linear(6, 1000)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1))


def prepare(image):
    return torch.from_numpy(np.asarray(image.convert("RGB"), dtype=np.float32)).permute(2, 0, 1) / 255


@pytest.fixture
def torchvision(monkeypatch):
    """The parts of it that are used."""
    torch.manual_seed(0)
    network = Tiny()
    weights = SimpleNamespace(transforms=lambda: prepare)
    parts = {"torchvision": ModuleType("torchvision")}
    parts["torchvision.models"] = SimpleNamespace(
        ResNet50_Weights=SimpleNamespace(IMAGENET1K_V2=weights), resnet50=lambda weights: network
    )
    parts["torchvision.datasets"] = SimpleNamespace(ImageFolder=Folder)
    for name, part in parts.items():
        monkeypatch.setitem(sys.modules, name, part)
    return network


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("cat", 3), ("dog", 2)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for k in range(n):
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(
                tmp_path / "images" / name / f"{k}.png"
            )
    return tmp_path / "images"


def test_a_folder_of_images_becomes_a_file_of_features(torchvision, images, tmp_path, capsys):
    file = tmp_path / "features.npz"
    main([str(images), str(file), "--device", "cpu", "--batch-size", "2"])
    assert "5 images, 6 features, 2 classes" in capsys.readouterr().out
    X, codes, names = read_features(file)
    assert names == ["cat", "dog"]
    assert codes.tolist() == [0, 0, 0, 1, 1]
    expected = torchvision.body(torch.stack([x for x, _ in Folder(images, prepare)])).flatten(1)
    np.testing.assert_allclose(X, expected.detach().numpy(), rtol=1e-5)


def test_the_last_layer_is_taken_off_and_batches_do_not_matter(torchvision, images):
    network, transform = resnet50()
    assert isinstance(network.fc, torch.nn.Identity)
    one, two = (features_of(Folder(images, transform), network, device="cpu", batch_size=n) for n in (1, 5))
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
    assert not network.training


def test_what_is_missing_is_told(tmp_path, images, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path / "none"), "file.npz"])
    assert "folder not found" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "torchvision.datasets", None)
    with pytest.raises(SystemExit):
        main([str(images), "file.npz"])
    assert "torchvision is required: pip install torchvision" in capsys.readouterr().err
    with pytest.raises(ValueError, match="images must hold at least one image, got none"):
        features_of([], Tiny(), device="cpu")
