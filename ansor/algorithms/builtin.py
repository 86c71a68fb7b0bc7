"""The built-in algorithms; importing this module registers them."""

from __future__ import annotations

from ansor.algorithms import bytes_in_32 as bytes_in_32
from ansor.algorithms import channels_first as channels_first
from ansor.algorithms import flat as flat
from ansor.algorithms import grouped as grouped
from ansor.algorithms import im2col as im2col
from ansor.algorithms import one_channel as one_channel
from ansor.algorithms import packed_products as packed_products
from ansor.algorithms import three_in_two as three_in_two
from ansor.algorithms import winograd as winograd
from ansor.algorithms import winograd_integer as winograd_integer
from ansor.algorithms import winograd_tiles as winograd_tiles
from ansor.algorithms.base import alternatives_of as alternatives_of
from ansor.algorithms.base import registered as registered
