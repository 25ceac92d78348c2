"""Sends its arguments and its standard files to openstack_server.py, and exits with the exit code of the command.

The first argument is the path of the socket at which openstack_server.py listens.
"""
import json
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
socket.send_fds(connection, [json.dumps(sys.argv[2:]).encode()], [0, 1, 2])
sys.exit(int(connection.recv(16) or b"1"))
