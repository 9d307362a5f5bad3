import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;

/**
 * Calls one of Kafka's assignors with a group document, in the same way as Kafka: subscriptions
 * are encoded in their protocol version, the assignor class writes the user data, and the
 * broker's assignors get the coordinator's specification class.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final int WARM_UP_CALLS = 30;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final JsonNode group;
    private final String assignor;
    private final Map<Uuid, String> topicNames = new HashMap<>();
    private final Map<String, Uuid> topicIds = new HashMap<>();
    private Cluster cluster;
    private GroupSpec groupSpec;

    /** A prepared call for one use: sticky assignors consume their user data. */
    private interface Call extends Callable<Map<String, Collection<TopicPartition>>> { }

    private Driver(JsonNode group, String assignor) {
        this.group = group;
        this.assignor = assignor;
    }

    /**
     * Assigns once. Returns a JSON object: {"assignment": ...}, {"failed": class, "detail": ...}
     * or, after the time limit, {"terminated": false}.
     */
    public static String assign(String document, String assignor, long limitMillis) throws Exception {
        Call call = new Driver(JSON.readTree(document), assignor).prepare();
        FutureTask<Map<String, Collection<TopicPartition>>> task = new FutureTask<>(call);
        StringWriter text = new StringWriter();
        try (JsonGenerator json = JSON.createGenerator(text)) {
            json.enable(JsonGenerator.Feature.ESCAPE_NON_ASCII);
            json.writeStartObject();
            try {
                writeAssignment(json, runWithin(task, limitMillis));
            } catch (TimeoutException late) {
                json.writeBooleanField("terminated", false);
            } catch (java.util.concurrent.ExecutionException thrown) {
                json.writeStringField("failed", thrown.getCause().getClass().getSimpleName());
                json.writeStringField("detail", String.valueOf(thrown.getCause().getMessage()));
            }
            json.writeEndObject();
        }
        return text.toString();
    }

    /**
     * Returns nanoseconds of CPU time of several calls, without their preparation and without the
     * garbage collector; -1 after the time limit, which stops the measurement. At most 30 untimed
     * calls warm up the JVM first.
     */
    public static long[] time(
            String document, String assignor, int repetitions, long warmUpMillis, long limitMillis)
            throws Exception {
        Driver driver = new Driver(JSON.readTree(document), assignor);
        long[] nanos = new long[repetitions];
        int warmUps = WARM_UP_CALLS;
        long warmUpEnd = System.nanoTime() + warmUpMillis * 1_000_000;
        for (int i = 0; i < repetitions; ) {
            Call call = driver.prepare();
            FutureTask<Long> task = new FutureTask<>(() -> {
                long start = THREADS.getCurrentThreadCpuTime();
                call.call();
                return THREADS.getCurrentThreadCpuTime() - start;
            });
            try {
                nanos[i] = runWithin(task, limitMillis);
                boolean warm = warmUps-- <= 0 || System.nanoTime() > warmUpEnd;
                i += warm ? 1 : 0;
            } catch (TimeoutException late) {
                nanos[i] = -1;
                return java.util.Arrays.copyOf(nanos, i + 1);
            }
        }
        return nanos;
    }

    private static <T> T runWithin(FutureTask<T> task, long limitMillis) throws Exception {
        Thread thread = new Thread(task, "assignor");
        thread.setDaemon(true);
        thread.start();
        try {
            return task.get(limitMillis, TimeUnit.MILLISECONDS);
        } catch (TimeoutException late) {
            stop(thread);
            throw late;
        }
    }

    /** An endless loop ignores interrupts. Since Java 20 it stops only with the process. */
    @SuppressWarnings({"deprecation", "removal"})
    private static void stop(Thread thread) {
        try {
            thread.stop();
        } catch (UnsupportedOperationException gone) {
            thread.setPriority(Thread.MIN_PRIORITY);
        }
    }

    private static void writeAssignment(
            JsonGenerator json, Map<String, Collection<TopicPartition>> assignment) throws Exception {
        json.writeObjectFieldStart("assignment");
        for (Map.Entry<String, Collection<TopicPartition>> member : assignment.entrySet()) {
            json.writeArrayFieldStart(member.getKey());
            for (TopicPartition partition : member.getValue()) {
                json.writeStartArray();
                json.writeString(partition.topic());
                json.writeNumber(partition.partition());
                json.writeEndArray();
            }
            json.writeEndArray();
        }
        json.writeEndObject();
    }

    private Call prepare() {
        switch (assignor) {
            case "range": return prepareClient(new RangeAssignor());
            case "roundrobin": return prepareClient(new RoundRobinAssignor());
            case "sticky": return prepareClient(new StickyAssignor());
            case "cooperative-sticky": return prepareClient(new CooperativeStickyAssignor());
            case "uniform": return prepareBroker(new UniformAssignor());
            case "server-range":
                return prepareBroker(new org.apache.kafka.coordinator.group.assignor.RangeAssignor());
            default: throw new IllegalArgumentException("unknown assignor " + assignor);
        }
    }

    // ---- Client assignors ----------------------------------------------------------------

    private Call prepareClient(ConsumerPartitionAssignor leader) {
        if (cluster == null) {
            cluster = cluster();
        }
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            subscriptions.put(member.get("id").textValue(), subscription(member));
        }
        GroupSubscription all = new GroupSubscription(subscriptions);
        return () -> {
            Map<String, Collection<TopicPartition>> lists = new LinkedHashMap<>();
            leader.assign(cluster, all).groupAssignment()
                .forEach((member, assigned) -> lists.put(member, assigned.partitions()));
            return lists;
        };
    }

    private Cluster cluster() {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (Map.Entry<String, JsonNode> topic : group.get("topics").properties()) {
            JsonNode racks = topic.getValue().path("racks");
            for (int p = 0; p < partitionCount(topic.getValue()); p++) {
                Node[] replicas = new Node[racks.path(p).size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = racks.get(p).get(i).textValue();
                    replicas[i] = nodes.computeIfAbsent(
                        String.valueOf(rack), name -> new Node(nodes.size(), "host", 9092, rack));
                }
                Node leader = replicas.length > 0 ? replicas[0] : Node.noNode();
                partitions.add(new PartitionInfo(topic.getKey(), p, leader, replicas, replicas));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private Subscription subscription(JsonNode member) {
        List<String> topics = texts(member.get("topics"));
        List<TopicPartition> owned = owned(member);
        int generation = member.path("generation").asInt(-1);
        // null: the subscription has no generation; missing: it has the same one.
        int subscriptionGeneration = member.has("sub_generation") ? member.get("sub_generation").asInt(-1) : generation;
        boolean cooperative = assignor.equals("cooperative-sticky");
        Subscription sent = new Subscription(
            topics,
            userData(member, owned, generation),
            cooperative ? owned : List.of(),
            subscriptionGeneration,
            Optional.ofNullable(member.path("rack").textValue()));
        short version = (short) member.path("protocol_version").asInt(3);
        Subscription received = ConsumerProtocol.deserializeSubscription(
            ConsumerProtocol.serializeSubscription(sent, version));
        received.setGroupInstanceId(instanceId(member));
        return received;
    }

    private ByteBuffer userData(JsonNode member, List<TopicPartition> owned, int generation) {
        Set<String> topics = new HashSet<>(texts(member.get("topics")));
        Assignment last = new Assignment(owned);
        ConsumerGroupMetadata metadata = new ConsumerGroupMetadata("group", generation, "", Optional.empty());
        if (assignor.equals("cooperative-sticky")) {
            CooperativeStickyAssignor own = new CooperativeStickyAssignor();
            own.onAssignment(last, metadata);
            return own.subscriptionUserData(topics);
        }
        if (!assignor.equals("sticky") || (owned.isEmpty() && generation < 0)) {
            return null;
        }
        StickyAssignor own = new StickyAssignor();
        own.onAssignment(last, metadata);
        ByteBuffer data = own.subscriptionUserData(topics);
        if ("v0".equals(member.path("user_data").textValue())) {
            // Version 0 is version 1 without the generation, an int at the end.
            data.limit(data.limit() - Integer.BYTES);
        }
        return data;
    }

    // ---- Broker assignors ----------------------------------------------------------------

    private Call prepareBroker(ConsumerGroupPartitionAssignor broker) {
        Map<Uuid, Integer> partitionCounts = new HashMap<>();
        for (Map.Entry<String, JsonNode> topic : group.get("topics").properties()) {
            partitionCounts.put(topicId(topic.getKey()), partitionCount(topic.getValue()));
        }
        if (groupSpec == null) {
            groupSpec = groupSpec(new KnownTopics(partitionCounts.keySet()));
        }
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override public int numPartitions(Uuid id) {
                return partitionCounts.getOrDefault(id, -1);
            }
            @Override public Set<String> racksForPartition(Uuid id, int partition) {
                return Set.of();
            }
        };
        return () -> {
            Map<String, Collection<TopicPartition>> lists = new LinkedHashMap<>();
            groupSpec.memberIds().forEach(member -> lists.put(member, new ArrayList<>()));
            broker.assign(groupSpec, describer).members().forEach((member, assigned) ->
                assigned.partitions().forEach((id, numbers) -> numbers.forEach(number ->
                    lists.get(member).add(new TopicPartition(topicNames.get(id), number)))));
            return lists;
        };
    }

    private GroupSpec groupSpec(TopicIds.TopicResolver resolver) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<String>> subscriptions = new HashSet<>();
        for (JsonNode member : group.get("members")) {
            String memberId = member.get("id").textValue();
            Set<String> topics = new HashSet<>(texts(member.get("topics")));
            subscriptions.add(topics);
            Map<Uuid, List<Integer>> claimed = new LinkedHashMap<>();
            for (TopicPartition partition : owned(member)) {
                Uuid id = topicId(partition.topic());
                claimed.computeIfAbsent(id, none -> new ArrayList<>()).add(partition.partition());
                owners.computeIfAbsent(id, none -> new HashMap<>()).put(partition.partition(), memberId);
            }
            // Created as the broker does from its log: the order of the maps and sets depends on
            // put and on the copy constructor.
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            claimed.forEach((id, numbers) -> target.put(id, new HashSet<>(numbers)));
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(member.path("rack").textValue()),
                instanceId(member),
                new TopicIds(topics, resolver),
                new org.apache.kafka.coordinator.group.modern.Assignment(target)));
        }
        SubscriptionType type = subscriptions.size() <= 1
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(members, type, owners);
    }

    /** Resolves only topics with metadata. */
    private final class KnownTopics implements TopicIds.TopicResolver {
        private final Set<Uuid> known;

        KnownTopics(Set<Uuid> known) {
            this.known = known;
        }

        @Override public CoordinatorMetadataImage image() {
            return null;
        }

        @Override public String name(Uuid id) {
            return known.contains(id) ? topicNames.get(id) : null;
        }

        @Override public Uuid id(String name) {
            Uuid id = topicId(name);
            return known.contains(id) ? id : null;
        }

        @Override public void clear() { }
    }

    private Uuid topicId(String name) {
        return topicIds.computeIfAbsent(name, missing -> {
            String explicit = group.get("topics").path(name).path("id").textValue();
            UUID id = explicit != null
                ? UUID.fromString(explicit) : UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
            Uuid kafka = new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
            topicNames.put(kafka, name);
            return kafka;
        });
    }

    // ---- Document parsing ---------------------------------------------------------------

    private static int partitionCount(JsonNode topic) {
        return topic.isInt() ? topic.intValue() : topic.get("partitions").intValue();
    }

    private static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>(array.size());
        array.forEach(text -> texts.add(text.textValue()));
        return texts;
    }

    private static List<TopicPartition> owned(JsonNode member) {
        JsonNode pairs = member.path("owned");
        List<TopicPartition> owned = new ArrayList<>(pairs.size());
        pairs.forEach(pair -> owned.add(new TopicPartition(pair.get(0).textValue(), pair.get(1).intValue())));
        return owned;
    }

    private static Optional<String> instanceId(JsonNode member) {
        return Optional.ofNullable(member.path("instance_id").textValue());
    }
}
