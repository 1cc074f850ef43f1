"""What the public modules of :mod:`mauc.nn` run on.

loss.py       one evaluation of the loss, with its gradient
batch.py      classes, weights and pair weights of a batch
moments.py, ranked.py, ends.py     the schemes in torch operations
fused.py, fused_kernels.py     the same in two CUDA kernels
log_term.py   the log-loss beside the risk
second_order.py     second derivatives, where somebody asks for them
score.py      the exact metric on the device
processes.py  one batch over all processes
watch.py      one warning for batches that teach nothing
training.py   the training loop of the classifier
"""
