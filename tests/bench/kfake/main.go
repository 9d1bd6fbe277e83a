// A kfake cluster (franz-go) of three brokers in a process of its own, for the client benchmark.
// Prints one JSON line when it listens, and serves until SIGINT or SIGTERM.
package main

import (
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGINT, syscall.SIGTERM)
	ready := map[string]string{"bootstrap_servers": strings.Join(cluster.ListenAddrs(), ",")}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		log.Fatal(err)
	}
	<-stopped
}
