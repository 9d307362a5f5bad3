import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.InternalTopicManager;

/**
 * The task assignors of Kafka Streams, from 3.0.
 *
 * <p>Each subtopology has one source topic and, if it is stateful, one changelog topic. Three
 * generations of the classes exist: before 3.6, without racks; 3.6 and 3.7; from 3.8, with ProcessId
 * and the public interfaces of KIP-924.
 */
final class StreamsAssignors implements Driver.Assignors {
    private static final String PROCESSOR = "org.apache.kafka.streams.processor.";
    private static final String INTERNALS = PROCESSOR + "internals.assignment.";
    private static final String PUBLIC = PROCESSOR + "assignment.";
    private static final long RUNNING = -2;

    private final boolean hasProcessId = Reflection.exists(PUBLIC + "ProcessId");
    private final boolean hasRacks = Reflection.exists(INTERNALS + "RackAwareTaskAssignor");

    @Override
    public Map<String, ?> assign(JsonNode application, String assignor) throws ReflectiveOperationException {
        Application app = new Application(application);
        Object configuration = configuration(application.path("config"));
        Object custom = Reflection.isCustom(assignor) ? Reflection.createCustom(assignor) : null;
        return assignor.equals("sticky") || Reflection.isA(custom, PUBLIC + "TaskAssignor")
            ? assignPublic(app, configuration, custom)
            : assignInternal(app, configuration, assignor);
    }

    // ---- The assignors of the package internals -----------------------------------------

    private Map<String, ?> assignInternal(Application app, Object configuration, String assignor)
            throws ReflectiveOperationException {
        Map<Object, Object> clients = new HashMap<>();
        for (JsonNode process : app.processes) {
            clients.put(processId(process), clientState(app, process));
        }
        List<Object> arguments =
            new ArrayList<>(List.of(clients, new HashSet<>(app.tasks), new HashSet<>(app.statefulTasks)));
        if (hasRacks) {
            arguments.add(rackAware(app, configuration));
        }
        arguments.add(configuration);
        Object instance = Reflection.isCustom(assignor)
            ? Reflection.createCustom(assignor) : internalOfRelease(assignor);
        Object followUp = Reflection.call(instance, "assign", arguments.toArray());
        Map<String, Object> answer = new TreeMap<>();
        for (JsonNode process : app.processes) {
            Object state = clients.get(processId(process));
            answer.put(process.get("id").textValue(), Driver.pair(
                "active", texts((Collection<?>) Reflection.call(state, "activeTasks")),
                "standby", texts((Collection<?>) Reflection.call(state, "standbyTasks"))));
        }
        return Driver.pair("followup_rebalance", followUp, "processes", answer);
    }

    private Object internalOfRelease(String assignor) throws ReflectiveOperationException {
        String sticky = hasProcessId ? "LegacyStickyTaskAssignor" : "StickyTaskAssignor";
        String simpleName = switch (assignor) {
            case "high-availability" -> "HighAvailabilityTaskAssignor";
            case "legacy-sticky" -> sticky;
            case "fallback-prior" -> "FallbackPriorTaskAssignor";
            default -> throw new IllegalArgumentException("unknown assignor " + assignor);
        };
        return Reflection.create(Class.forName(INTERNALS + simpleName));
    }

    private Object clientState(Application app, JsonNode process) throws ReflectiveOperationException {
        Class<?> type = Class.forName(INTERNALS + "ClientState");
        Set<TaskId> active = tasks(process.path("active"));
        Set<TaskId> standby = tasks(process.path("standby"));
        Map<TaskId, Long> lags = app.lags(process);
        int threads = process.get("threads").intValue();
        if (hasRacks) {
            return Reflection.create(type, active, standby, lags, tags(process), threads, processId(process));
        }
        try {
            return Reflection.create(type, active, standby, lags, tags(process), threads);
        } catch (NoSuchMethodException withoutTags) {
            return Reflection.create(type, active, standby, lags, threads);
        }
    }

