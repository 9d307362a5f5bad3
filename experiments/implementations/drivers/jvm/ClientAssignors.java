import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * The assignors of the Java client, from 0.9.
 *
 * <p>Each member encodes its subscription as the consumer of the release does: its assignor object
 * receives the owned partitions as an assignment and writes the user data. The leader decodes the
 * subscriptions and assigns. The document's protocol version, generation of the subscription and
 * version of the user data replace those of the release.
 */
final class ClientAssignors implements Driver.Assignors {
    private static final String CONSUMER = "org.apache.kafka.clients.consumer.";

    /** Whether the interface is PartitionAssignor, of releases before 2.4. */
    private final boolean isOld = !Reflection.exists(CONSUMER + "ConsumerPartitionAssignor");
    private final String api =
        CONSUMER + (isOld ? "internals.PartitionAssignor" : "ConsumerPartitionAssignor");
    private final Class<?> assignorType = Class.forName(api);
    private final Class<?> assignmentType = Class.forName(api + "$Assignment");
    private final Constructor<?> newSubscription =
        Arrays.stream(Class.forName(api + "$Subscription").getConstructors())
            .max(Comparator.comparingInt(Constructor::getParameterCount)).get();
    private final Method setInstanceId =
        Reflection.method(newSubscription.getDeclaringClass(), "setGroupInstanceId", 1);

    ClientAssignors() throws ClassNotFoundException { }

