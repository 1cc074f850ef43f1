"""What the public modules of :mod:`mauc.nn` run on.

batch.py      classes, weights and pair weights of a batch
plan.py       surrogate × range × precision → scheme and polynomials
moments.py, ranked.py     the schemes in torch operations
fused.py, fused_kernels.py     the same in two CUDA kernels
processes.py  one batch over all processes
training.py   the training loop of the classifier
"""
