import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.TargetState;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.EagerAssignor;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * The assignors of Kafka Connect, from 3.5, on a sequence of events with a simulated clock.
 *
 * <p>A rebalance takes no time. After a revocation and at the end of a delay, the workers rebalance
 * again. A step of a sequence first waits, then applies its event, and ends with the first rebalance
 * without revocation, or without revocation and delay.
 */
final class ConnectAssignors implements Driver.Assignors {
    private static final short PROTOCOL = 2;
    private static final int MAX_REBALANCES = 1000;

    @Override
    public Map<String, ?> assign(JsonNode cluster, String assignor) throws ReflectiveOperationException {
        boolean isCustom = Reflection.isCustom(assignor);
        if (assignor.equals("eager")
                || isCustom && EagerAssignor.class.isAssignableFrom(Reflection.customClass(assignor))) {
            List<Object> steps = new ArrayList<>();
            for (JsonNode step : cluster.get("steps")) {
                Object eager = isCustom
                    ? Reflection.createCustom(assignor, new LogContext()) : new EagerAssignor(new LogContext());
                steps.add(Map.of("state", eager(step, eager)));
            }
            return Map.of("steps", steps);
        }
        return new Simulation(assignor, cluster.path("scheduled_rebalance_max_delay_ms").asInt(300_000))
            .run(cluster.get("steps"));
    }

    /** One sequence with the incremental assignor. */
    private static final class Simulation {
        private final String name;
        private final int maxDelay;
        private final Time time = (Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {Time.class}, (self, method, arguments) -> {
                if (method.getName().equals("milliseconds")) {
                    return this.now;
                }
                throw new UnsupportedOperationException(method.getName());
            });
        private IncrementalCooperativeAssignor assignor;
        private long now;
        private int generation;
        private int delay;
        private JsonNode connectors;
        private Map<String, ExtendedAssignment> workers = new LinkedHashMap<>();
        private long connectorDowntime;
        private long taskDowntime;
        private List<Object> rounds = new ArrayList<>();

        Simulation(String name, int maxDelay) {
            this.name = name;
            this.maxDelay = maxDelay;
        }

        Map<String, ?> run(JsonNode steps) throws ReflectiveOperationException {
            List<Object> answer = new ArrayList<>();
            for (JsonNode step : steps) {
                rounds = new ArrayList<>();
                advance(now + step.path("wait_ms").asLong(0));
                apply(step);
                rebalance();
                while (delay > 0 && step.path("until_stable").asBoolean(true)) {
                    pass(delay);
                    rebalance();
                }
                Map<String, Object> state = new LinkedHashMap<>();
                state.put("at_ms", now);
                state.put("connector_downtime_ms", connectorDowntime);
                state.put("rounds", rounds);
                state.put("stable", delay == 0);
                Map<String, Object> assigned = new TreeMap<>();
                workers.forEach((worker, own) -> assigned.put(worker, document(own.connectors(), own.tasks())));
                state.put("state", assigned);
                state.put("task_downtime_ms", taskDowntime);
                answer.add(state);
            }
            return Map.of("steps", answer);
        }

        private void apply(JsonNode step) throws ReflectiveOperationException {
            connectors = step.get("connectors");
            if (assignor == null || step.path("new_leader").asBoolean(false)) {
                assignor = Reflection.isCustom(name)
                    ? (IncrementalCooperativeAssignor) Reflection.createCustom(name, new LogContext(), time, maxDelay)
                    : new IncrementalCooperativeAssignor(new LogContext(), time, maxDelay);
            }
            Map<String, ExtendedAssignment> present = new LinkedHashMap<>();
            for (String worker : Driver.texts(step.get("workers"))) {
                JsonNode running = step.path("running").path(worker);
                present.put(worker, running.isMissingNode()
                    ? workers.getOrDefault(worker, assignment(List.of(), List.of(), List.of(), List.of(), 0))
                    : assignment(
                        Driver.texts(running.path("connectors")), tasks(running.path("tasks")), List.of(),
                        List.of(), 0));
            }
            workers = present;
        }

        /** Advances the clock, and rebalances at the end of each earlier delay. */
        private void advance(long until) throws ReflectiveOperationException {
            while (delay > 0 && now + delay < until) {
                pass(delay);
                rebalance();
            }
            delay = (int) Math.max(0, delay - (until - now));
            pass(until - now);
        }

