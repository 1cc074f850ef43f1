"""The loss behind :mod:`mauc.nn`: one evaluator, and what it chooses from.

settings.py   the parameters of a call, checked by checks.py
batch.py      the settings and the tensors of a call, and the weights of their pairs
forms.py      surrogate → form
evaluate.py   form → recipe; the autograd function and the operator for torch.compile
plain.py      the recipe of every device: closed.py in torch operations, ranked.py through the NumPy kernels
processes.py  one batch over all processes
score.py      the exact metric on the device
"""
