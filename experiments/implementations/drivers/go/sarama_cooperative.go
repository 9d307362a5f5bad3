//go:build sarama && cooperative_sticky

package main

import (
	"maps"
	"slices"

	"github.com/IBM/sarama"
)

// With brokers from 3.2, the library sends subscriptions of version 2.
const subscriptionVersion = 2

func newCooperativeStrategy() (sarama.BalanceStrategy, error) {
	return sarama.NewBalanceStrategyCooperativeSticky(), nil
}

// addOwned adds the generation, and the owned partitions of a cooperative consumer, in the order
// in which the library sends them.
func addOwned(
	metadata *sarama.ConsumerGroupMemberMetadata, owned map[string][]int32, generation int32, cooperative bool,
) {
	metadata.Version, metadata.GenerationID = subscriptionVersion, generation
	if !cooperative {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(owned)) {
		partitions := slices.Sorted(slices.Values(owned[name]))
		metadata.OwnedPartitions = append(
			metadata.OwnedPartitions, &sarama.OwnedPartition{Topic: name, Partitions: partitions})
	}
}
