"""A small Hub on loopback, for the real clients over real HTTP: repositories as dictionaries of commits."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

NULL = "0" * 40


class Hub:
    """``repositories[(type, id)]`` is a list of commits, each a dictionary path -> bytes."""

    def __init__(self):
        self.repositories = {}
        self.objects = {}
        self.requests = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1
            disable_nagle_algorithm = True

            def log_message(self, *args):
                pass

            def handle_any(self):  # every method
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                hub.requests.append((self.command, self.path))
                status, headers, content = hub.answer(self.command, self.path, self.headers, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)
                self.wfile.flush()

            do_GET = do_HEAD = do_POST = do_PUT = handle_any  # noqa: N815 - names of the base class

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def add_folder(self, kind, name, folder):
        """A repository with one commit: the files of a folder."""
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        self.repositories[kind, name] = [files]

    # Answers ------------------------------------------------------------------------------------

    def answer(self, method, target, headers, body):
        path = urlsplit(target).path
        routes = (
            (r"/api/repos/create", self.create),
            (r"/api/validate-yaml", lambda headers, body: {"errors": [], "warnings": []}),
            (r"/api/(models|datasets)/([^/]+/[^/]+)/preupload/[^/]+", self.preupload),
            (r"/api/(models|datasets)/([^/]+/[^/]+)/commit/[^/]+", self.commit),
            (r"/api/(models|datasets)/([^/]+/[^/]+)/tree/[^/]+(?:/(.*))?", self.tree),
            (r"/api/(models|datasets)/([^/]+/[^/]+)/paths-info/[^/]+", self.paths_info),
            (r"/api/(models|datasets)/([^/]+/[^/]+)(?:/revision/[^/]+)?", self.info),
            (r"/(?:datasets/)?[^/]+/[^/]+\.git/info/lfs/objects/batch", self.batch),
            (r"/objects/([0-9a-f]{64})", self.store),
            (r"/(datasets/)?([^/]+/[^/]+)/resolve/[^/]+/(.*)", self.resolve),
        )
        for pattern, handle in routes:
            if match := re.fullmatch(pattern, path):
                found = handle(
                    *(unquote(part) if part else part for part in match.groups()), headers=headers, body=body
                )
                if isinstance(found, tuple):
                    return found
                return 200, {"Content-Type": "application/json"}, json.dumps(found).encode()
        return 404, {"X-Error-Code": "EntryNotFound"}, b""

    def files(self, kind, name):
        return self.repositories[kind, name][-1]

    def sha(self, kind, name):
        return f"{len(self.repositories[kind, name]):040x}"

    def missing(self):
        return 404, {"X-Error-Code": "RepoNotFound"}, b""

    def create(self, headers, body):
        asked = json.loads(body)
        kind, name = asked.get("type", "model") + "s", f"{asked['organization']}/{asked['name']}"
        self.repositories.setdefault((kind, name), [{}])
        return {"url": f"{self.url}/{name}", "name": name, "id": name}

    def info(self, kind, name, headers, body):
        if (kind, name) not in self.repositories:
            return self.missing()
        siblings = [{"rfilename": path} for path in self.files(kind, name)]
        return {
            "id": name,
            "sha": self.sha(kind, name),
            "siblings": siblings,
            "private": False,
            "tags": [],
            "downloads": 0,
        }

    def preupload(self, kind, name, headers, body):
        files = json.loads(body)["files"]
        large = (".safetensors", ".parquet")
        return {
            "files": [
                {
                    "path": f["path"],
                    "uploadMode": "lfs" if f["path"].endswith(large) else "regular",
                    "shouldIgnore": False,
                }
                for f in files
            ]
        }

    def batch(self, headers, body):
        objects = [
            {
                "oid": one["oid"],
                "size": one["size"],
                "actions": {"upload": {"href": f"{self.url}/objects/{one['oid']}", "header": {}}},
            }
            for one in json.loads(body)["objects"]
        ]
        return {"transfer": "basic", "objects": objects}

    def store(self, digest, headers, body):
        assert hashlib.sha256(body).hexdigest() == digest
        self.objects[digest] = body
        return {}

    def commit(self, kind, name, headers, body):
        files = dict(self.files(kind, name))
        for line in body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
        self.repositories[kind, name].append(files)
        return {
            "commitOid": self.sha(kind, name),
            "commitUrl": f"{self.url}/{name}/commit/{self.sha(kind, name)}",
        }

    def entry(self, path, content):
        return {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}

    def tree(self, kind, name, folder, headers, body):
        if (kind, name) not in self.repositories:
            return self.missing()
        found, folders = [], set()
        for path, content in self.files(kind, name).items():
            prefix = f"{folder}/" if folder else ""
            if path.startswith(prefix):
                rest = path.removeprefix(prefix)
                if "/" in rest:
                    folders.add(prefix + rest.split("/")[0])
                else:
                    found.append(self.entry(path, content))
        return [*found, *({"type": "directory", "path": path, "oid": NULL} for path in sorted(folders))]

    def paths_info(self, kind, name, headers, body):
        if (kind, name) not in self.repositories:
            return self.missing()
        if headers.get("Content-Type", "").startswith("application/json"):
            asked = json.loads(body)["paths"]
        else:
            asked = [unquote(part.partition("=")[2]) for part in body.decode().split("&") if part.startswith("paths")]
        files = self.files(kind, name)
        return [self.entry(path, files[path]) for path in asked if path in files]

    def resolve(self, datasets, name, path, headers, body):
        kind = "datasets" if datasets else "models"
        if (kind, name) not in self.repositories:
            return self.missing()
        content = self.files(kind, name).get(path)
        if content is None:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        facts = {
            "X-Repo-Commit": self.sha(kind, name),
            "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "Accept-Ranges": "bytes",
        }
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("Range") or ""):
            first, last = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1)
            facts["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            return 206, facts, content[first : last + 1]
        return 200, facts | {"Content-Length": str(len(content))}, content
