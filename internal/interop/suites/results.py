"""Converts a subunit stream on stdin to a line of JSON for each test."""
import json
import sys

import subunit
import testtools


def print_result(test):
    details = {name: content.as_text() for name, content in test["details"].items() if name in ("traceback", "reason")}
    print(json.dumps({"id": test["id"], "status": test["status"], "details": "\n".join(details.values())}))


result = testtools.StreamToDict(print_result)
result.startTestRun()
subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="other output").run(result)
result.stopTestRun()
