"""The experiments: one module per table or figure of the paper. Results go to disk as they come and are never
redone.
"""
