//go:build kafka_go

package main

import (
	"fmt"
	"sort"

	kafka "github.com/segmentio/kafka-go"
)

func newBalancer(name, rack string) (kafka.GroupBalancer, error) {
	switch name {
	case "range":
		return kafka.RangeGroupBalancer{}, nil
	case "roundrobin":
		return kafka.RoundRobinGroupBalancer{}, nil
	case "rack-affinity":
		return kafka.RackAffinityGroupBalancer{Rack: rack}, nil
	}
	return nil, fmt.Errorf("unknown assignor %q", name)
}

// assign passes the subscriptions and all partitions to the balancer. The library does not export
// its encoder. The partitions are ordered by topic and number.
func assign(name string, all *group) (assignment, error) {
	members := make([]kafka.GroupMember, len(all.Members))
	subscribed := make(map[string]bool)
	for i := range all.Members {
		each := &all.Members[i]
		balancer, err := newBalancer(name, text(each.Rack))
		if err != nil {
			return nil, err
		}
		data, err := balancer.UserData()
		if err != nil {
			return nil, err
		}
		members[i] = kafka.GroupMember{ID: each.ID, Topics: each.Topics, UserData: data}
		for _, topic := range each.Topics {
			subscribed[topic] = true
		}
	}
	leader, err := newBalancer(name, text(all.Members[0].Rack))
	if err != nil {
		return nil, err
	}
	result := make(assignment)
	for id, topics := range leader.AssignGroups(members, partitions(all, subscribed)) {
		result[id] = make(map[string][]int32)
		for topic, numbers := range topics {
			for _, number := range numbers {
				result[id][topic] = append(result[id][topic], int32(number))
			}
		}
	}
	return result, nil
}

func partitions(all *group, subscribed map[string]bool) []kafka.Partition {
	names := make([]string, 0, len(subscribed))
	for name := range subscribed {
		names = append(names, name)
	}
	sort.Strings(names)
	var list []kafka.Partition
	for _, name := range names {
		known := all.Topics[name]
		for number := 0; number < int(known.Partitions); number++ {
			each := kafka.Partition{Topic: name, ID: number}
			if number < len(known.Racks) && len(known.Racks[number]) > 0 {
				each.Leader.Rack = text(known.Racks[number][0])
			}
			list = append(list, each)
		}
	}
	return list
}

func text(optional *string) string {
	if optional == nil {
		return ""
	}
	return *optional
}
