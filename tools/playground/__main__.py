"""Builds the site: `make playground`, or `python -m tools.playground [--serve [PORT]]`.

Pyodide and the editor come from npm, in the versions of package.json; the packages from this environment. What a search
imports, of the standard library too, is byte code by the very Python that runs it: it is ready two seconds sooner.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

from broker_sim.chaos.faults.kinds import KINDS
from tools.playground.lesson_files import lesson_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/playground"
SITE = ROOT / "out/playground"
STANDARD_LIBRARY = "python_stdlib.zip"
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", STANDARD_LIBRARY, "pyodide-lock.json")
OWN = {"broker_sim": ROOT / "broker_sim", "broker_sim_purgatory": ROOT / "purgatory/broker_sim_purgatory"}
CLIENT = ("aiokafka", "async-timeout", "packaging", "typing-extensions")
"""aiokafka and what it needs, in pure Python: its own C extensions have counterparts there."""
NOT_RUN = {".pyi", ".pyc", ".so", ".c", ".h"}
"""Endings of files that no package needs there; but `__init__.pyi` lists broker_sim's names."""
NOT_NEEDED = re.compile(r"broker_sim/cli/|packaging/(?!__init__|version|_structures)")
"""Modules that nothing imports there: commands, and what a version number does not need of `packaging`."""
NOT_IN_BROWSERS = re.compile(
    r"multiprocessing/|_pyrepl/|wsgiref/|xmlrpc/|xml/(dom|sax)/|http/(server|cookiejar)\.py$"
    r"|(doctest|pydoc|pdb|bdb|imaplib|poplib|smtplib|ftplib|mailbox|pickletools|optparse|_pyio|_pydatetime)\.py$"
    r"|encodings/(?!__init__|aliases|utf_|ascii|latin_1|iso8859_1[.5]|cp437|cp1252|idna|punycode|raw_|unicode_|charmap|hex_|base64)"
)
"""Modules of the standard library that cannot work there, that C replaces, or that no Kafka client uses."""
EPOCH = (2026, 1, 1, 0, 0, 0)
PAGE = ROOT / "broker_sim/page/static"
PORT = 8765


def own_files() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the product's packages, and of `python/`."""
    for name, folder in OWN.items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and (path.suffix not in NOT_RUN or path == folder / "__init__.pyi"):
                yield f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes()
    for path in sorted((HERE / "python").glob("*.py")):
        yield path.name, path.read_bytes()


def client_files() -> Iterator[tuple[str, bytes]]:
    """Yield the pure Python files of aiokafka and of what it needs."""
    for name in CLIENT:
        for file in distribution(name).files or ():
            if file.suffix == ".py" and not file.as_posix().startswith(".."):
                yield file.as_posix(), file.read_binary()


def all_files() -> dict[str, bytes]:
    """Return all files of the packages that the page imports, by path."""
    files = {**dict(client_files()), **dict(own_files())}
    return {name: data for name, data in files.items() if not NOT_NEEDED.match(name)}


def lessons() -> list[dict[str, Any]]:
    """Return the lessons as lessons.toml has them."""
    read: list[dict[str, Any]] = tomllib.loads((HERE / "lessons/lessons.toml").read_text("utf-8"))["lesson"]
    return read


def files_of_lessons() -> dict[str, bytes]:
    """Return the files that the page loads with its first lesson."""
    return lesson_files([part["scenario"] for lesson in lessons() for part in lesson["parts"]])


def digest_of(files: dict[str, bytes]) -> str:
    """Return a hash of files, by which a built site is told from one of other sources."""
    digest = sha256()
    for name, data in sorted(files.items()):
        digest.update(b"%s %d " % (name.encode(), len(data)) + data)
    return digest.hexdigest()


def digest_now() -> str:
    """Return the hash of all that the site is made of, as it is now; what lessons have recorded is not in it."""
    folders = (HERE / "site", HERE / "lessons")
    files = {
        path.relative_to(HERE).as_posix(): path.read_bytes()
        for folder in folders
        for path in folder.iterdir()
        if path.is_file()
    }
    return digest_of(all_files() | files)


