//go:build franz_go

package main

import (
	"fmt"
	"sort"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newBalancer(name string) (kgo.GroupBalancer, error) {
	switch name {
	case "range":
		return kgo.RangeBalancer(), nil
	case "roundrobin":
		return kgo.RoundRobinBalancer(), nil
	case "sticky":
		return kgo.StickyBalancer(), nil
	case "cooperative-sticky":
		return kgo.CooperativeStickyBalancer(), nil
	}
	return nil, fmt.Errorf("unknown assignor %q", name)
}

// assign passes encoded subscriptions to the balancer, in the order in which the library's client
// sorts the members: by instance id and member id.
func assign(name string, all *group) (assignment, error) {
	balancer, err := newBalancer(name)
	if err != nil {
		return nil, err
	}
	members := make([]kmsg.JoinGroupResponseMember, len(all.Members))
	for i := range all.Members {
		each := &all.Members[i]
		topics := append([]string(nil), each.Topics...)
		sort.Strings(topics) // The client sends the topics in this order.
		members[i] = kmsg.NewJoinGroupResponseMember()
		members[i].MemberID, members[i].InstanceID = each.ID, each.InstanceID
		members[i].ProtocolMetadata = balancer.JoinGroupMetadata(topics, each.ownedByTopic(), each.generation())
	}
	sort.Slice(members, func(i, j int) bool { return precedes(&members[i], &members[j]) })
	leader, subscribed, err := balancer.MemberBalancer(members)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int32)
	for topic := range subscribed {
		if known, found := all.Topics[topic]; found {
			counts[topic] = known.Partitions
		}
	}
	var plan kgo.IntoSyncAssignment
	if fallible, ok := leader.(kgo.GroupMemberBalancerOrError); ok {
		plan, err = fallible.BalanceOrError(counts)
	} else {
		plan = leader.Balance(counts)
	}
	if err != nil {
		return nil, err
	}
	result := make(assignment)
	for _, each := range plan.IntoSyncAssignment() {
		result[each.MemberID], err = balancer.ParseSyncAssignment(each.MemberAssignment)
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

func precedes(a, b *kmsg.JoinGroupResponseMember) bool {
	switch {
	case a.InstanceID != nil && b.InstanceID != nil:
		return *a.InstanceID < *b.InstanceID
	case a.InstanceID != nil:
		return true
	case b.InstanceID != nil:
		return false
	}
	return a.MemberID < b.MemberID
}
