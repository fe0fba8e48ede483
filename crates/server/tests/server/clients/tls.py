"""Reads and writes over TLS with redis-py and pymemcache: PORT-OF-MEMCACHED PORT-OF-REDIS CERTIFICATE."""

import ssl
import sys

import redis
from pymemcache.client.base import Client

memcached_port, redis_port, certificate = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    context = ssl.create_default_context(cafile=certificate)
    context.minimum_version = context.maximum_version = version
    memcached = Client(("localhost", memcached_port), tls_context=context, timeout=20)
    assert memcached.set("greeting", "hello", noreply=False)
    assert memcached.get("greeting") == b"hello"
    client = redis.Redis(
        host="localhost",
        port=redis_port,
        ssl=True,
        ssl_ca_certs=certificate,
        ssl_min_version=version,
        socket_timeout=20,
    )
    assert client.get("greeting") == b"hello"
    pipeline = client.pipeline()
    for i in range(1000):
        pipeline.set(f"key {i}", "x" * i)
    assert all(pipeline.execute())
    assert len(client.get("key 999")) == 999
    memcached.close()
    client.close()
