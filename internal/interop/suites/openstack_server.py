"""Runs commands of the openstack client for the program in openstack_client.py, each in a new process that has loaded the client already.

The functional tests of the client run hundreds of commands, and the start of the client takes most of the time of a command.
"""
import importlib.metadata
import json
import os
import signal
import socket
import sys

from openstackclient import shell

for group in "openstack.cli.base", "openstack.cli.extension", "openstack.common", "openstack.identity.v3", "openstack.network.v2":
    for plugin in importlib.metadata.entry_points(group=group):
        plugin.load()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes the processes that have ended
listener = socket.socket(socket.AF_UNIX)
listener.bind("openstack.socket")
listener.listen(16)
while True:
    connection, _ = listener.accept()
    if os.fork():
        connection.close()
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    arguments, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
    try:
        code = shell.main(json.loads(arguments))
    except SystemExit as end:
        code = end.code
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(str(int(code or 0)).encode())
    os._exit(0)
