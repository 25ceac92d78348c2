"""Runs commands of the stock openstack client in one process, as the client's interactive mode does, because a new process for each command would
take most of the time.

Every request is a line of JSON, and every answer is a line of JSON. In a session, one program runs commands in a process of its own:
- {"program": ..., "options": [...]} begins a session of the program with these global options.
- A list of arguments is a command of the session; the answer is [exit code, stdout, stderr].
- null ends the session.
Requests outside of sessions:
- The name of a group of entry points; the answer is the commands that plug-ins have registered there.
- "microversions"; the answer is the microversions of Placement that the client knows.
- "programs"; the answer is the programs that can have sessions.
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
    """The stock client. The first command starts the client; later commands use the running client."""
    client = shell.OpenStackShell()
    first = [lambda arguments: client.run(options + arguments)]
    return lambda arguments: (first.pop() if first else client.run_subcommand)(arguments)


def blazar(options):
    """The program blazar of Blazar's client."""
    from blazarclient.shell import main
    return lambda arguments: main(options + arguments)


programs = {"openstack": openstack}
if find_spec("blazarclient.shell"):
    programs["blazar"] = blazar


def serve(program, options):
    """Runs commands of one client with the given global options until the session ends."""
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
        plugin.load()  # loads the plug-in once, and not in every session
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
