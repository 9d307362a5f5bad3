// Consumer of a Go library, which polls until its standard input ends. An input line
// TOPIC,TOPIC changes the subscription.
//
// Usage: consumer LIBRARY BOOTSTRAP GROUP ASSIGNOR TOPIC,TOPIC
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	closeTimeout = 10 * time.Second
	heartbeat    = 300 * time.Millisecond
	session      = 30 * time.Second
)

func main() {
	library, brokers := os.Args[1], strings.Split(os.Args[2], ",")
	group, assignor := os.Args[3], os.Args[4]
	subscriptions := make(chan []string, 1)
	subscriptions <- strings.Split(os.Args[5], ",")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	run := map[string]func(context.Context, []string, string, string, <-chan []string) error{
		"franz-go": franzGo, "sarama": saramaGroup, "kafka-go": kafkaGo,
	}[library]
	go func() {
		defer close(done)
		if err := run(ctx, brokers, group, assignor, subscriptions); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		subscriptions <- strings.Split(input.Text(), ",")
	}
	stop()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
}

func franzGo(ctx context.Context, brokers []string, group, assignor string, subscriptions <-chan []string) error {
	balancer := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"sticky":             kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
		"connect":            kgo.RangeBalancer(),
	}[assignor]
	topics := <-subscriptions
	options := []kgo.Opt{
		kgo.SeedBrokers(brokers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...),
		kgo.Balancers(balancer), kgo.HeartbeatInterval(heartbeat), kgo.SessionTimeout(session),
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
	go func() {
		for next := range subscriptions {
			client.AddConsumeTopics(next...)
			client.PurgeTopicsFromConsuming(without(topics, next)...)
			topics = next
		}
	}()
	for ctx.Err() == nil {
		client.PollFetches(ctx)
	}
	return nil
}

// without returns the topics that are not in the other list.
func without(topics, other []string) []string {
	return slices.DeleteFunc(slices.Clone(topics), func(name string) bool {
		return slices.Contains(other, name)
	})
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for range c.Messages() {
	}
	return nil
}

func saramaGroup(ctx context.Context, brokers []string, group, assignor string, subscriptions <-chan []string) error {
	strategy := map[string]sarama.BalanceStrategy{
		"range":      sarama.NewBalanceStrategyRange(),
		"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
		"sticky":     sarama.NewBalanceStrategySticky(),

		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky(),
	}[assignor]
	config := sarama.NewConfig()
	config.Consumer.Group.Heartbeat.Interval = heartbeat
	config.Consumer.Group.Session.Timeout = session
	config.Version = sarama.V3_6_0_0
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	client, err := sarama.NewConsumerGroup(brokers, group, config)
	if err != nil {
		return err
	}
	defer client.Close()
	topics := <-subscriptions
	for ctx.Err() == nil {
		current, end := context.WithCancel(ctx)
		go func() {
			select {
			case topics = <-subscriptions:
				end()
			case <-current.Done():
			}
		}()
		if err := client.Consume(current, topics, handler{}); err != nil && current.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(time.Second)
		}
		end()
	}
	return nil
}

func kafkaGo(ctx context.Context, brokers []string, group, assignor string, subscriptions <-chan []string) error {
	balancer := map[string]kafkago.GroupBalancer{
		"range":      kafkago.RangeGroupBalancer{},
		"roundrobin": kafkago.RoundRobinGroupBalancer{},
	}[assignor]
	reader := kafkago.NewReader(kafkago.ReaderConfig{
		Brokers: brokers, GroupID: group, GroupTopics: <-subscriptions,
		GroupBalancers: []kafkago.GroupBalancer{balancer}, HeartbeatInterval: heartbeat,
	})
	defer reader.Close()
	for ctx.Err() == nil {
		reader.ReadMessage(ctx)
	}
	return nil
}
