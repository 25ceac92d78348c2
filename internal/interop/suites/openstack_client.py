"""Sends its arguments and its files to openstack_server.py, which listens at the socket in the first argument, and exits with the code of the command."""
import json
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
socket.send_fds(connection, [json.dumps(sys.argv[2:]).encode()], [0, 1, 2])
sys.exit(int(connection.recv(16) or b"1"))
