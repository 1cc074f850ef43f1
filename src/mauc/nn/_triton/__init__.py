"""The loss in Triton kernels, on CUDA: each kernel beside the code that launches it.

launch.py    when kernels run, how they are cut, and the memory that they share
closed.py    closed forms: two reads of the logits
survey.py    the first read of the other two families
bilinear.py  polynomials: three reads
ranked.py, positives.py    pieces of polynomials: three reads, and a search among the sorted positives

Only ``launch`` may be imported where Triton is not.
"""
