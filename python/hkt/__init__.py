"""Multi-scale attention for PyTorch: the Hierarchical Kernel Transformer on the operators of libhkt_ops.

G. Cirrincione, arXiv 2604.08829. docs/python.md has examples, docs/model.md the definitions.
"""

from hkt._library import info
from hkt._library import version as __version__
from hkt.attention import HKTAttention
from hkt.block import TransformerBlock
from hkt.classifier import Classifier
from hkt.ops import attention, downsample
from hkt.replace import MultiheadAttention, replace_attention
from hkt.run import load, save

__all__ = [
    "Classifier",
    "HKTAttention",
    "MultiheadAttention",
    "TransformerBlock",
    "__version__",
    "attention",
    "downsample",
    "info",
    "load",
    "replace_attention",
    "save",
]
