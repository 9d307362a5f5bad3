//go:build sarama

package main

import (
	"fmt"

	"github.com/IBM/sarama"
)

// onAssignment and userData are optional interfaces of the strategies of newer versions.
type onAssignment interface {
	OnAssignment(assignment *sarama.ConsumerGroupMemberAssignment, generation int32)
}

type userData interface {
	SubscriptionUserData(topics []string) ([]byte, error)
}

func newStrategy(name string) (sarama.BalanceStrategy, error) {
	switch name {
	case "range":
		return sarama.NewBalanceStrategyRange(), nil
	case "roundrobin":
		return sarama.NewBalanceStrategyRoundRobin(), nil
	case "sticky":
		return sarama.NewBalanceStrategySticky(), nil
	case "cooperative-sticky":
		return newCooperativeStrategy()
	}
	return nil, fmt.Errorf("unknown assignor %q", name)
}

// assign encodes the subscriptions in JoinGroup requests and decodes them from a response.
func assign(name string, all *group) (assignment, error) {
	response := &sarama.JoinGroupResponse{}
	topics := make(map[string][]int32)
	for i := range all.Members {
		each := &all.Members[i]
		metadata, err := subscription(name, each)
		if err != nil {
			return nil, err
		}
		join := &sarama.JoinGroupRequest{}
		if err := join.AddGroupProtocolMetadata(name, metadata); err != nil {
			return nil, err
		}
		response.Members = append(response.Members, sarama.GroupMember{
			MemberId: each.ID, GroupInstanceId: each.InstanceID,
			Metadata: join.OrderedGroupProtocols[0].Metadata,
		})
		for _, subscribed := range each.Topics {
			known, found := all.Topics[subscribed]
			if !found {
				// The leader's metadata request fails.
				return nil, sarama.ErrUnknownTopicOrPartition
			}
			topics[subscribed] = numbers(known.Partitions)
		}
	}
	members, err := response.GetMembers()
	if err != nil {
		return nil, err
	}
	leader, err := newStrategy(name)
	if err != nil {
		return nil, err
	}
	plan, err := leader.Plan(members, topics)
	return assignment(plan), err
}

// subscription returns the metadata of a member as the library's consumer group sends them. The
// user data of a stateful strategy are those of the last assignment, which the leader wrote.
func subscription(name string, each *member) (*sarama.ConsumerGroupMemberMetadata, error) {
	strategy, err := newStrategy(name)
	if err != nil {
		return nil, err
	}
	owned, generation := each.ownedByTopic(), each.generation()
	metadata := &sarama.ConsumerGroupMemberMetadata{Topics: each.Topics}
	addOwned(metadata, owned, generation, name == "cooperative-sticky")
	if len(owned) > 0 || generation >= 0 {
		metadata.UserData, err = strategy.AssignmentData(each.ID, owned, generation)
		if err != nil {
			return nil, err
		}
		if stateful, ok := strategy.(onAssignment); ok {
			stateful.OnAssignment(
				&sarama.ConsumerGroupMemberAssignment{Topics: owned, UserData: metadata.UserData}, generation)
		}
	}
	if provider, ok := strategy.(userData); ok {
		metadata.UserData, err = provider.SubscriptionUserData(each.Topics)
	}
	return metadata, err
}

func numbers(count int32) []int32 {
	list := make([]int32, count)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}
