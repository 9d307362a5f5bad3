//go:build sarama && !cooperative_sticky

package main

import (
	"errors"

	"github.com/IBM/sarama"
)

func newCooperativeStrategy() (sarama.BalanceStrategy, error) {
	return nil, errors.New("this version has no cooperative strategy")
}

// addOwned does nothing: these versions send subscriptions of version 0.
func addOwned(*sarama.ConsumerGroupMemberMetadata, map[string][]int32, int32, bool) {}
