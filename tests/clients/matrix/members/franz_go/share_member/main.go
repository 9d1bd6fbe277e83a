// A member of a share group by franz-go, told the bootstrap servers, group, topic and number of records.
//
// It releases each third record when it comes the first time, rejects each fifth, and accepts all others.
// Tells each delivery, and ends when all records are done.
package main

import (
	"context"
	"os"
	"strconv"
	"strings"

	"broker-sim/franz-go-members/telling"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
	left, err := strconv.Atoi(arguments[3])
	if err != nil {
		panic(err)
	}
	for left > 0 {
		client.PollFetches(context.Background()).EachRecord(func(record *kgo.Record) {
			telling.Tell(`{"event":"delivery","offset":%d,"count":%d}`, record.Offset, record.DeliveryCount())
			switch {
			case record.Offset%5 == 0:
				record.Ack(kgo.AckReject)
			case record.Offset%3 == 0 && record.DeliveryCount() == 1:
				record.Ack(kgo.AckRelease)
				left++
			default:
				record.Ack(kgo.AckAccept)
			}
			left--
		})
		if err := client.FlushAcks(context.Background()); err != nil {
			panic(err)
		}
	}
	client.Close()
	telling.Tell(`{"event":"left"}`)
}
