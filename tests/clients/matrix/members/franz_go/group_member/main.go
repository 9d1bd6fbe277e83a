// A member of a group by franz-go; see ../../../groups/conftest.py for what it is told and what it tells.
package main

import (
	"context"
	"os"
	"strings"

	"broker-sim/franz-go-members/telling"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	arguments := os.Args[1:]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(arguments[0], ",")...),
		kgo.ConsumerGroup(arguments[1]),
		kgo.ConsumeTopics(arguments[2]),
		kgo.SessionTimeout(telling.Milliseconds(arguments[3])),
		kgo.HeartbeatInterval(telling.Milliseconds(arguments[4])),
		kgo.Balancers(telling.Balancers[arguments[5]]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(telling.Partitions("assigned")),
		kgo.OnPartitionsRevoked(telling.Partitions("revoked")),
		kgo.OnPartitionsLost(telling.Partitions("revoked")),
	)
	if err != nil {
		panic(err)
	}
	told := telling.UntilTold()
	for told.Err() == nil {
		client.PollFetches(told).EachRecord(func(record *kgo.Record) {
			telling.Tell(`{"event":"record","partition":%d,"offset":%d}`, record.Partition, record.Offset)
			if err := client.CommitRecords(context.Background(), record); err == nil {
				telling.Tell(`{"event":"committed","partition":%d,"offset":%d}`, record.Partition, record.Offset+1)
			}
		})
	}
	client.Close()
	telling.Tell(`{"event":"left"}`)
}
