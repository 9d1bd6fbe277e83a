// Produces one record by franz-go: SERVERS MECHANISM USER PASSWORD TOPIC CA-FILE CERTIFICATE-FILE KEY-FILE. The files
// are empty without TLS, or without a certificate of the client, the mechanism without a login.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func main() {
	servers, name, user, password, topic := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	authority, certificate, key := os.Args[6], os.Args[7], os.Args[8]
	mechanisms := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: user, Pass: password}.AsMechanism(),
		"SCRAM-SHA-256": scram.Auth{User: user, Pass: password}.AsSha256Mechanism(),
		"SCRAM-SHA-512": scram.Auth{User: user, Pass: password}.AsSha512Mechanism(),
		"OAUTHBEARER":   oauth.Auth{Token: password}.AsMechanism(),
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.DefaultProduceTopic(topic),
	}
	if name != "" {
		options = append(options, kgo.SASL(mechanisms[name]))
	}
	if authority != "" {
		options = append(options, kgo.DialTLSConfig(trusting(authority, certificate, key)))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	check(client.Ping(ctx))
	check(client.ProduceSync(ctx, kgo.StringRecord("franz-go")).FirstErr())
}

func trusting(authority, certificate, key string) *tls.Config {
	text, err := os.ReadFile(authority)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	config := &tls.Config{RootCAs: pool}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		check(err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
