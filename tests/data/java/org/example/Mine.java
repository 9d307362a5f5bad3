package org.example;
import java.util.Map;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
public class Mine implements ConsumerGroupPartitionAssignor {
    public String name() { return "mine"; }
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) {
        return new UniformAssignor().assign(spec, topics);
    }

    public static class Crash extends Mine {
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { throw new IllegalStateException("no idea"); }
    }

    public static class Halt extends Mine {
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { Runtime.getRuntime().halt(3); return null; }
    }

    public static class Hang extends Mine {
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { while (true) { Thread.onSpinWait(); } }
    }

    public static class Nothing extends Mine {
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { return null; }
    }

    public static class Empty extends Mine {
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { return new GroupAssignment(Map.of()); }
    }

    public static class Turns extends Mine {
        public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) { return calls++ % 2 == 0 ? super.assign(spec, topics) : new RangeAssignor().assign(spec, topics); } static int calls; { }
    }

    public static class Needy extends Mine { public Needy(String text) { } }
    public static class Share extends SimpleAssignor { }
    public static class Tasks
        extends org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor { }
}