        /** Counts the time in which configured connectors and tasks do not run. */
        private void pass(long milliseconds) {
            now += milliseconds;
            if (connectors == null || milliseconds == 0) {
                return;
            }
            Set<String> stoppedConnectors = new HashSet<>();
            connectors.fieldNames().forEachRemaining(stoppedConnectors::add);
            Set<ConnectorTaskId> stoppedTasks = new HashSet<>(configuredTasks(connectors));
            for (ExtendedAssignment worker : workers.values()) {
                worker.connectors().forEach(stoppedConnectors::remove);
                worker.tasks().forEach(stoppedTasks::remove);
            }
            connectorDowntime += milliseconds * stoppedConnectors.size();
            taskDowntime += milliseconds * stoppedTasks.size();
        }

        /** Rebalances until a rebalance revokes nothing. */
        private void rebalance() throws ReflectiveOperationException {
            for (int round = 0; round < MAX_REBALANCES; round++) {
                if (!rebalanceOnce()) {
                    return;
                }
            }
            throw new IllegalStateException("the workers rebalance without end");
        }

        private boolean rebalanceOnce() throws ReflectiveOperationException {
            Map<String, ConnectorsAndTasks> loads = new HashMap<>();
            workers.forEach((worker, own) -> {
                ExtendedAssignment sent = transmitted(own);
                loads.put(worker, new ConnectorsAndTasks.Builder().with(sent.connectors(), sent.tasks()).build());
            });
            Object result = Reflection.callHidden(
                assignor, "performTaskAssignment", configuration(connectors), generation, generation + 1, loads);
            generation++;
            Field field = IncrementalCooperativeAssignor.class.getDeclaredField("delay");
            field.setAccessible(true);
            delay = field.getInt(assignor);
            Map<String, Object> assigned = new TreeMap<>();
            Map<String, Object> revoked = new TreeMap<>();
            for (Map.Entry<String, ExtendedAssignment> worker : workers.entrySet()) {
                ExtendedAssignment received = transmitted(assignment(
                    of(result, "newlyAssignedConnectors", worker.getKey()),
                    of(result, "newlyAssignedTasks", worker.getKey()),
                    of(result, "newlyRevokedConnectors", worker.getKey()),
                    of(result, "newlyRevokedTasks", worker.getKey()), delay));
                put(assigned, worker.getKey(), received.connectors(), received.tasks());
                put(revoked, worker.getKey(), received.revokedConnectors(), received.revokedTasks());
                worker.setValue(merged(received, worker.getValue()));
            }
            Map<String, Object> round = new LinkedHashMap<>();
            round.put("at_ms", now);
            round.put("delay_ms", delay);
            round.put("assigned", assigned);
            round.put("revoked", revoked);
            rounds.add(round);
            return !revoked.isEmpty();
        }

        /** Returns the new assignment of a worker: new entries precede kept ones. */
        private static ExtendedAssignment merged(ExtendedAssignment received, ExtendedAssignment own) {
            List<String> connectors = new ArrayList<>(received.connectors());
            own.connectors().stream()
                .filter(kept -> !received.revokedConnectors().contains(kept)).forEach(connectors::add);
            List<ConnectorTaskId> tasks = new ArrayList<>(received.tasks());
            own.tasks().stream().filter(kept -> !received.revokedTasks().contains(kept)).forEach(tasks::add);
            return assignment(connectors, tasks, List.of(), List.of(), 0);
        }
    }

    // ---- Calls of Kafka's classes -------------------------------------------------------

    /** Returns the assignment after encoding and decoding, which groups the tasks by connector. */
    private static ExtendedAssignment transmitted(ExtendedAssignment assignment) {
        return ExtendedAssignment.fromStruct(PROTOCOL, assignment.toStruct());
    }

    private static ExtendedAssignment assignment(
            Collection<String> connectors, Collection<ConnectorTaskId> tasks,
            Collection<String> revokedConnectors, Collection<ConnectorTaskId> revokedTasks, int delay) {
        return new ExtendedAssignment(
            PROTOCOL, ConnectProtocol.Assignment.NO_ERROR, "leader", "url", 0, connectors, tasks,
            revokedConnectors, revokedTasks, delay);
    }

