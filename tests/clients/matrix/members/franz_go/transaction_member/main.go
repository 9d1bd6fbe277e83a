// Transforms in transactions by franz-go; see ../../../transactions/conftest.py for what it is told and tells.
package main

import (
	"context"
	"os"
	"strings"

	"broker-sim/franz-go-members/telling"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	told := telling.UntilTold()
	for told.Err() == nil {
		if err := transformAll(told, os.Args[1:]); err != nil {
			telling.Tell(`{"event":"aborted","error":%q}`, err)
		}
	}
	telling.Tell(`{"event":"left"}`)
}

// transformAll ends when it is told to, or with an error when another client is needed.
func transformAll(told context.Context, arguments []string) error {
	sink, transactionalID := arguments[6], arguments[7]
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(arguments[0], ",")...),
		kgo.ConsumerGroup(arguments[1]),
		kgo.ConsumeTopics(arguments[2]),
		kgo.SessionTimeout(telling.Milliseconds(arguments[3])),
		kgo.HeartbeatInterval(telling.Milliseconds(arguments[4])),
		kgo.Balancers(telling.Balancers[arguments[5]]),
		kgo.TransactionalID(transactionalID),
		kgo.TransactionTimeout(telling.Milliseconds(arguments[8])),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DefaultProduceTopic(sink),
		kgo.OnPartitionsAssigned(telling.Partitions("assigned")),
		kgo.OnPartitionsRevoked(telling.Partitions("revoked")),
		kgo.OnPartitionsLost(telling.Partitions("revoked")),
	)
	if err != nil {
		return err
	}
	defer session.Close()
	background := context.Background()
	for told.Err() == nil {
		fetches := session.PollFetches(told)
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return err
		}
		hold := false
		fetches.EachRecord(func(record *kgo.Record) {
			value := string(record.Value)
			hold = hold || value == "hold "+transactionalID
			session.Produce(background, kgo.StringRecord("done "+value), nil)
		})
		if hold {
			if err := session.Client().Flush(background); err != nil {
				return err
			}
			telling.Tell(`{"event":"open"}`)
			select {}
		}
		committed, err := session.End(background, kgo.TryCommit)
		if err != nil {
			return err
		}
		event := map[bool]string{true: "committed", false: "aborted"}[committed]
		telling.Tell(`{"event":"%s","records":%d}`, event, fetches.NumRecords())
	}
	return nil
}
