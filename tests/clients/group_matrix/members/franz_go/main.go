// A member of a group by franz-go; see ../../conftest.py for what it is told and what it tells.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var telling sync.Mutex

func tell(format string, values ...any) {
	telling.Lock()
	defer telling.Unlock()
	fmt.Printf(format+"\n", values...)
}

func tellPartitions(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		numbers := []int{}
		for _, of := range partitions {
			for _, one := range of {
				numbers = append(numbers, int(one))
			}
		}
		sort.Ints(numbers)
		texts := []string{}
		for _, number := range numbers {
			texts = append(texts, strconv.Itoa(number))
		}
		tell(`{"event":"%s","partitions":[%s]}`, event, strings.Join(texts, ","))
	}
}

func milliseconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

func main() {
	arguments := os.Args[1:]
	session := milliseconds(arguments[3])
	heartbeat := milliseconds(arguments[4])
	balancer := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}[arguments[5]]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(arguments[0], ",")...),
		kgo.ConsumerGroup(arguments[1]),
		kgo.ConsumeTopics(arguments[2]),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(heartbeat),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(tellPartitions("assigned")),
		kgo.OnPartitionsRevoked(tellPartitions("revoked")),
		kgo.OnPartitionsLost(tellPartitions("revoked")),
	)
	if err != nil {
		panic(err)
	}
	told, leave := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		leave()
	}()
	for told.Err() == nil {
		client.PollFetches(told).EachRecord(func(record *kgo.Record) {
			tell(`{"event":"record","partition":%d,"offset":%d}`, record.Partition, record.Offset)
			if err := client.CommitRecords(context.Background(), record); err == nil {
				tell(`{"event":"committed","partition":%d,"offset":%d}`, record.Partition, record.Offset+1)
			}
		})
	}
	client.Close()
	tell(`{"event":"left"}`)
}
