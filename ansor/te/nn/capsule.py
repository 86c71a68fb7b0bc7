"""Capsule convolution: every "pixel" and every kernel tap is a small matrix per channel, and the product is a matrix product."""

from __future__ import annotations

from ansor.errors import DeclarationError
from ansor.te.expr import Axis
from ansor.te.nn.layout import Padding, Sizes, extents, product, product_dtype, summed, tap_axis, tap_position, windows
from ansor.te.nn.padding import pad_windows
from ansor.te.tensor import Tensor, declared


def capsule_conv2d(data: Tensor, kernel: Tensor, strides: Sizes = 1, padding: Padding = 0, out_dtype: str | None = None,
                   name: str = "capsule_conv2d") -> Tensor:
    """Capsule convolution: data [N, H, W, I, K, CI], kernel [KH, KW, K, J, CI, CO], output [N, OH, OW, I, J, CO].

    output[n, h, w, i, j, co] = sum over rh, rw, k, rc of data[n, h * stride + rh, w * stride + rw, i, k, rc] * kernel[rh, rw, k, j, rc, co].
    """
    given, taps = extents(name, data, "data", "NHWIKC"), extents(name, kernel, "kernel", "HWKJCO")
    for letter, what in (("K", "capsule columns of the data and capsule rows of the kernel"), ("C", "input channels")):
        if given[letter] != taps[letter]:
            raise DeclarationError(
                f"asked for {name} of {data.name} with shape {data.shape} and kernel {kernel.name} with shape {kernel.shape}; {what} are {given[letter]} "
                f"and {taps[letter]}, and have to be equal"
            )
    dtype = product_dtype(name, data, kernel, out_dtype)
    slides = windows(name, data, given, taps, strides, padding, 1, "HW")
    padded = pad_windows(data, "NHWIKC", slides)
    n, i, j, co = Axis("n", given["N"]), Axis("i", given["I"]), Axis("j", taps["J"]), Axis("co", taps["O"])
    h, w = Axis("h", slides["H"].output), Axis("w", slides["W"].output)
    rh, rw, k, rc = tap_axis("rh", taps["H"]), tap_axis("rw", taps["W"]), tap_axis("k", taps["K"]), tap_axis("rc", taps["C"])
    value = padded[n, tap_position(h, rh, slides["H"]), tap_position(w, rw, slides["W"]), i, k, rc]
    body = product(value, kernel[rh, rw, k, j, rc, co], dtype)
    return declared(name, (n, h, w, i, j, co), summed(body, [rh, rw, k, rc]))