    private Object rackAware(Application app, Object configuration) throws ReflectiveOperationException {
        Map<TaskId, Set<TopicPartition>> sources = new HashMap<>();
        Map<TaskId, Set<TopicPartition>> changelogs = new HashMap<>();
        Map<Object, Set<TaskId>> groups = new HashMap<>();
        Class<?> subtopologyType = Class.forName(PROCESSOR + "internals.TopologyMetadata$Subtopology");
        for (TaskId task : app.tasks) {
            sources.put(task, Set.of(app.partition(task, "source")));
            changelogs.put(task, app.statefulTasks.contains(task)
                ? Set.of(app.partition(task, "changelog")) : Set.of());
            groups.computeIfAbsent(
                Reflection.create(subtopologyType, task.subtopology(), null), none -> new HashSet<>()).add(task);
        }
        Map<Object, Map<String, Optional<String>>> racks = new HashMap<>();
        for (JsonNode process : app.processes) {
            racks.put(processId(process), Map.of("consumer", Driver.text(process, "rack")));
        }
        return Reflection.create(
            Class.forName(INTERNALS + "RackAwareTaskAssignor"), app.cluster(), sources, changelogs, groups,
            racks, new ChangelogTopics(app), configuration, Time.SYSTEM);
    }

    // ---- The public assignor of KIP-924 -------------------------------------------------

    private Map<String, ?> assignPublic(Application app, Object configuration, Object custom)
            throws ReflectiveOperationException {
        Map<TaskId, Object> tasks = new HashMap<>();
        for (TaskId task : app.tasks) {
            boolean isStateful = app.statefulTasks.contains(task);
            Set<Object> partitions = new HashSet<>();
            partitions.add(app.topicPartition(task, "source"));
            if (isStateful) {
                partitions.add(app.topicPartition(task, "changelog"));
            }
            Set<String> stores = isStateful ? Set.of("store") : Set.of();
            tasks.put(task, Reflection.create(
                Class.forName(INTERNALS + "DefaultTaskInfo"), task, isStateful, stores, partitions));
        }
        Map<Object, Object> states = new HashMap<>();
        for (JsonNode process : app.processes) {
            TreeMap<String, Set<TaskId>> byConsumer = new TreeMap<>();
            Set<TaskId> previous = new TreeSet<>(tasks(process.path("active")));
            previous.addAll(tasks(process.path("standby")));
            byConsumer.put("consumer", previous);
            states.put(processId(process), Reflection.create(
                Class.forName(INTERNALS + "DefaultKafkaStreamsState"), processId(process),
                process.get("threads").intValue(), tags(process), new TreeSet<>(tasks(process.path("active"))),
                new TreeSet<>(tasks(process.path("standby"))), byConsumer, Optional.empty(),
                Optional.of(app.lags(process)), Driver.text(process, "rack")));
        }
        Class<?> stateType = Class.forName(PUBLIC + "ApplicationState");
        InvocationHandler handler = (self, method, arguments) -> switch (method.getName()) {
            case "kafkaStreamsStates" -> states;
            case "assignmentConfigs" -> configuration;
            case "allTasks" -> tasks;
            default -> throw new IllegalArgumentException("unknown method " + method);
        };
        Object state = Proxy.newProxyInstance(
            stateType.getClassLoader(), new Class<?>[] {stateType}, handler);
        Object assignor = custom != null
            ? custom : Reflection.create(Class.forName(PUBLIC + "assignors.StickyTaskAssignor"));
        Object assignment = Reflection.call(assignor, "assign", state);
        Object error = Reflection.callOf(
            Class.forName(PUBLIC + "TaskAssignmentUtils"), null, "validateTaskAssignment", state, assignment);
        return Driver.pair("error", error.toString(), "processes", publicAnswer(app, assignment));
    }

