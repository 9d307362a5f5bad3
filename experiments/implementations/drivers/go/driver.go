// Driver that calls the assignors of one Go library.
//
// It writes a line when it is ready. Then it reads one JSON line per group,
// {"assignor": NAME, "group": GROUP_DOCUMENT}, and writes one line: an object with the partitions
// per member, or {"failed": KIND, "reason": TEXT} for an error or a panic of the library.
// The file of the library defines assign.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"time"
)

const grace = time.Second

type partition struct {
	Topic  string
	Number int32
}

func (p partition) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]any{p.Topic, p.Number})
}

func (p *partition) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[2]any{&p.Topic, &p.Number})
}

// topic has the number of partitions, and optionally the racks of the replicas per partition.
type topic struct {
	Partitions int32       `json:"partitions"`
	Racks      [][]*string `json:"racks"`
}

func (t *topic) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return json.Unmarshal(text, &t.Partitions)
	}
	type fields topic
	return json.Unmarshal(text, (*fields)(t))
}

type member struct {
	ID         string      `json:"id"`
	Topics     []string    `json:"topics"`
	Owned      []partition `json:"owned"`
	Generation *int32      `json:"generation"`
	InstanceID *string     `json:"instance_id"`
	Rack       *string     `json:"rack"`
}

// generation returns the generation of the owned partitions, -1 for none.
func (m *member) generation() int32 {
	if m.Generation == nil {
		return -1
	}
	return *m.Generation
}

// ownedByTopic returns the numbers of the owned partitions per topic.
func (m *member) ownedByTopic() map[string][]int32 {
	owned := make(map[string][]int32)
	for _, each := range m.Owned {
		owned[each.Topic] = append(owned[each.Topic], each.Number)
	}
	return owned
}

type group struct {
	Topics  map[string]topic `json:"topics"`
	Members []member         `json:"members"`
}

// assignment has the numbers of partitions per member and topic.
type assignment map[string]map[string][]int32

type request struct {
	Assignor string `json:"assignor"`
	Group    group  `json:"group"`
}

func main() {
	lines := make(chan []byte, 1)
	go read(lines)
	output := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(output, "ready")
	output.Flush()
	for line := range lines {
		var each request
		if err := json.Unmarshal(line, &each); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		text, err := json.Marshal(answer(&each))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		output.Write(text)
		output.WriteByte('\n')
		output.Flush()
	}
}

// read sends the lines of the standard input. After its end, it ends the process, even during a
// call of the library.
func read(lines chan<- []byte) {
	input := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			lines <- line
		}
		if err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, err)
			}
			break
		}
	}
	close(lines)
	time.Sleep(grace)
	os.Exit(0)
}

func answer(each *request) (result any) {
	defer func() {
		if thrown := recover(); thrown != nil {
			result = failure("panic", fmt.Sprint(thrown))
		}
	}()
	assigned, err := assign(each.Assignor, &each.Group)
	if err != nil {
		return failure("error", err.Error())
	}
	lists := make(map[string][]partition, len(assigned))
	for id, topics := range assigned {
		lists[id] = inOrder(topics)
	}
	return lists
}

func failure(kind, reason string) map[string]string {
	return map[string]string{"failed": kind, "reason": reason}
}

// inOrder lists the partitions of a member by topic.
func inOrder(topics map[string][]int32) []partition {
	names := make([]string, 0, len(topics))
	for name := range topics {
		names = append(names, name)
	}
	sort.Strings(names)
	list := []partition{}
	for _, name := range names {
		for _, number := range topics[name] {
			list = append(list, partition{name, number})
		}
	}
	return list
}
