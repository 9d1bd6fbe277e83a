use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chrono::Utc;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;
use serde_json::{json, Value};
use tokio::time::timeout;

/// A cluster of one test: `broker-sim run`, ended when it is dropped. Tests may run beside each other.
struct Kafka {
    process: Child,
    ready: Value,
}

impl Kafka {
    fn start() -> Kafka {
        let mut process = Command::new("broker-sim")
            .args(["run", "--control-port", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("broker-sim is on the PATH");
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Kafka { process, ready: serde_json::from_str(&line).unwrap() }
    }

    /// Call a verb of the control port; returns the answer.
    fn request(&self, method: &str, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.ready["control"].as_str().unwrap());
        let call = ureq::request(method, &url).set("Content-Type", "application/json");
        let answer = if body.is_null() { call.call() } else { call.send_string(&body.to_string()) };
        serde_json::from_str(&answer.unwrap().into_string().unwrap()).unwrap()
    }

    async fn partition(&self, topic: &str) -> PartitionClient {
        let servers = self.ready["bootstrap_servers"].as_str().unwrap();
        let client = ClientBuilder::new(servers.split(',').map(str::to_owned).collect()).build().await.unwrap();
        client.partition_client(topic, 0, UnknownTopicHandling::Error).await.unwrap()
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn order(text: &str) -> Vec<Record> {
    let value = Some(text.as_bytes().to_vec());
    vec![Record { key: None, value, headers: Default::default(), timestamp: Utc::now() }]
}

#[tokio::test]
async fn order_waits_for_every_replica() {
    let kafka = Kafka::start();
    kafka.request("POST", "/topics", json!({"name": "orders", "replication_factor": 3}));
    let leader = kafka.request("GET", "/topics/orders/partitions/0", Value::Null)["leader"].as_i64().unwrap();
    let follower = format!("/brokers/{}", leader % 3 + 1);
    let orders = kafka.partition("orders").await;
    orders.produce(order("two pears"), Compression::NoCompression).await.unwrap();
    kafka.request("POST", &format!("{follower}/pause"), Value::Null);
    let mut sent = Box::pin(orders.produce(order("three apples"), Compression::NoCompression));
    assert!(timeout(Duration::from_millis(500), &mut sent).await.is_err(), "it waits for the paused replica");
    kafka.request("POST", &format!("{follower}/resume"), Value::Null);
    assert_eq!(sent.await.unwrap(), vec![1]);
}