    @Override
    public Map<String, ?> assign(JsonNode group, String assignor)
            throws ReflectiveOperationException {
        Map<String, Object> subscriptions = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            subscriptions.put(member.get("id").textValue(), received(member, assignor));
        }
        Object leader = newAssignor(assignor);
        Cluster cluster = cluster(group);
        Object all = isOld
            ? subscriptions
            : Reflection.create(Class.forName(api + "$GroupSubscription"), subscriptions);
        long start = System.nanoTime();
        Object result = Reflection.callOf(assignorType, leader, "assign", cluster, all);
        long nanos = System.nanoTime() - start;
        Object assignments = isOld ? result : Reflection.call(result, "groupAssignment");
        Map<String, List<TopicPartition>> lists = new LinkedHashMap<>();
        for (Map.Entry<?, ?> member : ((Map<?, ?>) assignments).entrySet()) {
            lists.put((String) member.getKey(), partitions(member.getValue()));
        }
        return Driver.timed(lists, nanos);
    }

    @SuppressWarnings("unchecked")
    private static List<TopicPartition> partitions(Object assignment)
            throws ReflectiveOperationException {
        return (List<TopicPartition>) Reflection.call(assignment, "partitions");
    }

    private static Object newAssignor(String name) throws ReflectiveOperationException {
        if (Reflection.isCustom(name)) {
            return Reflection.createCustom(name);
        }
        String simpleName = switch (name) {
            case "range" -> "RangeAssignor";
            case "roundrobin" -> "RoundRobinAssignor";
            case "sticky" -> "StickyAssignor";
            case "cooperative-sticky" -> "CooperativeStickyAssignor";
            default -> throw new IllegalArgumentException("unknown assignor " + name);
        };
        return Reflection.create(Class.forName(CONSUMER + simpleName));
    }

    // ---- Subscriptions ------------------------------------------------------------------

    /** Returns the subscription of a member after encoding and decoding. */
    private Object received(JsonNode member, String assignor) throws ReflectiveOperationException {
        Object sent = subscription(member, assignor);
        JsonNode version = member.path("protocol_version");
        boolean hasVersion = version.isInt()
            && Reflection.method(ConsumerProtocol.class, "serializeSubscription", 2) != null;
        Object bytes = hasVersion
            ? Reflection.callOf(ConsumerProtocol.class, null, "serializeSubscription", sent, (short) version.asInt())
            : Reflection.callOf(ConsumerProtocol.class, null, "serializeSubscription", sent);
        Object received =
            Reflection.callOf(ConsumerProtocol.class, null, "deserializeSubscription", bytes);
        if (setInstanceId != null) {
            setInstanceId.invoke(received, Driver.text(member, "instance_id"));
        }
        return received;
    }

    private Object subscription(JsonNode member, String assignor)
            throws ReflectiveOperationException {
        Object own = newAssignor(assignor);
        List<TopicPartition> owned = Driver.owned(member);
        int generation = member.path("generation").asInt(-1);
        boolean isSticky = assignor.endsWith("sticky") || Reflection.isCustom(assignor);
        if (isSticky && (!owned.isEmpty() || generation >= 0)) {
            notifyAssignment(own, owned, generation);
        }
        Set<String> topics = new LinkedHashSet<>(Driver.texts(member.get("topics")));
        if (isOld) {
            return Reflection.callOf(assignorType, own, "subscription", topics);
        }
        ByteBuffer userData =
            (ByteBuffer) Reflection.callOf(assignorType, own, "subscriptionUserData", topics);
        if (userData != null && "v0".equals(member.path("user_data").textValue())) {
            // Version 0 is version 1 without the generation, an int at the end.
            userData.limit(userData.limit() - Integer.BYTES);
        }
        // An eager consumer has revoked its partitions before it joins.
        boolean isCooperative = assignor.equals("cooperative-sticky")
            || !isOld && Reflection.isCustom(assignor)
                && Reflection.callOf(assignorType, own, "supportedProtocols").toString().contains("COOPERATIVE");
        List<TopicPartition> kept = isCooperative ? owned : Collections.emptyList();
        JsonNode other = member.path("sub_generation");
        int sentGeneration = other.isMissingNode() ? generation : other.asInt(-1);
        return newSubscription(new ArrayList<>(topics), userData, kept, sentGeneration, member);
    }

    /** Calls the constructor with most parameters: the other values did not exist then. */
    private Object newSubscription(
            List<String> topics, ByteBuffer userData, List<TopicPartition> owned, int generation,
            JsonNode member) throws ReflectiveOperationException {
        Class<?>[] types = newSubscription.getParameterTypes();
        Object[] arguments = new Object[types.length];
        int lists = 0;
        for (int i = 0; i < types.length; i++) {
            if (types[i] == List.class) {
                arguments[i] = lists++ == 0 ? topics : owned;
            } else if (types[i] == ByteBuffer.class) {
                arguments[i] = userData;
            } else if (types[i] == int.class) {
                arguments[i] = generation;
            } else if (types[i] == Optional.class) {
                arguments[i] = Driver.text(member, "rack");
            } else {
                throw new NoSuchMethodException("constructor of Subscription with " + types[i]);
            }
        }
        return newSubscription.newInstance(arguments);
    }

    /** Calls onAssignment with the parameters of the release. */
    private void notifyAssignment(Object own, List<TopicPartition> owned, int generation)
            throws ReflectiveOperationException {
        Object assignment = Reflection.create(assignmentType, owned);
        if (!isOld) {
            Object metadata = Reflection.create(
                Class.forName(CONSUMER + "ConsumerGroupMetadata"), "group", generation, "", Optional.empty());
            Reflection.callOf(assignorType, own, "onAssignment", assignment, metadata);
        } else if (Reflection.method(assignorType, "onAssignment", 2) != null) {
            Reflection.callOf(assignorType, own, "onAssignment", assignment, generation);
        } else {
            Reflection.callOf(assignorType, own, "onAssignment", assignment);
        }
    }

    // ---- Topics -------------------------------------------------------------------------

    private static Cluster cluster(JsonNode group) throws ReflectiveOperationException {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (Map.Entry<String, JsonNode> topic : group.get("topics").properties()) {
            JsonNode racks = topic.getValue().path("racks");
            for (int p = 0; p < Driver.partitionCount(topic.getValue()); p++) {
                Node[] replicas = new Node[racks.path(p).size()];
                for (int i = 0; i < replicas.length; i++) {
                    String rack = racks.get(p).get(i).textValue();
                    Node known = nodes.get(String.valueOf(rack));
                    replicas[i] = known != null ? known : node(nodes.size(), rack);
                    nodes.put(String.valueOf(rack), replicas[i]);
                }
                Node leader = replicas.length > 0 ? replicas[0] : null;
                partitions.add(new PartitionInfo(topic.getKey(), p, leader, replicas, replicas));
            }
        }
        Set<String> none = Collections.emptySet();
        try {
            return (Cluster) Reflection.create(Cluster.class, "cluster", nodes.values(), partitions, none, none);
        } catch (NoSuchMethodException before0101) {
            return (Cluster) Reflection.create(Cluster.class, nodes.values(), partitions, none);
        }
    }

    private static Node node(int id, String rack) throws ReflectiveOperationException {
        try {
            return (Node) Reflection.create(Node.class, id, "host", 9092, rack);
        } catch (NoSuchMethodException withoutRacks) {
            return new Node(id, "host", 9092);
        }
    }
}
