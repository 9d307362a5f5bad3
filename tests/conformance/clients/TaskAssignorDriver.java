import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Calls a task assignor of KIP-924. Argument: the class. It reads a document of kind "streams" per
 * line, and prints its answer with the result of Kafka's validation as "error".
 */
public final class TaskAssignorDriver {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        TaskAssignor assignor =
            (TaskAssignor) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Application application = new Application(JSON.readTree(line));
            TaskAssignor.TaskAssignment result = assignor.assign(application);
            Map<String, Object> processes = new TreeMap<>();
            boolean followUp = false;
            for (KafkaStreamsAssignment one : result.assignment()) {
                Map<String, SortedSet<TaskId>> tasks =
                    Map.of("ACTIVE", new TreeSet<>(), "STANDBY", new TreeSet<>());
                one.tasks().values().forEach(task -> tasks.get(task.type().name()).add(task.id()));
                processes.put(one.processId().id().toString(), Map.of(
                    "active", texts(tasks.get("ACTIVE")), "standby", texts(tasks.get("STANDBY"))));
                followUp |= one.followupRebalanceDeadline().isPresent();
            }
            System.out.println(JSON.writeValueAsString(Map.of(
                "error", TaskAssignmentUtils.validateTaskAssignment(application, result).name(),
                "followup_rebalance", followUp, "processes", processes)));
        }
    }

    private static List<String> texts(SortedSet<TaskId> tasks) {
        List<String> texts = new ArrayList<>();
        tasks.forEach(task -> texts.add(task.toString()));
        return texts;
    }

    private static final class Application implements ApplicationState {
        private final JsonNode document;
        private final Map<TaskId, TaskInfo> tasks = new HashMap<>();
        private final Map<TaskId, Long> ends = new HashMap<>();

        Application(JsonNode document) {
            this.document = document;
            document.get("subtopologies").properties().forEach(entry -> {
                JsonNode fields = entry.getValue();
                boolean isStateful = fields.get("stateful").booleanValue();
                for (int number = 0; number < fields.get("partitions").intValue(); number++) {
                    TaskId task = new TaskId(Integer.parseInt(entry.getKey()), number);
                    tasks.put(task, new Task(task, isStateful));
                    if (isStateful) {
                        ends.put(task, fields.path("end_offsets").path(number).asLong(0));
                    }
                }
            });
        }

        @Override
        public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
            Map<ProcessId, KafkaStreamsState> states = new HashMap<>();
            document.get("processes").forEach(one -> states.put(id(one), new State(one, ends)));
            return states;
        }

        @Override
        public AssignmentConfigs assignmentConfigs() {
            JsonNode config = document.path("config");
            return new AssignmentConfigs(
                config.path("acceptable_recovery_lag").asLong(10_000),
                config.path("max_warmup_replicas").asInt(2), config.path("num_standby_replicas").asInt(0),
                config.path("probing_rebalance_interval_ms").asLong(600_000), List.of());
        }

        @Override
        public Map<TaskId, TaskInfo> allTasks() {
            return tasks;
        }
    }

    private static ProcessId id(JsonNode process) {
        return new ProcessId(UUID.fromString(process.get("id").textValue()));
    }

    private record Task(TaskId id, boolean isStateful) implements TaskInfo {
        @Override
        public Set<String> stateStoreNames() {
            return isStateful ? Set.of("store") : Set.of();
        }

        @Override
        public Set<TaskTopicPartition> topicPartitions() {
            return Set.of();
        }
    }

    private record State(JsonNode process, Map<TaskId, Long> ends) implements KafkaStreamsState {
        @Override
        public ProcessId processId() {
            return id(process);
        }

        @Override
        public int numProcessingThreads() {
            return process.get("threads").intValue();
        }

        @Override
        public SortedSet<String> consumerClientIds() {
            return new TreeSet<>();
        }

        @Override
        public SortedSet<TaskId> previousActiveTasks() {
            return tasks("active");
        }

        @Override
        public SortedSet<TaskId> previousStandbyTasks() {
            return tasks("standby");
        }

        private SortedSet<TaskId> tasks(String key) {
            SortedSet<TaskId> tasks = new TreeSet<>();
            process.path(key).forEach(text -> tasks.add(TaskId.parse(text.textValue())));
            return tasks;
        }

        @Override
        public long lagFor(TaskId task) {
            JsonNode known = process.path("lags").path(task.toString());
            return known.isNumber() ? known.longValue() : tasks("active").contains(task) ? -2 : ends.get(task);
        }

        @Override
        public SortedSet<TaskId> prevTasksByLag(String consumerClientId) {
            return new TreeSet<>();
        }

        @Override
        public Map<TaskId, Long> statefulTasksToLagSums() {
            Map<TaskId, Long> lags = new HashMap<>();
            ends.keySet().forEach(task -> lags.put(task, lagFor(task)));
            return lags;
        }

        @Override
        public Optional<HostInfo> hostInfo() {
            return Optional.empty();
        }

        @Override
        public Map<String, String> clientTags() {
            return Map.of();
        }

        @Override
        public Optional<String> rackId() {
            return Optional.empty();
        }
    }
}
