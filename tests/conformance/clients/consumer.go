// Consumer of a Go library, which polls until its standard input ends.
//
// Usage: consumer LIBRARY BOOTSTRAP GROUP ASSIGNOR TOPIC,TOPIC
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

const closeTimeout = 10 * time.Second

func main() {
	library, brokers := os.Args[1], strings.Split(os.Args[2], ",")
	group, assignor, topics := os.Args[3], os.Args[4], strings.Split(os.Args[5], ",")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	run := map[string]func(context.Context, []string, string, string, []string) error{
		"franz-go": franzGo, "sarama": saramaGroup, "kafka-go": kafkaGo,
	}[library]
	go func() {
		defer close(done)
		if err := run(ctx, brokers, group, assignor, topics); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	stop()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
}

func franzGo(ctx context.Context, brokers []string, group, assignor string, topics []string) error {
	balancer := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
		"connect":            kgo.RangeBalancer(),
	}[assignor]
	options := []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.Balancers(balancer),
	}
	if assignor == "connect" {
		// A group of another kind than consumers.
		options = append(options, kgo.GroupProtocol("connect"))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		client.PollFetches(ctx)
	}
	return nil
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for range c.Messages() {
	}
	return nil
}

func saramaGroup(ctx context.Context, brokers []string, group, assignor string, topics []string) error {
	strategy := map[string]sarama.BalanceStrategy{
		"range":      sarama.NewBalanceStrategyRange(),
		"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
		"sticky":     sarama.NewBalanceStrategySticky(),
	}[assignor]
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	client, err := sarama.NewConsumerGroup(brokers, group, config)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		if err := client.Consume(ctx, topics, handler{}); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(time.Second)
		}
	}
	return nil
}

func kafkaGo(ctx context.Context, brokers []string, group, assignor string, topics []string) error {
	balancer := map[string]kafkago.GroupBalancer{
		"range":      kafkago.RangeGroupBalancer{},
		"roundrobin": kafkago.RoundRobinGroupBalancer{},
	}[assignor]
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: brokers, GroupID: group, GroupTopics: topics,
		GroupBalancers: []kafkago.GroupBalancer{balancer},
	})
	defer reader.Close()
	for ctx.Err() == nil {
		reader.ReadMessage(ctx)
	}
	return nil
}
