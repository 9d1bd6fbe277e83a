//! A program of rskafka on several threads: 20 records, then an idle minute.

use std::time::{Duration, Instant};

use chrono::Utc;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

#[tokio::main]
async fn main() {
    let servers = std::env::var("KAFKA_BOOTSTRAP_SERVERS").unwrap();
    let client = ClientBuilder::new(servers.split(',').map(str::to_owned).collect()).build().await.unwrap();
    let orders = client.partition_client("orders", 0, UnknownTopicHandling::Retry).await.unwrap();
    for number in 0..20 {
        let value = Some(number.to_string().into_bytes());
        let record = Record { key: None, value, headers: Default::default(), timestamp: Utc::now() };
        orders.produce(vec![record], Compression::NoCompression).await.unwrap();
    }
    let (records, high_watermark) = orders.fetch_records(0, 1..1_000_000, 1_000).await.unwrap();
    let start = Instant::now();
    let poll = tokio::spawn(async move { orders.fetch_records(high_watermark, 1..1_000_000, 30_000).await });
    poll.await.unwrap().unwrap();
    std::thread::spawn(|| std::thread::sleep(Duration::from_secs(30))).join().unwrap();
    println!("{} records, {} s idle", records.len(), start.elapsed().as_secs_f64().round());
}
