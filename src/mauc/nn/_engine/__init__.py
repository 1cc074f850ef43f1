"""What the public modules of :mod:`mauc.nn` run on.

loss.py       one evaluation of the loss, with its gradient
batch.py      classes, weights and pair weights of a batch
moments.py, ranked.py, ends.py     the schemes in torch operations
host.py, small.py, forms.py     the loss on the CPU, of large and of small batches
fused.py, plans.py, repeated.py     the loss in CUDA kernels: which ones, their calls, calls of a module that repeat
fused_moments.py, fused_bilinear.py, fused_ranked.py, fused_tiny.py, *_kernels.py     the kernels, and their recipes
launch.py     kernels compiled once, and launched past Triton
traced.py     the loss as one operation, for torch.compile
log_term.py   the log-loss beside the risk
second_order.py     second derivatives, where somebody asks for them
score.py      the exact metric on the device
processes.py  one batch over all processes
watch.py      one warning for batches that teach nothing
training.py   the training loop of the classifier
"""
