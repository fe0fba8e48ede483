"""Keeps COUNT clients connected at once, every second one using Redis's protocol; each sets and gets, twice, while all are
connected. Then all but one disconnect, and that one waits until the server has noticed. Fails on a wrong answer.

    crowd.py HOST MEMCACHED_PORT REDIS_PORT COUNT
"""

import socket
import sys
import time

PATIENCE = 120

host, ports, count = sys.argv[1], [int(port) for port in sys.argv[2:4]], int(sys.argv[4])


def read_until(client, end):
    answer = b""
    while not answer.endswith(end):
        piece = client.recv(4096)
        assert piece, answer
        answer += piece
    return answer


def expect(client, answer):
    got = b""
    while len(got) < len(answer):
        piece = client.recv(len(answer) - len(got))
        assert piece, (got, answer)
        got += piece
    assert got == answer, (got, answer)


def connections(client):
    client.sendall(b"stats\r\n")
    lines = read_until(client, b"END\r\n").splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith(b"STAT curr_connections "))


clients = [socket.create_connection((host, ports[i % 2]), timeout=PATIENCE) for i in range(count)]
for turn in range(2):
    for i, client in enumerate(clients):
        if i % 2 == 0:
            client.sendall(b"set k%d 0 0 1\r\n%d\r\nget k%d\r\n" % (i, turn, i))
        else:
            client.sendall(b"set k%d %d\r\nget k%d\r\n" % (i, turn, i))
    for i, client in enumerate(clients):
        if i % 2 == 0:
            expect(client, b"STORED\r\nVALUE k%d 0 1\r\n%d\r\nEND\r\n" % (i, turn))
        else:
            expect(client, b"+OK\r\n$1\r\n%d\r\n" % turn)
    there = connections(clients[0])
    assert there == count, there
last, others = clients[0], clients[1:]
for client in others:
    client.close()
begin = time.monotonic()
while connections(last) > 1:
    assert time.monotonic() - begin < PATIENCE, "closed connections are let go"
    time.sleep(0.005)
print(f"crowd: {count} clients at once, all as expected")
