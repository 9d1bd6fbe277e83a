// A member of a share group by franz-go; see ../../../groups/test_share_members.py for what it is told and tells.
package main

import (
	"context"
	"os"
	"strings"

	"broker-sim/franz-go-members/telling"

	"github.com/twmb/franz-go/pkg/kgo"
)

// verdict returns what is said of a delivery.
func verdict(record *kgo.Record) kgo.AckStatus {
	switch {
	case record.Offset%5 == 0:
		return kgo.AckReject
	case record.Offset%3 == 0 && record.DeliveryCount() == 1:
		return kgo.AckRelease
	default:
		return kgo.AckAccept
	}
}

func main() {
	arguments := os.Args[1:]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(arguments[0], ",")...),
		kgo.ShareGroup(arguments[1]),
		kgo.ConsumeTopics(arguments[2]),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if err := results.Error(); err != nil {
				panic(err)
			}
		}),
	)
	if err != nil {
		panic(err)
	}
	told := telling.UntilTold()
	for told.Err() == nil {
		client.PollFetches(told).EachRecord(func(record *kgo.Record) {
			record.Ack(verdict(record))
			telling.Tell(`{"event":"record","partition":%d,"offset":%d,"delivery":%d}`,
				record.Partition, record.Offset, record.DeliveryCount())
		})
		if err := client.FlushAcks(context.Background()); err != nil {
			panic(err)
		}
	}
	client.Close()
	telling.Tell(`{"event":"left"}`)
}
