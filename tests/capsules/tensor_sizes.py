"""The sizes of all tensors that operations create, for tests of what is never formed."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class RecordSizes(TorchDispatchMode):
    """Inside `with RecordSizes() as sizes:` every result's number of elements goes to `sizes`.

    Views that only repeat what is in memory (expand) count with what they occupy.
    """

    def __enter__(self):
        self.sizes = []
        super().__enter__()
        return self.sizes

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.sizes.append(min(leaf.numel(), leaf.untyped_storage().nbytes() // leaf.element_size()))
        return result
