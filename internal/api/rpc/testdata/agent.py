"""A scripted agent: reads one JSON request per line from stdin and writes one JSON answer per line to stdout.

It uses the oslo.messaging package of the machine, as Neutron's agents do.
"""
import json
import logging
import sys
import threading

from oslo_config import cfg
import oslo_messaging

logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
conf = cfg.CONF
conf([], project="agent")
oslo_messaging.set_transport_defaults(control_exchange="neutron")
transport = oslo_messaging.get_rpc_transport(conf, url=sys.argv[1], allowed_remote_exmods=[])
lock = threading.Lock()


def write_answer(answer):
    with lock:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class Endpoint:
    """Accepts any method and reports the call."""

    def __init__(self, version):
        self.target = oslo_messaging.Target(version=version)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda context, **args: write_answer({"received": name, "args": args})


def listen(request):
    target = oslo_messaging.Target(exchange="neutron", topic=request["topic"], server=request["host"])
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint(request["version"])], executor="threading")
    server.start()
    return None


def call(request):
    target = oslo_messaging.Target(exchange="neutron", topic=request["topic"], version=request["version"], namespace=request.get("namespace"))
    client = oslo_messaging.RPCClient(transport, target, timeout=request.get("timeout", 600))
    context = {"is_admin": True, "roles": [], "request_id": "req-1"}
    if request.get("cast"):
        return client.cast(context, request["method"], **request["args"])
    return client.call(context, request["method"], **request["args"])


def answer(request):
    try:
        write_answer({"id": request["id"], "result": (listen if "host" in request else call)(request)})
    except oslo_messaging.RemoteError as e:
        write_answer({"id": request["id"], "failure": e.exc_type, "message": e.value})
    except Exception as e:  # noqa: B902
        write_answer({"id": request["id"], "failure": type(e).__name__, "message": str(e)})


for line in sys.stdin:
    threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
