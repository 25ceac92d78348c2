"""Serves Keystone's API on the loopback port $PORT, one request at a time, because the database is SQLite."""
import os
from wsgiref import simple_server

from keystone.server import wsgi


class Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


port = int(os.environ["PORT"])
simple_server.make_server("127.0.0.1", port, wsgi.initialize_public_application(), handler_class=Handler).serve_forever()
