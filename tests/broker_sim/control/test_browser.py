"""A page of another site, open in a browser on the same machine, cannot control the cluster."""

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tools.browsers import REMEDY, find_browser

BROWSER = find_browser()
TIMEOUT_S = 60
PAGE = """<!doctype html><title>evil</title><body><script>
const control = "%s";
const tries = [
  () => fetch(control + "/brokers/1/pause", {method: "POST", mode: "no-cors"}),
  () => fetch(control + "/brokers/1/pause", {method: "POST", mode: "no-cors", body: "{}"}),
  () => fetch(control + "/brokers/1/pause",
    {method: "POST", body: "{}", headers: {"Content-Type": "application/json"}}),
  () => new Promise(done => {
    const frame = document.createElement("iframe");
    frame.name = "answer";
    document.body.append(frame);
    const form = document.createElement("form");
    form.method = "POST";
    form.action = control + "/brokers/1/pause";
    form.target = "answer";
    document.body.append(form);
    frame.onload = done;
    form.submit();
  }),
  () => Promise.resolve(navigator.sendBeacon(control + "/brokers/1/pause")),
];
(async () => {
  for (const attempt of tries) { try { await attempt(); } catch (error) {} }
  await fetch("/done", {method: "POST"});
})();
</script>"""


@pytest.fixture
def page(control_url):
    """Serve the page from another origin; returns its address and an event set when it is done."""
    done = threading.Event()

    class Site(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer((PAGE % control_url).encode())

        def do_POST(self):
            done.set()
            self._answer(b"")

        def _answer(self, body):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}/", done
        server.shutdown()
        thread.join()


@pytest.mark.skipif(BROWSER is None, reason=REMEDY)
def test_page_in_a_browser_cannot_pause_a_broker(page, cluster, tmp_path):
    url, done = page
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", f"--user-data-dir={tmp_path}",
        "--remote-debugging-port=0", url,
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            assert done.wait(TIMEOUT_S), "the browser did not run the page to its end"
        finally:
            browser.terminate()
    assert [broker.state for broker in cluster.status().brokers] == ["running"] * 3
