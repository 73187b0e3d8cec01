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


class Repository(list):
    """Commits, each a dictionary path -> bytes; a branch or tag is the number of its commit."""

    def __init__(self, files, private=False):
        super().__init__([files])
        self.private = private
        self.branches, self.tags = {"main": 0}, {}

    def number(self, revision):
        """Of the commit that a branch, a tag or a hash means; None if there is none."""
        names = self.branches | self.tags | {self.sha(number): number for number in range(len(self))}
        return names.get(revision)

    @staticmethod
    def sha(number):
        return f"{number + 1:040x}"


class Hub:
    """``repositories[(type, id)]`` is a list of commits; with a token, writing and private things need it.

    ``broken`` is a pattern of "METHOD path" and how often such a request fails.
    """

    def __init__(self, token=None):
        self.repositories = {}
        self.objects = {}
        self.requests = []
        self.token = token
        self.broken = None
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
                if len(body) < size:  # of a client that was killed while it sent: half a commit is none
                    self.close_connection = True
                    return
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

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - names of the base class

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
        self.repositories[kind, name] = Repository(files)

    def settings(self, home, token="hf_secret"):
        """The environment in which the clients speak to this hub and to nobody else."""
        return {
            "HF_ENDPOINT": self.url,
            "HF_TOKEN": token,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "NO_PROXY": "*",
        }

    # Answers ------------------------------------------------------------------------------------

    def answer(self, method, target, headers, body):
        path, query = urlsplit(target).path, urlsplit(target).query
        if self.broken and self.broken[1] and re.search(self.broken[0], f"{method} {path}"):
            self.broken = (self.broken[0], self.broken[1] - 1)
            return 507, {}, b"no space left"  # a failure that the clients do not wait out
        reading = method in ("GET", "HEAD") or path.startswith("/objects/")
        if self.token and not reading and headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {}, b"Invalid username or password."
        repository = r"/api/(models|datasets)/([^/]+/[^/]+)"
        routes = (
            (r"/api/repos/create", self.create),
            (r"/api/validate-yaml", lambda headers, body: {"errors": [], "warnings": []}),
            (repository + r"/preupload/([^/]+)", self.preupload),
            (repository + r"/commit/([^/]+)", self.commit),
            (repository + r"/branch/([^/]+)", self.branch),
            (repository + r"/tag/([^/]+)", self.untag if method == "DELETE" else self.tag),
            (repository + r"/refs", self.refs),
            (
                repository + r"/tree/([^/]+)(?:/(.*))?",
                self.whole_tree if "recursive=true" in query.lower() else self.tree,
            ),
            (repository + r"/paths-info/([^/]+)", self.paths_info),
            (repository + r"(?:/revision/([^/]+))?", self.info),
            (r"/(?:datasets/)?[^/]+/[^/]+\.git/info/lfs/objects/batch", self.batch),
            (r"/objects/([0-9a-f]{64})", self.store),
            (r"/(datasets/)?([^/]+/[^/]+)/resolve/([^/]+)/(.*)", self.resolve),
        )
        for pattern, handle in routes:
            if match := re.fullmatch(pattern, path):
                parts = [unquote(part) if part else part for part in match.groups()]
                if len(parts) > 1 and handle != self.refs and (problem := self.problem(parts, headers)):
                    return problem
                found = handle(*parts, headers=headers, body=body)
                if isinstance(found, tuple):
                    return found
                return 200, {"Content-Type": "application/json"}, json.dumps(found).encode()
        return 404, {"X-Error-Code": "EntryNotFound"}, b""

    def problem(self, parts, headers):
        """Why a request for (type, id, revision, …) has no answer."""
        kind = "datasets" if parts[0] in ("datasets", "datasets/") else "models"
        repository = self.repositories.get((kind, parts[1]))
        stranger = self.token and headers.get("Authorization") != f"Bearer {self.token}"
        if repository is None or (repository.private and stranger):
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        return None

    def files(self, kind, name, revision):
        """The files of a revision; None if there is no such revision."""
        repository = self.repositories[kind, name]
        number = repository.number(revision or "main")
        return None if number is None else repository[number]

    def no_revision(self):
        return 404, {"X-Error-Code": "RevisionNotFound"}, b""

    def create(self, headers, body):
        asked = json.loads(body)
        kind, name = asked.get("type", "model") + "s", f"{asked['organization']}/{asked['name']}"
        facts = {"url": f"{self.url}/{name}", "name": name, "id": name}
        if (kind, name) in self.repositories:
            return 409, {"Content-Type": "application/json"}, json.dumps(facts).encode()
        private = bool(asked.get("private")) or asked.get("visibility") == "private"
        self.repositories[kind, name] = Repository({}, private)
        return facts

    def info(self, kind, name, revision, headers, body):
        repository = self.repositories[kind, name]
        number = repository.number(revision or "main")
        if number is None:
            return self.no_revision()
        return {
            "id": name,
            "sha": repository.sha(number),
            "siblings": [{"rfilename": path} for path in repository[number]],
            "private": repository.private,
            "tags": [],
            "downloads": 0,
        }

    def preupload(self, kind, name, revision, headers, body):
        there = self.files(kind, name, revision)
        if there is None:
            return self.no_revision()
        return {
            "files": [
                {
                    "path": asked["path"],
                    "uploadMode": "lfs" if large(asked["path"]) else "regular",
                    "shouldIgnore": False,
                    **({"oid": oid(asked["path"], there[asked["path"]])} if asked["path"] in there else {}),
                }
                for asked in json.loads(body)["files"]
            ]
        }

    def batch(self, headers, body):
        objects = [
            {
                "oid": one["oid"],
                "size": one["size"],
                **(
                    {}
                    if one["oid"] in self.objects
                    else {"actions": {"upload": {"href": f"{self.url}/objects/{one['oid']}", "header": {}}}}
                ),
            }
            for one in json.loads(body)["objects"]
        ]
        return {"transfer": "basic", "objects": objects}

    def store(self, digest, headers, body):
        assert hashlib.sha256(body).hexdigest() == digest
        self.objects[digest] = body
        return {}

    def commit(self, kind, name, branch, headers, body):
        repository = self.repositories[kind, name]
        if branch not in repository.branches:
            return self.no_revision()
        parent = repository.branches[branch]
        files = dict(repository[parent])
        for line in body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header" and value.get("parentCommit") not in (None, repository.sha(parent)):
                return 412, {}, b"A commit has happened since."
            if entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
            elif entry["key"] == "deletedFile":
                del files[value["path"]]
        repository.append(files)
        repository.branches[branch] = len(repository) - 1
        sha = repository.sha(len(repository) - 1)
        return {"commitOid": sha, "commitUrl": f"{self.url}/{name}/commit/{sha}"}

    def branch(self, kind, name, branch, headers, body):
        repository = self.repositories[kind, name]
        if branch in repository.branches:
            return 409, {}, b"Reference already exists"
        repository.branches[branch] = repository.number(
            (json.loads(body or b"{}") or {}).get("startingPoint") or "main"
        )
        return {}

    def tag(self, kind, name, revision, headers, body):
        repository, tag = self.repositories[kind, name], json.loads(body)["tag"]
        if tag in repository.tags:
            return 409, {}, b"Tag already exists"
        repository.tags[tag] = repository.number(revision)
        return {}

    def untag(self, kind, name, tag, headers, body):
        del self.repositories[kind, name].tags[tag]
        return {}

    def refs(self, kind, name, headers, body):
        if problem := self.problem((kind, name), headers):
            return problem
        repository = self.repositories[kind, name]
        return {
            what: [
                {"name": ref, "ref": f"refs/{folder}/{ref}", "targetCommit": repository.sha(number)}
                for ref, number in getattr(repository, what).items()
            ]
            for what, folder in (("branches", "heads"), ("tags", "tags"))
        } | {"converts": []}

    def entry(self, path, content):
        facts = {"type": "file", "path": path, "size": len(content), "oid": oid(path, content)}
        if large(path):
            facts["lfs"] = {"oid": oid(path, content), "size": len(content), "pointerSize": 134}
        return facts

    def tree(self, kind, name, revision, folder, headers, body):
        files = self.files(kind, name, revision)
        if files is None:
            return self.no_revision()
        prefix = f"{folder}/" if folder else ""
        inside = {path: content for path, content in files.items() if path.startswith(prefix)}
        if folder and not inside:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        folders = sorted({prefix + path.removeprefix(prefix).split("/")[0] for path in inside} - set(inside))
        found = [self.entry(path, content) for path, content in inside.items() if "/" not in path.removeprefix(prefix)]
        return [*found, *({"type": "directory", "path": path, "oid": NULL} for path in folders)]

    def whole_tree(self, kind, name, revision, folder, headers, body):
        files = self.files(kind, name, revision)
        if files is None:
            return self.no_revision()
        prefix = f"{folder}/" if folder else ""
        return [self.entry(path, content) for path, content in files.items() if path.startswith(prefix)]

    def paths_info(self, kind, name, revision, headers, body):
        files = self.files(kind, name, revision)
        if files is None:
            return self.no_revision()
        if headers.get("Content-Type", "").startswith("application/json"):
            asked = json.loads(body)["paths"]
        else:
            asked = [unquote(part.partition("=")[2]) for part in body.decode().split("&") if part.startswith("paths")]
        return [self.entry(path, files[path]) for path in asked if path in files]

    def resolve(self, datasets, name, revision, path, headers, body):
        kind = "datasets" if datasets else "models"
        files = self.files(kind, name, revision)
        if files is None:
            return self.no_revision()
        repository = self.repositories[kind, name]
        facts = {"X-Repo-Commit": repository.sha(repository.number(revision)), "Accept-Ranges": "bytes"}
        content = files.get(path)
        if content is None:
            return 404, facts | {"X-Error-Code": "EntryNotFound"}, b""
        facts["ETag"] = f'"{oid(path, content)}"'
        if large(path):
            facts |= {"X-Linked-Etag": facts["ETag"], "X-Linked-Size": str(len(content))}
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("Range") or ""):
            first, last = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1)
            facts["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
            return 206, facts, content[first : last + 1]
        return 200, facts | {"Content-Length": str(len(content))}, content


def large(path):
    """Whether a file goes to large file storage."""
    return path.endswith((".safetensors", ".parquet", ".png"))


def oid(path, content):
    """The id of a file's content: SHA-256 in large file storage, that of a git blob otherwise."""
    if large(path):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
