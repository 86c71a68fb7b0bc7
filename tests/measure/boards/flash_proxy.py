"""A proxy before QEMU's GDB server that gives a machine flash: a memory map, and NOR flash whose contents it writes to the machine's memory."""

from __future__ import annotations

import contextlib
import select
import socket
import threading

from ansor.measure.wire.gdb_packets import Decoder, escaped, framed
from ansor.measure.wire.wire import FlashRegion
from tests.measure.wire.nor_flash import NorFlash, memory_map

MAP = b"qXfer:memory-map:read::"
PIECE = 1024


class FlashProxy:
    """Listens at `port`, and forwards to the port `behind` of this machine. scribbles: start and bytes of RAM that are overwritten whenever flash is written,
    as debuggers do that run code of their own there. cuts: after how many further packets for flash the connection breaks; None for never.
    spoils: an address whose byte changes before the next request, once."""

    def __init__(self, behind: int, regions: tuple[FlashRegion, ...], scribbles: tuple[int, int] = (0, 0)) -> None:
        self.nor = NorFlash(regions, self._put)
        self.cuts: int | None = None
        self.spoils: int | None = None
        self._behind, self._scribbles = behind, scribbles
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._far: socket.socket | None = None
        self._from_far = Decoder()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Accept no more connections."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self._far, self._from_far = socket.create_connection(("127.0.0.1", self._behind), 5.0), Decoder()
                self.nor.forget()
                with near, self._far, contextlib.suppress(OSError):
                    for one in (near, self._far):
                        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._talk(near, self._far)

    def _talk(self, near: socket.socket, far: socket.socket) -> None:
        """Everything is acknowledged: QEMU's stub has no other mode."""
        asked = Decoder()
        while True:
            for ready in select.select([near, far], [], [])[0]:
                if not (data := ready.recv(65536)):
                    return
                if ready is far:
                    self._from_far.feed(data)
                    self._pass_answers(near)
                elif data == b"\x03":
                    far.sendall(data)
                else:
                    asked.feed(data)
                    self._pass_requests(asked, near, far)

    def _pass_answers(self, near: socket.socket) -> None:
        while (piece := self._from_far.take()) is not None:
            offers = b";qXfer:memory-map:read+" if piece.data.startswith(b"PacketSize=") and self.nor.regions else b""
            near.sendall(framed(escaped(piece.data + offers)) if piece.kind == "packet" else b"+")

    def _pass_requests(self, asked: Decoder, near: socket.socket, far: socket.socket) -> None:
        while (piece := asked.take()) is not None:
            if self.spoils is not None:
                self._put(self.spoils, b"\x5a")
                self.spoils = None
            if piece.data.startswith(b"vFlash"):
                near.sendall(b"+" + framed(self._flashed(piece.data)))
            elif piece.data.startswith(MAP) and self.nor.regions:
                at, size = (int(one, 16) for one in piece.data[len(MAP) :].split(b","))
                text = memory_map(self.nor.regions)
                near.sendall(b"+" + framed((b"m" if at + size < len(text) else b"l") + escaped(text[at : at + size])))
            elif piece.data[:1] in (b"M", b"X") and self._in_flash(piece.data):
                near.sendall(b"+" + framed(b"E14"))
            else:
                far.sendall(framed(escaped(piece.data)) if piece.kind == "packet" else b"+")

    def _flashed(self, packet: bytes) -> bytes:
        if self.cuts is not None:
            self.cuts -= 1
            if self.cuts < 0:
                self.cuts = None
                raise OSError("cut")
        answer = self.nor.answer(packet)
        if packet == b"vFlashDone" and self._scribbles[1]:
            self._put(self._scribbles[0], b"\xa5" * self._scribbles[1])
        return answer

    def _in_flash(self, packet: bytes) -> bool:
        address, size = (int(one, 16) for one in packet[1:].split(b":")[0].split(b","))
        return size > 0 and self.nor.has(address, size)

    def _put(self, address: int, content: bytes) -> None:
        """Write the machine's memory: QEMU's stub also writes to ROM."""
        assert self._far is not None
        for at in range(0, len(content), PIECE):
            part = content[at : at + PIECE]
            self._far.sendall(framed(b"M%x,%x:%b" % (address + at, len(part), part.hex().encode())))
            while (piece := self._from_far.take()) is None or piece.kind != "packet":  # an acknowledgement
                if piece is None:
                    self._from_far.feed(self._far.recv(65536))
            assert piece.data == b"OK", piece
