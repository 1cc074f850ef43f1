"""Which loss ranks best on long-tailed data? Networks trained from scratch on CIFAR-10-LT and CIFAR-100-LT, small
networks on features of images, on KDD Cup 99 and on imbalanced letters.

``python -m experiments.longtail --help`` runs it; ``python -m experiments.longtail.page`` writes the page.
"""