    private static Map<String, Object> publicAnswer(Application app, Object assignment)
            throws ReflectiveOperationException {
        Map<String, Object> answer = new TreeMap<>();
        for (JsonNode process : app.processes) {
            answer.put(process.get("id").textValue(), Driver.pair("active", Set.of(), "standby", Set.of()));
        }
        for (Object process : (Collection<?>) Reflection.call(assignment, "assignment")) {
            Map<Boolean, Set<TaskId>> tasks = Map.of(true, new TreeSet<>(), false, new TreeSet<>());
            for (Object task : ((Map<?, ?>) Reflection.call(process, "tasks")).values()) {
                boolean isActive = Reflection.call(task, "type").toString().equals("ACTIVE");
                tasks.get(isActive).add((TaskId) Reflection.call(task, "id"));
            }
            String id = Reflection.call(Reflection.call(process, "processId"), "id").toString();
            answer.put(id, Driver.pair("active", texts(tasks.get(true)), "standby", texts(tasks.get(false))));
        }
        return answer;
    }

    // ---- Values of the document ---------------------------------------------------------

    /** Calls the constructor of the release. Older releases lack the last settings. */
    private Object configuration(JsonNode config) throws ReflectiveOperationException {
        long lag = config.path("acceptable_recovery_lag").asLong(10_000);
        int warmups = config.path("max_warmup_replicas").asInt(2);
        int standbys = config.path("num_standby_replicas").asInt(0);
        long interval = config.path("probing_rebalance_interval_ms").asLong(600_000);
        List<String> tags = Driver.texts(config.path("rack_aware_assignment_tags"));
        Integer traffic = optional(config.path("rack_aware_assignment_traffic_cost"));
        Integer nonOverlap = optional(config.path("rack_aware_assignment_non_overlap_cost"));
        String strategy = config.path("rack_aware_assignment_strategy").asText("none");
        if (hasProcessId) {
            return Reflection.create(
                Class.forName(PUBLIC + "AssignmentConfigs"), lag, warmups, standbys, interval, tags,
                optionalInt(traffic), optionalInt(nonOverlap), strategy);
        }
        Class<?> type = Class.forName(INTERNALS + "AssignorConfiguration$AssignmentConfigs");
        if (hasRacks) {
            return Reflection.create(
                type, lag, warmups, standbys, interval, tags, traffic, nonOverlap, strategy);
        }
        try {
            return Reflection.create(type, lag, warmups, standbys, interval, tags);
        } catch (NoSuchMethodException withoutTags) {
            return Reflection.create(type, lag, warmups, standbys, interval);
        }
    }

    private static Integer optional(JsonNode number) {
        return number.isNumber() ? number.intValue() : null;
    }

    private static OptionalInt optionalInt(Integer number) {
        return number == null ? OptionalInt.empty() : OptionalInt.of(number);
    }

    private Object processId(JsonNode process) throws ReflectiveOperationException {
        UUID id = UUID.fromString(process.get("id").textValue());
        return hasProcessId ? Reflection.create(Class.forName(PUBLIC + "ProcessId"), id) : id;
    }

    private static Map<String, String> tags(JsonNode process) {
        Map<String, String> tags = new HashMap<>();
        process.path("tags").properties().forEach(tag -> tags.put(tag.getKey(), tag.getValue().textValue()));
        return tags;
    }

    private static Set<TaskId> tasks(JsonNode texts) {
        Set<TaskId> tasks = new HashSet<>();
        texts.forEach(text -> tasks.add(TaskId.parse(text.textValue())));
        return tasks;
    }

    private static List<String> texts(Collection<?> tasks) {
        List<String> texts = new ArrayList<>();
        new TreeSet<>(tasks).forEach(task -> texts.add(task.toString()));
        return texts;
    }

    /** Subtopologies, tasks and topics of an application. */
    private static final class Application {
        final JsonNode processes;
        final Set<TaskId> tasks = new TreeSet<>();
        final Set<TaskId> statefulTasks = new TreeSet<>();
        private final JsonNode subtopologies;

