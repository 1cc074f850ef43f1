"""The closed forms in Triton kernels, on CUDA.

launch.py  when kernels run, and what they are called with
closed.py  the kernels, beside the code that launches them: two reads of the logits

Only ``launch`` may be imported where Triton is not installed.
"""
