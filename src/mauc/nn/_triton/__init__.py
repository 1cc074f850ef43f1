"""The loss in Triton kernels, on CUDA: each kernel beside the code that launches it.

launch.py      when kernels run, how the work is split into programs, and the memory of a call
closed.py      closed forms: two reads of the logits
first_pass.py  the first read of the logits for the other two families
bilinear.py    polynomials: three reads
ranked.py      pieces of polynomials: three reads, and a search among the sorted positives

Only ``launch`` may be imported where Triton is not installed.
"""
