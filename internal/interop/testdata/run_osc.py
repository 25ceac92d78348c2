"""Runs commands of the stock openstack client, as its interactive mode does: starting it anew for each would take most of the time.

Every request is a line of JSON, and so is its answer. {"program": ..., "options": [...]} begins a session of that program with these global
options, in a process of its own; a list of arguments is a command of that session, answered by [exit code, stdout, stderr]; null ends the
session. Outside of sessions, the name of a group of entry points is answered by the commands that plug-ins have registered there,
"microversions" by those of Placement that the client knows, and "programs" by the programs that can have sessions.
"""
import importlib.metadata
import json
import os
import sys
import tempfile
from importlib.util import find_spec

from openstackclient import shell
from osc_placement import version

requests = map(json.loads, iter(sys.stdin.readline, ""))


def say(answer):
    os.write(answers, json.dumps(answer).encode() + b"\n")


def openstack(options):
    """The stock client: the first command starts it, the others find it running."""
    client = shell.OpenStackShell()
    first = [lambda arguments: client.run(options + arguments)]
    return lambda arguments: (first.pop() if first else client.run_subcommand)(arguments)


def blazar(options):
    """The program of Blazar's client alone."""
    from blazarclient.shell import main
    return lambda arguments: main(options + arguments)


programs = {"openstack": openstack}
if find_spec("blazarclient.shell"):
    programs["blazar"] = blazar


def serve(program, options):
    """One client, which runs commands with those global options until the session ends."""
    files = [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    for number, file in enumerate(files, 1):
        os.dup2(file.fileno(), number)
    run = programs[program](options)
    say("begun")
    while (arguments := next(requests, None)) is not None:
        for file in files:
            file.seek(0)
            file.truncate()
        try:
            code = run(arguments)
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        for file in files:
            file.seek(0)
        say([int(code or 0)] + [file.read().decode() for file in files])


answers = os.dup(1)
for group in "openstack.cli.base", "openstack.cli.extension":
    for plugin in importlib.metadata.entry_points(group=group):
        plugin.load()  # once, not in every session
for request in requests:
    if isinstance(request, dict):
        session = os.fork()
        if session == 0:
            serve(request["program"], request["options"])
            os._exit(0)
        say(os.waitstatus_to_exitcode(os.waitpid(session, 0)[1]))
    elif request == "programs":
        say(sorted(programs))
    elif request == "microversions":
        say(version.SUPPORTED_VERSIONS)
    else:
        say([point.name.replace("_", " ") for point in importlib.metadata.entry_points(group=request)])
