import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The assignor of Streams groups in the broker (KIP-1071), from 4.1. */
final class StreamsGroups {
    private static final String GROUP = "org.apache.kafka.coordinator.group.";
    private static final String CLASSES = GROUP + "streams.assignor.";
    private static final String API = GROUP + "api.streams.assignor.";

    /** Whether the release has the classes before 4.4. */
    private static final boolean IS_OLD = Reflection.exists(CLASSES + "AssignmentMemberSpec");

    private StreamsGroups() { }

    /** Runs the assignor of the release, or that of a user if it is not null. */
    static Map<String, ?> assign(JsonNode group, Object custom) throws ReflectiveOperationException {
        Map<String, Object> members = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            members.put(member.get("id").textValue(), member(member));
        }
        Object specification = Reflection.create(
            Class.forName(CLASSES + "GroupSpecImpl"), members, configuration(group));
        Class<?> describer = Class.forName((IS_OLD ? CLASSES : API) + "TopologyDescriber");
        Object assignor = custom != null
            ? custom : Reflection.create(Class.forName(CLASSES + "StickyTaskAssignor"));
        Object result = Reflection.call(assignor, "assign", specification,
            BrokerAssignors.proxy(describer, (self, method, arguments) -> describe(
                group.get("subtopologies"), method.getName(), arguments)));
        Map<String, Map<String, ?>> answer = new TreeMap<>();
        for (Map.Entry<?, ?> member : ((Map<?, ?>) Reflection.call(result, "members")).entrySet()) {
            Object target = member.getValue();
            answer.put((String) member.getKey(), Driver.pair(
                "active", sorted(Reflection.call(target, "activeTasks")),
                "standby", sorted(Reflection.call(target, "standbyTasks"))));
        }
        return Map.of("members", answer);
    }

    private static Object describe(JsonNode subtopologies, String method, Object[] arguments) {
        if (method.equals("subtopologies")) {
            Set<String> names = new TreeSet<>();
            subtopologies.fieldNames().forEachRemaining(names::add);
            return new ArrayList<>(names);
        }
        JsonNode subtopology = subtopologies.get((String) arguments[0]);
        return switch (method) {
            case "maxNumInputPartitions" -> subtopology.get("partitions").intValue();
            case "isStateful" -> subtopology.get("stateful").booleanValue();
            default -> throw new IllegalArgumentException("unknown method " + method);
        };
    }

    private static Object configuration(JsonNode group) throws ReflectiveOperationException {
        int standbys = group.path("num_standby_replicas").asInt(0);
        if (IS_OLD) {
            return Map.of("num.standby.replicas", String.valueOf(standbys));
        }
        List<String> tags = Driver.texts(group.path("rack_aware_tags"));
        return Reflection.create(Class.forName(CLASSES + "AssignmentConfigsImpl"), standbys, tags);
    }

    private static Object member(JsonNode member) throws ReflectiveOperationException {
        Optional<String> instanceId = Driver.text(member, "instance_id");
        Optional<String> rack = Driver.text(member, "rack");
        String process = member.get("process").textValue();
        Map<String, String> tags = new HashMap<>();
        member.path("tags").properties().forEach(tag -> tags.put(tag.getKey(), tag.getValue().textValue()));
        Map<String, Set<Integer>> active = tasks(member.path("active"));
        Map<String, Set<Integer>> standby = tasks(member.path("standby"));
        Map<String, Set<Integer>> warmup = tasks(member.path("warmup"));
        Map<?, ?> offsets = offsets(member.path("offsets"));
        Map<?, ?> endOffsets = offsets(member.path("end_offsets"));
        return IS_OLD
            ? Reflection.create(Class.forName(CLASSES + "AssignmentMemberSpec"), instanceId, rack,
                active, standby, warmup, process, tags, offsets, endOffsets)
            : Reflection.create(Class.forName(CLASSES + "MemberMetadataAndStateImpl"), instanceId, rack,
                process, tags, active, standby, warmup, offsets, endOffsets);
    }

    private static Map<String, Set<Integer>> tasks(JsonNode document) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        document.properties().forEach(subtopology -> {
            Set<Integer> numbers = new HashSet<>();
            subtopology.getValue().forEach(number -> numbers.add(number.intValue()));
            tasks.put(subtopology.getKey(), numbers);
        });
        return tasks;
    }

    /** Returns offsets per subtopology and partition, or per task before 4.4. */
    private static Map<?, ?> offsets(JsonNode document) throws ReflectiveOperationException {
        Map<String, Map<Integer, Long>> nested = new HashMap<>();
        Map<Object, Long> flat = new HashMap<>();
        Class<?> task = Class.forName(CLASSES + "TaskId");
        for (Map.Entry<String, JsonNode> subtopology : document.properties()) {
            Map<Integer, Long> numbers = nested.computeIfAbsent(subtopology.getKey(), none -> new HashMap<>());
            for (Map.Entry<String, JsonNode> offset : subtopology.getValue().properties()) {
                int number = Integer.parseInt(offset.getKey());
                numbers.put(number, offset.getValue().longValue());
                flat.put(Reflection.create(task, subtopology.getKey(), number), offset.getValue().longValue());
            }
        }
        return IS_OLD ? flat : nested;
    }

    private static Map<String, Set<Integer>> sorted(Object tasks) {
        Map<String, Set<Integer>> sorted = new TreeMap<>();
        ((Map<?, ?>) tasks).forEach((subtopology, numbers) -> {
            Set<Integer> all = new TreeSet<>();
            ((Set<?>) numbers).forEach(number -> all.add((Integer) number));
            if (!all.isEmpty()) {
                sorted.put((String) subtopology, all);
            }
        });
        return sorted;
    }
}
