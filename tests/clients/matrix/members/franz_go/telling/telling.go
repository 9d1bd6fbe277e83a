// Package telling has what members of all kinds tell and are told.
package telling

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Balancers by the name of a strategy.
var Balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

var telling sync.Mutex

// Tell prints a line of JSON.
func Tell(format string, values ...any) {
	telling.Lock()
	defer telling.Unlock()
	fmt.Printf(format+"\n", values...)
}

// Partitions returns a callback that tells partitions.
func Partitions(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		numbers := []int32{}
		for _, of := range partitions {
			numbers = append(numbers, of...)
		}
		slices.Sort(numbers)
		texts := []string{}
		for _, number := range numbers {
			texts = append(texts, strconv.Itoa(int(number)))
		}
		Tell(`{"event":"%s","partitions":[%s]}`, event, strings.Join(texts, ","))
	}
}

// Milliseconds reads a duration.
func Milliseconds(text string) time.Duration {
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

// UntilTold returns a context that is done when a line comes on stdin.
func UntilTold() context.Context {
	told, leave := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		leave()
	}()
	return told
}
