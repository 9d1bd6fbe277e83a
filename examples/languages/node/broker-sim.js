import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Start a cluster, or take that of `broker-sim chaos -- npm test`. */
export async function startKafka() {
  const { KAFKA_BOOTSTRAP_SERVERS: servers, BROKER_SIM_CONTROL: control } = process.env;
  if (control) return new Kafka(servers, control);
  const cluster = spawn("broker-sim", ["run", "--control-port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(cluster.stdout), "line");
  const ready = JSON.parse(line);
  return new Kafka(ready.bootstrap_servers, ready.control, cluster);
}

class Kafka {
  constructor(servers, control, cluster) {
    this.brokers = servers.split(",");
    this.control = control;
    this.cluster = cluster;
  }

  /** Call a verb of the control port; returns the answer. */
  async request(method, path, body) {
    const headers = body ? { "Content-Type": "application/json" } : {};
    const answer = await fetch(this.control + path, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  }

  /** Bring the cluster back to how it was started; under chaos the faults go on. */
  async reset() {
    if (this.cluster) await this.request("POST", "/reset");
  }

  async stop() {
    if (!this.cluster) return;
    this.cluster.kill();
    await once(this.cluster, "exit");
  }
}
