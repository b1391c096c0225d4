"""A server on the given port that answers whatever it is asked with a line no memcached says."""

import socket
import sys

server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
clients = []
while True:
    client, _ = server.accept()
    client.sendall(b"HELLO\r\n")
    clients.append(client)  # a client that is dropped is closed
