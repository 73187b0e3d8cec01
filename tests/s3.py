"""A real S3 server on loopback, for the real clients over real HTTP; each test gets a bucket of its own."""

from __future__ import annotations

import re
import socket
import threading
import uuid

import pytest

DENIED = b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccessDenied</Code><Message>No.</Message></Error>"


class Storage:
    """``with Storage() as s3: s3.bucket("name")``; the environment ``s3.settings()`` leads the clients here.

    ``requests`` are those it has answered, as "METHOD path"; ``broken`` is a pattern of such a line and how many more
    of them are refused, with a failure that the clients do not wait out, or, with ``cut``, not answered at all.
    """

    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Handler(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *args):
                pass

        self.requests = []
        self.broken = None
        self.cut = False
        self.answer = DomainDispatcherApplication(create_backend_app)
        self.server = make_server("127.0.0.1", 0, self.handle, threaded=True, request_handler=Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def handle(self, environ, start_response):
        """Answer one request."""
        line = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        self.requests.append(line)
        if self.broken and self.broken[1] and re.search(self.broken[0], line):
            self.broken = (self.broken[0], self.broken[1] - 1)
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            if self.cut:
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                raise ConnectionResetError
            start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(DENIED)))])
            return [DENIED]
        return self.answer(environ, start_response)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def settings(self):
        """The environment in which the clients speak to this server and to nobody else."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "s3_secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "NO_PROXY": "*",
        }

    def client(self):
        """A client to look at the server from outside what is tested."""
        import boto3

        key = {"aws_access_key_id": "key", "aws_secret_access_key": "s3_secret"}
        return boto3.session.Session().client("s3", endpoint_url=self.url, region_name="us-east-1", **key)

    def bucket(self, name):
        """Make a bucket; its URL."""
        self.client().create_bucket(Bucket=name)
        return f"s3://{name}"

    def files(self, url):
        """What lies below a URL, by name."""
        bucket, _, prefix = url.removeprefix("s3://").partition("/")
        client = self.client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        names = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return {
            name.removeprefix(prefix).lstrip("/"): client.get_object(Bucket=bucket, Key=name)["Body"].read()
            for name in names
        }


@pytest.fixture(scope="session")
def storage():
    """One server for the whole run: the clients keep their connections by its address."""
    with Storage() as storage:
        yield storage


@pytest.fixture
def s3(storage, monkeypatch):
    """The server, found by every client that this test starts; ``s3.bucket(...)`` makes room in it."""
    for name, setting in storage.settings().items():
        monkeypatch.setenv(name, setting)
    storage.requests.clear()
    yield storage
    storage.broken, storage.cut = None, False


@pytest.fixture
def bucket(s3):
    """The URL of a new bucket."""
    return s3.bucket(f"bucket-{uuid.uuid4().hex}")