    @SuppressWarnings("unchecked")
    private static <T> Collection<T> of(Object result, String name, String worker)
            throws ReflectiveOperationException {
        return (Collection<T>) Reflection.callHidden(result, name, worker);
    }

    private static Map<String, Object> eager(JsonNode step, Object assignor) throws ReflectiveOperationException {
        Field unsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        unsafe.setAccessible(true);
        WorkerCoordinator coordinator = (WorkerCoordinator)
            ((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(WorkerCoordinator.class);
        coordinator.configSnapshot(configuration(step.get("connectors")));
        List<String> workers = Driver.texts(step.get("workers"));
        Map<String, ExtendedWorkerState> states = new HashMap<>();
        workers.forEach(worker -> states.put(worker, new ExtendedWorkerState("url", 0, null)));
        Map<String, Object> state = new TreeMap<>();
        if (workers.isEmpty()) {
            return state;
        }
        Map<?, ?> assignments = (Map<?, ?>) Reflection.callHidden(
            assignor, "performTaskAssignment", workers.get(0), 0L, states, coordinator);
        assignments.forEach((worker, bytes) -> {
            ConnectProtocol.Assignment own = ConnectProtocol.deserializeAssignment((ByteBuffer) bytes);
            state.put((String) worker, document(own.connectors(), own.tasks()));
        });
        return state;
    }

    /** Calls a constructor of the release. Only the counts, configurations and states matter. */
    private static ClusterConfigState configuration(JsonNode connectors) throws ReflectiveOperationException {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Map<String, String>> configurations = new HashMap<>();
        Map<String, TargetState> states = new HashMap<>();
        Map<ConnectorTaskId, Map<String, String>> tasks = new HashMap<>();
        connectors.properties().forEach(connector -> {
            counts.put(connector.getKey(), connector.getValue().intValue());
            configurations.put(connector.getKey(), Map.of());
            states.put(connector.getKey(), TargetState.STARTED);
        });
        configuredTasks(connectors).forEach(task -> tasks.put(task, Map.of()));
        Constructor<?> constructor = ClusterConfigState.class.getConstructors()[0];
        Class<?>[] types = constructor.getParameterTypes();
        Object[] arguments = new Object[types.length];
        List<Map<?, ?>> maps = new ArrayList<>(List.of(counts, configurations, states, tasks));
        for (int i = 0; i < types.length; i++) {
            if (types[i] == long.class) {
                arguments[i] = 0L;
            } else if (types[i] == Map.class) {
                arguments[i] = maps.isEmpty() ? new HashMap<>() : maps.remove(0);
            } else if (types[i] == Set.class) {
                arguments[i] = new HashSet<>();
            }
        }
        return (ClusterConfigState) constructor.newInstance(arguments);
    }

    // ---- Values of the document ---------------------------------------------------------

    private static List<ConnectorTaskId> configuredTasks(JsonNode connectors) {
        List<ConnectorTaskId> tasks = new ArrayList<>();
        connectors.properties().forEach(connector -> {
            for (int number = 0; number < connector.getValue().intValue(); number++) {
                tasks.add(new ConnectorTaskId(connector.getKey(), number));
            }
        });
        return tasks;
    }

    private static List<ConnectorTaskId> tasks(JsonNode texts) {
        List<ConnectorTaskId> tasks = new ArrayList<>();
        texts.forEach(text -> {
            int dash = text.textValue().lastIndexOf('-');
            int number = Integer.parseInt(text.textValue().substring(dash + 1));
            tasks.add(new ConnectorTaskId(text.textValue().substring(0, dash), number));
        });
        return tasks;
    }

    private static void put(
            Map<String, Object> documents, String worker, Collection<String> connectors,
            Collection<ConnectorTaskId> tasks) {
        if (!connectors.isEmpty() || !tasks.isEmpty()) {
            documents.put(worker, document(connectors, tasks));
        }
    }

    private static Map<String, Object> document(
            Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        List<String> texts = new ArrayList<>();
        new TreeSet<>(tasks).forEach(task -> texts.add(task.toString()));
        return Driver.pair("connectors", new TreeSet<>(connectors), "tasks", texts);
    }
}
