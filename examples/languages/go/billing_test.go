package shop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestOrderWaitsForEveryReplica(t *testing.T) {
	fresh(t)
	request(t, "POST", "/topics", `{"name": "orders", "replication_factor": 3}`)
	leader := int(request(t, "GET", "/topics/orders/partitions/0", "")["leader"].(float64))
	follower := fmt.Sprintf("/brokers/%d", leader%3+1)
	producer := client(t)
	if err := producer.ProduceSync(context.Background(), kgo.StringRecord("two pears")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	request(t, "POST", follower+"/pause", "")
	sent := make(chan error, 1)
	producer.Produce(context.Background(), kgo.StringRecord("three apples"), func(_ *kgo.Record, err error) { sent <- err })
	select {
	case err := <-sent:
		t.Fatal("it did not wait for the paused replica:", err)
	case <-time.After(500 * time.Millisecond):
	}
	request(t, "POST", follower+"/resume", "")
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func TestRefusedOrderIsAnError(t *testing.T) {
	fresh(t)
	request(t, "POST", "/topics", `{"name": "orders"}`)
	request(t, "POST", "/inject", `{"api": "Produce", "error": "MESSAGE_TOO_LARGE", "count": 1}`)
	err := client(t).ProduceSync(context.Background(), kgo.StringRecord("three apples")).FirstErr()
	if !errors.Is(err, kerr.MessageTooLarge) {
		t.Fatal(err)
	}
}

func client(t *testing.T) *kgo.Client {
	t.Helper()
	made, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(kafka.BootstrapServers, ",")...), kgo.DefaultProduceTopic("orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}