        Application(JsonNode document) {
            processes = document.get("processes");
            subtopologies = document.get("subtopologies");
            for (Map.Entry<String, JsonNode> entry : subtopologies.properties()) {
                for (int number = 0; number < entry.getValue().get("partitions").intValue(); number++) {
                    TaskId task = new TaskId(Integer.parseInt(entry.getKey()), number);
                    tasks.add(task);
                    if (entry.getValue().get("stateful").booleanValue()) {
                        statefulTasks.add(task);
                    }
                }
            }
        }

        /** Returns the lag of each stateful task: the end offset if the process has no state. */
        Map<TaskId, Long> lags(JsonNode process) {
            Map<TaskId, Long> lags = new HashMap<>();
            Set<TaskId> active = tasks(process.path("active"));
            for (TaskId task : statefulTasks) {
                JsonNode known = process.path("lags").path(task.toString());
                long end = subtopology(task).path("end_offsets").path(task.partition()).asLong(0);
                lags.put(task, known.isNumber() ? known.longValue() : active.contains(task) ? RUNNING : end);
            }
            return lags;
        }

        TopicPartition partition(TaskId task, String kind) {
            return new TopicPartition(kind + "-" + task.subtopology(), task.partition());
        }

        /** Returns a partition of a task with its racks, for the public interface. */
        Object topicPartition(TaskId task, String kind) throws ReflectiveOperationException {
            boolean isSource = kind.equals("source");
            Runnable none = () -> { };
            Object partition = Reflection.create(
                Class.forName(INTERNALS + "DefaultTaskTopicPartition"), partition(task, kind), isSource,
                !isSource, none);
            Set<String> racks = new HashSet<>(racks(task, kind));
            if (!racks.isEmpty()) {
                Reflection.call(partition, "annotateWithRackIds", racks);
            }
            return partition;
        }

        List<String> racks(TaskId task, String kind) {
            String key = kind.equals("source") ? "racks" : "changelog_racks";
            return Driver.texts(subtopology(task).path(key).path(task.partition()));
        }

        Cluster cluster() {
            List<PartitionInfo> partitions = new ArrayList<>();
            Map<String, Node> nodes = new TreeMap<>();
            for (TaskId task : tasks) {
                Node[] replicas = replicas(task, "source", nodes);
                TopicPartition source = partition(task, "source");
                partitions.add(new PartitionInfo(
                    source.topic(), source.partition(), replicas.length > 0 ? replicas[0] : Node.noNode(),
                    replicas, replicas));
            }
            return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
        }

        Node[] replicas(TaskId task, String kind, Map<String, Node> nodes) {
            return racks(task, kind).stream()
                .map(rack -> nodes.computeIfAbsent(rack, none -> new Node(nodes.size(), "host", 9092, rack)))
                .toArray(Node[]::new);
        }

        private JsonNode subtopology(TaskId task) {
            return subtopologies.get(String.valueOf(task.subtopology()));
        }
    }

    /** The racks of the changelog topics, which a real application asks the brokers for. */
    private static final class ChangelogTopics extends InternalTopicManager {
        private static final Map<String, String> SETTINGS =
            Map.of(StreamsConfig.APPLICATION_ID_CONFIG, "kassay", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "host:9092");
        private final Application app;

        ChangelogTopics(Application app) {
            super(Time.SYSTEM, null, new StreamsConfig(SETTINGS));
            this.app = app;
        }

        // Overrides a method from 3.6.
        public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(Set<String> topics) {
            Map<String, Node> nodes = new TreeMap<>();
            Map<String, List<TopicPartitionInfo>> information = new HashMap<>();
            for (TaskId task : app.statefulTasks) {
                List<Node> replicas = List.of(app.replicas(task, "changelog", nodes));
                TopicPartition changelog = app.partition(task, "changelog");
                information.computeIfAbsent(changelog.topic(), none -> new ArrayList<>()).add(
                    new TopicPartitionInfo(
                        changelog.partition(), replicas.isEmpty() ? null : replicas.get(0), replicas, replicas));
            }
            information.keySet().retainAll(topics);
            return information;
        }
    }
}
