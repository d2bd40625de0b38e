"""A web server that asks its clients for Kerberos (SPNEGO), with the keys that KRB5_KTNAME names. It answers with the client's name, and
prints each token that it takes in Base64. usage: negotiate.py ADDRESS"""

import base64
import http.server
import sys

import gssapi


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Negotiate":
            self.answer(401, "Negotiate", "")
            return
        try:
            context = gssapi.SecurityContext(usage="accept")
            answer = context.step(base64.b64decode(token))
        except gssapi.exceptions.GSSError as error:
            print("refused:", error, flush=True)
            self.answer(401, "Negotiate", "")
            return
        print("taken:", token, flush=True)
        self.answer(200, "Negotiate " + base64.b64encode(answer).decode(), f"{context.initiator_name}\n")

    def answer(self, status, challenge, body):
        self.send_response(status)
        self.send_header("WWW-Authenticate", challenge)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


with http.server.HTTPServer((sys.argv[1], 0), Handler) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
