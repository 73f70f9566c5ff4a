"""A client of HTTP/3 for specs. It reads a command in JSON from each line, and writes
its result in JSON on a line:

  {"connect": NAME, "to": [HOST, PORT], "sni": SNI or null, "ca": FILE}  -> {} or {"error": TEXT}
  {"on": NAME, "method": M, "authority": A, "path": P, "headers": [[N, V], ...], "body": TEXT}
      -> {"status": 200, "headers": [[N, V], ...], "body": TEXT} or {"error": TEXT}
  {"move": NAME, "from": ADDRESS}  -> {}: the connection continues from another address
  {"first": [HOST, PORT], "sni": SNI, "sources": N}  -> {"sent": BYTES, "least": BYTES, "most": BYTES}:
      the first flight of clients at N addresses, which then say nothing more, and what each of them got
      until nothing came for a second
"""

import asyncio
import json
import select
import socket
import ssl
import sys
import time

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, StreamReset

PATIENCE = 20


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.http = H3Connection(self._quic)
        self.answers = {}
        self.gone = None

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.gone = event.reason_phrase or "closed"
            for answer in self.answers.values():
                if not answer["done"].done():
                    answer["done"].set_exception(ConnectionError(self.gone))
        if isinstance(event, StreamReset) and event.stream_id in self.answers:
            answer = self.answers[event.stream_id]
            if not answer["done"].done():
                answer["done"].set_exception(ConnectionError("stream reset"))
        for one in self.http.handle_event(event):
            answer = self.answers.get(getattr(one, "stream_id", None))
            if answer is None:
                continue
            if isinstance(one, HeadersReceived):
                answer["headers"] += [[n.decode(), v.decode()] for n, v in one.headers]
            elif isinstance(one, DataReceived):
                answer["body"] += one.data
            if one.stream_ended and not answer["done"].done():
                answer["done"].set_result(None)

    async def ask(self, c):
        if self.gone:
            raise ConnectionError(self.gone)
        stream = self._quic.get_next_available_stream_id()
        answer = {"headers": [], "body": b"", "done": asyncio.get_running_loop().create_future()}
        self.answers[stream] = answer
        body = c.get("body") or ""
        headers = [(":method", c["method"]), (":scheme", "https"), (":authority", c["authority"]), (":path", c["path"])]
        if body:
            headers.append(("content-length", str(len(body.encode()))))
        headers += [tuple(h) for h in c.get("headers") or []]
        self.http.send_headers(stream, [(n.encode(), v.encode()) for n, v in headers], end_stream=not body)
        if body:
            self.http.send_data(stream, body.encode(), end_stream=True)
        self.transmit()
        await asyncio.wait_for(answer["done"], PATIENCE)
        status = next(v for n, v in answer["headers"] if n == ":status")
        rest = [[n, v] for n, v in answer["headers"] if n != ":status"]
        return {"status": int(status), "headers": rest, "body": answer["body"].decode(errors="replace")}


def configuration(sni, ca=None):
    c = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=sni)
    c.idle_timeout = 120  # longer than a spec does something else
    if ca:
        c.load_verify_locations(ca)
    else:
        c.verify_mode = ssl.CERT_NONE
    return c


class Connections:
    def __init__(self):
        self.open = {}

    async def connect(self, c):
        opening = connect(*c["to"], configuration=configuration(c["sni"], c.get("ca")), create_protocol=Client)
        # Envoy closes the connection for an unknown name at once, which aioquic does not notice.
        client = await asyncio.wait_for(opening.__aenter__(), 2)
        self.open[c["connect"]] = (opening, client)
        return {}

    async def move(self, c):
        _, client = self.open[c["move"]]
        s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.bind(("::ffff:" + c["from"], 0))
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: client, sock=s)
        return {}

    async def do(self, c):
        if "connect" in c:
            return await self.connect(c)
        if "move" in c:
            return await self.move(c)
        if "first" in c:
            return await asyncio.to_thread(first, c)
        return await self.open[c["on"]][1].ask(c)


def first(c):
    sockets, sent = {}, 0
    for i in range(c["sources"]):
        quic = QuicConnection(configuration=configuration(c["sni"]))
        quic.connect(tuple(c["first"]), now=time.time())
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((f"127.1.{i // 250}.{i % 250 + 1}", 0))
        sent = 0
        for datagram, _ in quic.datagrams_to_send(time.time()):
            s.sendto(datagram, tuple(c["first"]))
            sent += len(datagram)
        sockets[s] = 0
    while ready := select.select(list(sockets), [], [], 1)[0]:
        for s in ready:
            sockets[s] += len(s.recv(65536))
    for s in sockets:
        s.close()
    return {"sent": sent, "least": min(sockets.values()), "most": max(sockets.values())}


async def main():
    connections = Connections()
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            result = await connections.do(json.loads(line))
        except (Exception, asyncio.CancelledError) as e:  # the spec decides what is wrong
            result = {"error": str(e) or repr(e)}
        print(json.dumps(result), flush=True)


asyncio.run(main())
