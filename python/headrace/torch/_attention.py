"""Plain forms of the two fused ops that torch.nn's transformers call in eval mode, and that its exporter does not know.

torch.compile finds them in graphs as `torch._native_multi_head_attention` and `torch._transformer_encoder_layer_fwd`.
Their arguments and results are those of the ops. A mask is true, or not zero, where nothing is attended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace.torch._package import torch_package

__all__: list[str] = []

# The kinds of masks, as torch.nn.MultiheadAttention.merge_masks numbers them; a third has all four dimensions.
_OVER_POSITIONS, _OVER_PADDING = 0, 1


def plain_form(target: Any) -> Callable[..., Any] | None:
    """Returns the function to call in place of a fused op; None for any other target."""
    torch = torch_package()
    if target is torch._native_multi_head_attention:
        return multi_head_attention
    if target is torch._transformer_encoder_layer_fwd:
        return encoder_layer
    return None


def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    width: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    weight: Any,
    bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """Returns f[N,L,width] and, if wanted, the weights f[N,L,S] (averaged over heads) or f[N,heads,L,S]."""
    torch = torch_package()
    linear = torch.nn.functional.linear
    parts = zip((query, key, value), qkv_weight.split(width), qkv_bias.split(width), strict=True)
    q, k, v = (
        linear(x, w, b).reshape(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2) for x, w, b in parts
    )
    scores = (q @ k.transpose(2, 3)) / math.sqrt(width // heads)
    if mask is not None:
        scores = scores.masked_fill(_over_scores(mask, mask_type).to(torch.bool), -math.inf)
    weights = torch.softmax(scores, -1)
    joined = (weights @ v).transpose(1, 2).reshape(query.shape[0], query.shape[1], width)
    shown = (weights.mean(1) if average_attn_weights else weights) if need_weights else None
    return linear(joined, weight, bias), shown


def _over_scores(mask: Any, mask_type: int | None) -> Any:
    """The mask in a shape that broadcasts to [N,heads,L,S]."""
    if mask_type == _OVER_PADDING:
        return mask[:, None, None, :]
    return mask[None, None] if mask_type == _OVER_POSITIONS else mask


def encoder_layer(
    src: Any,
    width: int,
    heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    weight: Any,
    bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """Returns f[N,L,width]: attention and two dense layers, each beside a shortcut and with a layer norm."""
    layer_norm = torch_package().nn.functional.layer_norm

    def attend(x: Any) -> Any:
        own = (width, heads, qkv_weight, qkv_bias, weight, bias, mask)
        return multi_head_attention(x, x, x, *own, need_weights=False, mask_type=mask_type)[0]

    def norm_1(x: Any) -> Any:
        return layer_norm(x, (width,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Any) -> Any:
        return layer_norm(x, (width,), norm_weight_2, norm_bias_2, eps)

    dense = (use_gelu, ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2)
    if norm_first:
        src = src + attend(norm_1(src))
        return src + _feed(norm_2(src), *dense)
    src = norm_1(src + attend(src))
    return norm_2(src + _feed(src, *dense))


def _feed(x: Any, use_gelu: bool, weight_1: Any, bias_1: Any, weight_2: Any, bias_2: Any) -> Any:
    """Two dense layers."""
    functional = torch_package().nn.functional
    inner = functional.linear(x, weight_1, bias_1)
    return functional.linear(functional.gelu(inner) if use_gelu else functional.relu(inner), weight_2, bias_2)
