// Sends orders and delivers each at least once, as a group would; exit code 1 if one is missing in the end.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	orders = 60
	limit  = 120 * time.Second
)

func main() {
	servers := kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BOOTSTRAP_SERVERS"), ",")...)
	within, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	producer, err := kgo.NewClient(servers, kgo.DefaultProduceTopic("orders"))
	check(err)
	for order := range orders {
		check(producer.ProduceSync(within, kgo.StringRecord(strconv.Itoa(order))).FirstErr())
	}
	producer.Close()
	consumer, err := kgo.NewClient(
		servers,
		kgo.ConsumerGroup("shop"),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(6*time.Second),
	)
	check(err)
	delivered, again := map[string]bool{}, 0
	for len(delivered) < orders && within.Err() == nil {
		for _, record := range consumer.PollRecords(within, 1).Records() {
			time.Sleep(400 * time.Millisecond)
			if delivered[string(record.Value)] {
				again++
			}
			delivered[string(record.Value)] = true
			if err := consumer.CommitRecords(within, record); err != nil {
				fmt.Println("go: a commit failed:", err)
			}
		}
	}
	consumer.Close()
	fmt.Printf("go: %d of %d orders delivered, %d of them again\n", len(delivered), orders, again)
	if len(delivered) < orders {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