def is_built() -> bool:
    """Whether the site is there, made of what is here now."""
    sizes = SITE / "sizes.json"
    return sizes.is_file() and json.loads(sizes.read_text("utf-8"))["sources"] == digest_now()


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    """Write a zip that depends on nothing but its files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)


def install() -> Path:
    """Install what package.json names, unless it is there; return the folder of the packages."""
    pinned = (HERE / "package.json").read_text("utf-8")
    stamp = BUILD / "package.json"
    if not (BUILD / "node_modules").is_dir() or not stamp.is_file() or stamp.read_text("utf-8") != pinned:
        BUILD.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(BUILD / "node_modules", ignore_errors=True)
        (BUILD / "package-lock.json").unlink(missing_ok=True)
        shutil.copy(HERE / "package.json", stamp)
        try:
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=BUILD, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            stamp.unlink()
            sys.exit(f"npm install failed ({error}): the site needs Node 20 with npm, and a package registry")
    return BUILD / "node_modules"


def examples() -> dict[str, str]:
    """Return the applications of examples/chaos by name, but those with FastStream, which a tab does not have."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted((ROOT / "examples/chaos").glob("*.py"))}
    return {name: text for name, text in texts.items() if name != "conftest" and "faststream" not in text}


def build() -> None:
    """Build the site anew."""
    packages = install()
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(HERE / "site", SITE)
    shutil.copytree(PAGE, SITE / "page", ignore=shutil.ignore_patterns("index.html"))
    for script in (SITE / "page").glob("*.js"):  # there an import map says where `page/` is
        script.write_text(script.read_text("utf-8").replace('from "page/', 'from "./'), "utf-8")
    (SITE / "pyodide").mkdir()
    for name in PYODIDE:
        shutil.copy(packages / "pyodide" / name, SITE / "pyodide" / name)
    with zipfile.ZipFile(packages / "pyodide" / STANDARD_LIBRARY) as library:
        kept = {name: library.read(name) for name in library.namelist() if not NOT_IN_BROWSERS.match(name)}
    write_zip(SITE / "pyodide" / STANDARD_LIBRARY, kept)
    shutil.copytree(HERE / "site", BUILD / "site", dirs_exist_ok=True)
    options = ("--bundle", "--minify", "--format=esm", "--legal-comments=eof", "--log-level=warning")
    esbuild = str(packages / "esbuild/bin/esbuild")
    subprocess.run([esbuild, "site/editor.js", *options, f"--outfile={SITE / 'editor.js'}"], cwd=BUILD, check=True)
    kinds = [{"name": name, "on": kind.on, "drawn": kind.weight > 0} for name, kind in KINDS.items()]
    titles = [{name: lesson[name] for name in ("name", "title", "about")} for lesson in lessons()]
    facts = {"examples": examples(), "kinds": kinds, "lessons": titles}
    (SITE / "examples.json").write_text(json.dumps(facts), "utf-8")
    write_zip(SITE / "packages.zip", all_files())
    write_zip(SITE / "lessons.zip", files_of_lessons())
    subprocess.run(["node", str(HERE / "compile.mjs"), str(SITE)], check=True)
    python = [f"pyodide/{name}" for name in PYODIDE if not name.endswith(".mjs")]
    size = sum((SITE / name).stat().st_size for name in (*python, "packages.zip"))
    (SITE / "sizes.json").write_text(json.dumps({"python": size, "sources": digest_now()}), "utf-8")
    total = sum(path.stat().st_size for path in SITE.rglob("*") if path.is_file())
    print(
        f"{SITE.relative_to(ROOT)}: {total / 1e6:.1f} MB of static files; python -m tools.playground --serve shows them"
    )


class _Handler(SimpleHTTPRequestHandler):
    """Serves the site quietly; the browser asks again whether a file is still the same."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def log_message(self, *_: object) -> None:
        """Do nothing."""


def make_server(port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the built site on loopback, on a free port for 0."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, directory=str(SITE)))


def serve(port: int) -> None:
    """Serve the site on loopback until Ctrl-C; build it if it is not there, or made of other sources."""
    if not is_built():
        build()
    with make_server(port) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


def main() -> None:
    """Build the site, or serve it."""
    parser = argparse.ArgumentParser(prog="python -m tools.playground", description=__doc__)
    text = f"Serve the site on this port of loopback [default: {PORT}]."
    parser.add_argument("--serve", type=int, nargs="?", const=PORT, metavar="PORT", help=text)
    port = parser.parse_args().serve
    if port is None:
        build()
    else:
        serve(port)


if __name__ == "__main__":
    main()
