"""A webhook receiver that trusts nothing: it checks every message by itself and says what it found.

    receiver.py            serves on loopback; the token is in RECEIVER_TOKEN. The first line on stdout is
                           the port, each further one the verdict on a request, as JSON. Ends with stdin.
    receiver.py payloads   reads messages on stdin, one a line as JSON, and writes the payload of each.
"""

import hashlib
import hmac
import http.server
import json
import os
import sys
import threading

TYPES = {
    "app_id": str, "challenge": str, "domain": str, "instance_id": str,
    "records": list, "timestamp": int, "version": int,
}
RECORD_TYPES = {"exact": bool, "name": str, "note": str, "type": str, "value": str}


def dump(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def check_types(what, value, types):
    if set(value) != set(types):
        raise ValueError("%s has the members %s" % (what, sorted(value)))
    for key, kind in types.items():
        if type(value[key]) is not kind:
            raise ValueError("%s: %s is a %s" % (what, key, type(value[key]).__name__))


def check(headers, body, token):
    """Returns the payload's value; raises ValueError where anything is amiss."""
    if headers.get("Content-Type") != "application/json":
        raise ValueError("Content-Type is %r" % headers.get("Content-Type"))
    envelope = json.loads(body.decode("utf-8"))
    if not {"payload", "hmac_sha256"} <= set(envelope) <= {"payload", "hmac_sha256", "attestation"}:
        raise ValueError("the envelope has the members %s" % sorted(envelope))
    text = envelope["payload"]
    octets = text.encode("ascii")
    want = hmac.new(token.encode("utf-8"), octets, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(want, envelope["hmac_sha256"]):
        raise ValueError("the HMAC is wrong")
    payload = json.loads(text)
    if dump(payload).encode("ascii") != octets:
        raise ValueError("the payload is not canonical: %s" % text)
    check_types("the payload", payload, TYPES)
    for record in payload["records"]:
        check_types("a record", record, RECORD_TYPES)
    if payload["version"] != 1:
        raise ValueError("the version is %r" % payload["version"])
    attestation = envelope.get("attestation")
    if "attestation" in envelope:
        if type(attestation) is not dict:
            raise ValueError("the attestation is a %s" % type(attestation).__name__)
        if attestation.get("report_data") != hashlib.sha256(octets).hexdigest():
            raise ValueError("report_data is not the payload's SHA-256")
    return payload, attestation


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            payload, attestation = check(self.headers, body, os.environ["RECEIVER_TOKEN"])
            verdict, status = {"ok": True, "payload": payload, "attestation": attestation}, 204
        except ValueError as problem:  # that of json and of the codecs included
            verdict, status = {"ok": False, "why": str(problem)}, 403
        print(json.dumps(verdict), flush=True)
        self.send_response(status)
        self.end_headers()

    def log_message(self, *args):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1:] == ["payloads"]:
        for line in sys.stdin.buffer:
            print(dump(json.loads(line.decode("utf-8"))))
    else:
        serve()
