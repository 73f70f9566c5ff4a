"""Sends the requests that standard input has, as JSON: over HTTP/1.1 with the standard
library, over HTTP/2 with httpx. Prints what became of each. Arguments: the address of
the gateway, HOST:PORT, and a file with the authority of its certificates."""

import http.client
import json
import socket
import ssl
import sys

import httpx

address, authority = sys.argv[1:]
gateway = tuple(address.rsplit(":", 1))


def context(r):
    c = ssl.create_default_context(cafile=authority)
    c.minimum_version = c.maximum_version = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[r["TLS"]]
    if r["Cert"]:
        c.load_cert_chain(r["Cert"], r["Key"])
    return c


def old(r):
    conn = http.client.HTTPSConnection(r["Host"], context=context(r), timeout=30)
    conn._create_connection = lambda _address, *rest, **more: socket.create_connection(gateway, *rest, **more)
    try:
        conn.request("GET", r["Path"])
        return conn.getresponse().status
    finally:
        conn.close()


def new(r):
    with httpx.Client(http1=False, http2=True, verify=context(r), trust_env=False, timeout=30) as client:
        return client.get(
            "https://" + address + r["Path"], headers={"Host": r["Host"]}, extensions={"sni_hostname": r["Host"]}
        ).status_code


def outcome(r):
    try:
        return {"Status": (new if r["HTTP"] == "2" else old)(r)}
    except Exception as e:
        return {"Error": f"{type(e).__name__}: {e}"}


print(json.dumps([outcome(r) for r in json.load(sys.stdin)]))
