"""The loss behind :mod:`mauc.nn`: one evaluator, and the recipes that it chooses from.

settings.py   the settings and their checks
batch.py      the tensors of a call, their checks, and the weights of their pairs
device.py     what a device has
evaluate.py   chooses the recipe; the autograd function, and the operator for torch.compile
plain.py      the recipe of every device
closed.py     closed forms in torch operations
pieces.py     all other losses in torch operations
processes.py  gathers the batches of all processes
score.py      the exact metric on the device
"""
