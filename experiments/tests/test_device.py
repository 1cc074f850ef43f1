"""Devices by name."""

import pytest
import torch

from experiments.device import check_device


def test_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device must be one that this machine has, got 'cuda': pass 'cpu' or 'auto'"):
        check_device("cuda")
    assert check_device("auto").type == "cpu"
