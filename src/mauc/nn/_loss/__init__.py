"""The loss behind :mod:`mauc.nn`: one evaluator, and the recipes that it chooses from.

settings.py   the parameters of a call; checks.py checks its tensors
batch.py      the settings and the tensors of a call, and the weights of their pairs
evaluate.py   chooses the recipe; the autograd function, and the operator for torch.compile
plain.py      the recipe of every device
closed.py     closed forms in torch operations
pieces.py     all other losses in torch operations
processes.py  gathers the batches of all processes
score.py      the exact metric on the device
"""
