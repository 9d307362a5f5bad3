import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

/**
 * The assignors of the broker, from 3.7.
 *
 * <p>The coordinator's own classes hold the members, because the order of their maps and sets
 * affects the assignment. Three generations of these classes exist: 3.7; 3.8 and 3.9, in two
 * packages; from 4.0.
 */
final class BrokerAssignors implements Driver.Assignors {
    private static final String GROUP = "org.apache.kafka.coordinator.group.";

    private final Class<?> describerType =
        Reflection.find(GROUP + "api.assignor.SubscribedTopicDescriber", GROUP + "assignor.SubscribedTopicDescriber");
    /** Whether the release has the classes of 3.7. */
    private final boolean isFirst = Reflection.exists(GROUP + "assignor.AssignmentSpec");
    private final String classes = GROUP + (Reflection.exists(GROUP + "modern.GroupSpecImpl") ? "modern." : "consumer.");

    BrokerAssignors() throws ClassNotFoundException { }

    @Override
    public Map<String, ?> assign(JsonNode group, String assignor) throws ReflectiveOperationException {
        Object custom = Reflection.isCustom(assignor) ? Reflection.sharedCustom(assignor) : null;
        boolean isStreams = Reflection.isA(custom, GROUP + "api.streams.assignor.TaskAssignor")
            || Reflection.isA(custom, GROUP + "streams.assignor.TaskAssignor");
        if (assignor.equals("streams-sticky") || isStreams) {
            return StreamsGroups.assign(group, custom);
        }
        boolean isShare = assignor.equals("share")
            || Reflection.isA(custom, GROUP + "api.assignor.ShareGroupPartitionAssignor");
        Topics topics = new Topics(group);
        Map<String, Object> members = new HashMap<>();
        Object specification = isFirst ? firstSpecification(group, topics, members) : specification(group, topics, members, isShare);
        Object broker = custom != null ? custom : ofRelease(assignor);
        Object describer = describer(topics);
        long start = System.nanoTime();
        Object result = Reflection.call(broker, "assign", specification, describer);
        long nanos = System.nanoTime() - start;
        Map<?, ?> assigned = (Map<?, ?>) Reflection.call(result, "members");
        Map<String, List<TopicPartition>> lists = new LinkedHashMap<>();
        for (String member : members.keySet()) {
            lists.put(member, new ArrayList<>());
        }
        for (Map.Entry<?, ?> member : assigned.entrySet()) {
            lists.put((String) member.getKey(), partitions(member.getValue(), topics));
        }
        if (!isShare) {
            return Driver.timed(lists, nanos);
        }
        lists.values().forEach(list -> list.sort(
            Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition)));
        return Map.of("members", lists);
    }

    private static Object ofRelease(String assignor) throws ReflectiveOperationException {
        String simpleName = switch (assignor) {
            case "uniform" -> "UniformAssignor";
            case "server-range" -> "RangeAssignor";
            case "share" -> "SimpleAssignor";
            default -> throw new IllegalArgumentException("unknown assignor " + assignor);
        };
        return Reflection.create(Class.forName(GROUP + "assignor." + simpleName));
    }

    @SuppressWarnings("unchecked")
    private List<TopicPartition> partitions(Object assignment, Topics topics)
            throws ReflectiveOperationException {
        String method = isFirst ? "targetPartitions" : "partitions";
        List<TopicPartition> partitions = new ArrayList<>();
        ((Map<Uuid, Collection<Integer>>) Reflection.call(assignment, method)).forEach(
            (id, numbers) -> numbers.forEach(
                number -> partitions.add(new TopicPartition(topics.names.get(id), number))));
        return partitions;
    }

    // ---- Members ------------------------------------------------------------------------

    private Object firstSpecification(JsonNode group, Topics topics, Map<String, Object> members)
            throws ReflectiveOperationException {
        Class<?> memberType = Class.forName(GROUP + "assignor.AssignmentMemberSpec");
        for (JsonNode member : group.get("members")) {
            Set<Uuid> subscribed = new HashSet<>();
            for (String name : new HashSet<>(Driver.texts(member.get("topics")))) {
                if (topics.counts.containsKey(topics.id(name))) {
                    subscribed.add(topics.id(name));
                }
            }
            members.put(member.get("id").textValue(), Reflection.create(
                memberType, Driver.text(member, "instance_id"), Driver.text(member, "rack"),
                subscribed, owned(member, topics, false)));
        }
        return Reflection.create(Class.forName(GROUP + "assignor.AssignmentSpec"), members);
    }

    private Object specification(
            JsonNode group, Topics topics, Map<String, Object> members, boolean isShare)
            throws ReflectiveOperationException {
        Object names = topicNames(topics);
        Class<?> memberType = Class.forName(classes + "MemberSubscriptionAndAssignmentImpl");
        boolean hasInstanceId = Reflection.method(memberType, "instanceId", 0) != null;
        Class<?> targetType = Class.forName(classes + "Assignment");
        Class<?> idsType = Class.forName(classes + "TopicIds");
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<String>> subscriptions = new HashSet<>();
        Map<JsonNode, Set<String>> shared = new IdentityHashMap<>();
        for (JsonNode member : group.get("members")) {
            String memberId = member.get("id").textValue();
            Set<String> subscribed = shared.computeIfAbsent(
                member.get("topics"), list -> new HashSet<>(Driver.texts(list)));
            subscriptions.add(subscribed);
            for (TopicPartition partition : Driver.owned(member)) {
                owners.computeIfAbsent(topics.id(partition.topic()), none -> new HashMap<>())
                    .put(partition.partition(), memberId);
            }
            Object ids = isShare
                ? new HashSet<>(subscribed.stream().map(topics::id).toList())
                : Reflection.create(idsType, subscribed, names);
            Object target = Reflection.create(targetType, owned(member, topics, isShare));
            Optional<String> rack = Driver.text(member, "rack");
            members.put(memberId, hasInstanceId
                ? Reflection.create(memberType, rack, Driver.text(member, "instance_id"), ids, target)
                : Reflection.create(memberType, rack, ids, target));
        }
        Class<?> typeOfType = Class.forName(GROUP + "api.assignor.SubscriptionType");
        Object type = typeOfType.getField(subscriptions.size() <= 1 ? "HOMOGENEOUS" : "HETEROGENEOUS").get(null);
        Class<?> specification = Class.forName(classes + "GroupSpecImpl");
        Optional<Map<Uuid, Set<Integer>>> assignable = topics.assignable();
        return assignable.isPresent()
            ? Reflection.create(specification, members, type, owners, assignable)
            : Reflection.create(specification, members, type, owners);
    }

    /** Returns the target assignment of a member, filled as the broker does from its log. */
    private static Map<Uuid, Set<Integer>> owned(JsonNode member, Topics topics, boolean isShare) {
        Map<Uuid, List<Integer>> claimed = new LinkedHashMap<>();
        for (TopicPartition partition : Driver.owned(member)) {
            claimed.computeIfAbsent(topics.id(partition.topic()), none -> new ArrayList<>()).add(partition.partition());
        }
        Map<Uuid, Set<Integer>> target = new HashMap<>();
        // The order in a bin of the map affects the assignment of a share group.
        claimed.forEach((id, numbers) -> {
            if (isShare) {
                target.computeIfAbsent(id, none -> new HashSet<>()).addAll(numbers);
            } else {
                target.put(id, new HashSet<>(numbers));
            }
        });
        return target;
    }

    // ---- Topics -------------------------------------------------------------------------

    /** Returns the second argument of TopicIds: a resolver, or an image of the topics before 4.0. */
    private Object topicNames(Topics topics) throws ReflectiveOperationException {
        String resolver = classes + "TopicIds$TopicResolver";
        if (Reflection.exists(resolver)) {
            return proxy(Class.forName(resolver), (self, method, arguments) -> switch (method.getName()) {
                case "name" -> topics.counts.containsKey(arguments[0]) ? topics.names.get(arguments[0]) : null;
                case "id" -> topics.known((String) arguments[0]);
                default -> null;
            });
        }
        Class<?> image = Class.forName("org.apache.kafka.image.TopicsImage");
        Object delta = Reflection.create(
            Class.forName("org.apache.kafka.image.TopicsDelta"), image.getField("EMPTY").get(null));
        for (Uuid id : topics.counts.keySet()) {
            Object topic = Reflection.create(Class.forName("org.apache.kafka.common.metadata.TopicRecord"));
            Reflection.call(topic, "setName", topics.names.get(id));
            Reflection.call(topic, "setTopicId", id);
            Reflection.call(delta, "replay", topic);
        }
        return Reflection.call(delta, "apply");
    }

    private Object describer(Topics topics) {
        return proxy(describerType, (self, method, arguments) -> switch (method.getName()) {
            case "numPartitions" -> topics.counts.getOrDefault(arguments[0], -1);
            case "racksForPartition" -> topics.racks((Uuid) arguments[0], (Integer) arguments[1]);
            default -> null;
        });
    }

    static Object proxy(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
    }

    /** Ids, names, partition counts and racks of the topics. */
    private static final class Topics {
        final Map<Uuid, String> names = new HashMap<>();
        final Map<String, Uuid> ids = new HashMap<>();
        final Map<Uuid, Integer> counts = new HashMap<>();
        private final JsonNode documents;

        Topics(JsonNode group) {
            documents = group.get("topics");
            documents.properties().forEach(
                topic -> counts.put(id(topic.getKey()), Driver.partitionCount(topic.getValue())));
        }

        Uuid id(String name) {
            return ids.computeIfAbsent(name, missing -> {
                String explicit = documents.path(name).path("id").textValue();
                Uuid kafka = explicit == null
                    ? uuid(UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8)))
                    : explicit.length() == 36 ? uuid(UUID.fromString(explicit)) : Uuid.fromString(explicit);
                names.put(kafka, name);
                return kafka;
            });
        }

        private static Uuid uuid(UUID id) {
            return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
        }

        /** Returns the id of a topic with metadata, or null. */
        Uuid known(String name) {
            return counts.containsKey(id(name)) ? id(name) : null;
        }

        /** Returns the assignable partitions of a share group, or nothing if it has all. */
        Optional<Map<Uuid, Set<Integer>>> assignable() {
            Map<Uuid, Set<Integer>> numbers = new HashMap<>();
            boolean isRestricted = false;
            for (Map.Entry<String, JsonNode> topic : documents.properties()) {
                JsonNode listed = topic.getValue().path("assignable");
                isRestricted |= listed.isArray();
                Set<Integer> assignable = new HashSet<>();
                if (listed.isArray()) {
                    listed.forEach(number -> assignable.add(number.intValue()));
                } else {
                    for (int number = 0; number < Driver.partitionCount(topic.getValue()); number++) {
                        assignable.add(number);
                    }
                }
                numbers.put(id(topic.getKey()), assignable);
            }
            return isRestricted ? Optional.of(numbers) : Optional.empty();
        }

        Set<String> racks(Uuid id, int partition) {
            Set<String> racks = new HashSet<>();
            documents.path(names.get(id)).path("racks").path(partition).forEach(rack -> {
                if (rack.isTextual()) {
                    racks.add(rack.textValue());
                }
            });
            return racks;
        }
    }
}
