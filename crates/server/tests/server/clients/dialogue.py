"""Runs the dialogues of a file against any memcached server, and prints differences.

    dialogue.py FILE HOST PORT            compares; exit code 1 if there is a difference
    dialogue.py FILE HOST PORT --record   prints the file with the server's answers instead of the file's
"""

import re
import socket
import sys


def bytes_of(line):
    line = re.sub(r"\{(.*?)\*(\d+)\}", lambda m: m[1] * int(m[2]), line)
    if line.endswith(r"\c"):
        return raw(line[:-2])
    return raw(line) + b"\r\n"


def raw(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def answer(address, requests):
    with socket.create_connection(address) as client:
        client.sendall(requests)
        client.settimeout(0.3)
        answer, ends = b"", False
        try:
            while piece := client.recv(1 << 16):
                answer += piece
            ends = True
        except TimeoutError:
            pass
        except ConnectionError:
            ends = True
        return answer, ends


def shown(answer):
    lines = answer.split(b"\r\n")
    tail = lines.pop()
    for line in lines:
        yield "< " + escaped(line)
    if tail:
        yield "< " + escaped(tail) + r"\c"


def escaped(line):
    text = "".join(chr(b) if 32 <= b < 127 and b not in b"\\{}" else rf"\x{b:02x}" for b in line)
    return re.sub(r"(.)\1{30,}", lambda m: f"{{{m[1]}*{len(m[0])}}}", text)


def main():
    file, host, port, *record = sys.argv[1:]
    differences = 0
    for block in open(file).read().split("\n\n"):
        lines = block.rstrip("\n").split("\n")
        requests = b"".join(bytes_of(line[2:]) for line in lines if line.startswith("> "))
        expected = b"".join(bytes_of(line[2:]) for line in lines if line.startswith("< "))
        if not requests:
            print(block + "\n") if record else None
            continue
        got, ends = answer((host, int(port)), requests)
        if record:
            kept = [line for line in lines if not line.startswith("<")]
            print("\n".join([*kept, *shown(got), *(["<end"] if ends else [])]) + "\n")
        elif (got, ends) != (expected, "<end" in lines):
            differences += 1
            print(block, "\nbut the server says:", *shown(got), "<end" if ends else "", "", sep="\n")
    sys.exit(1 if differences else 0)


main()
