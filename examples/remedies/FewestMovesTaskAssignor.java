import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.apache.kafka.streams.processor.assignment.TaskInfo;

/**
 * High availability with the fewest state moves, for Kafka Streams from 3.8.
 *
 * <p>Setting: {@code task.assignor.class=FewestMovesTaskAssignor}. Each stateful task starts on a process
 * that has its state. Chains of transfers then make the numbers of tasks per thread even. While the
 * target of a task restores its state, another process runs the task, as in high availability. Client
 * tags and rack-aware strategies have no effect. docs/remedies.md describes the algorithm.
 */
public final class FewestMovesTaskAssignor implements TaskAssignor {
    private static final long RUNNING = -2;

    @Override
    public TaskAssignment assign(ApplicationState application) {
        AssignmentConfigs configs = application.assignmentConfigs();
        SortedSet<TaskId> stateful = new TreeSet<>();
        SortedSet<TaskId> stateless = new TreeSet<>();
        for (TaskInfo task : application.allTasks().values()) {
            (task.isStateful() ? stateful : stateless).add(task.id());
        }
        List<Process> processes = new ArrayList<>();
        for (KafkaStreamsState state : application.kafkaStreamsStates(true).values()) {
            processes.add(new Process(state, stateful, configs.acceptableRecoveryLag()));
        }
        processes.sort(Comparator.comparing(process -> process.id));
        int common = processes.stream().mapToInt(process -> process.threads).reduce(1, FewestMovesTaskAssignor::lcm);
        processes.forEach(process -> process.weight = common / process.threads);
        place(processes, stateful, 1, process -> process.active);
        place(processes, stateful, configs.numStandbyReplicas(), process -> process.standby);
        boolean waits = new Movements(processes, configs.maxWarmupReplicas()).run();
        for (TaskId task : stateless) {
            Process least = least(processes, any -> true, process -> (double) process.active.size() / process.threads);
            least.active.add(task);
        }
        List<KafkaStreamsAssignment> assignments = new ArrayList<>();
        for (Process process : processes) {
            assignments.add(KafkaStreamsAssignment.of(process.id, process.assigned()));
        }
        if (waits) {
            Instant next = Instant.now().plusMillis(configs.probingRebalanceIntervalMs());
            assignments.set(0, assignments.get(0).withFollowupRebalance(next));
        }
        return new TaskAssignment(assignments);
    }

    // ---- Targets of the stateful tasks --------------------------------------------------

    private static void place(
            List<Process> processes, SortedSet<TaskId> stateful, int copies,
            Function<Process, SortedSet<TaskId>> tasks) {
        int move = 1 + copies * stateful.size();
        for (TaskId task : stateful) {
            for (int copy = 0; copy < copies; copy++) {
                processes.stream().filter(process -> !process.has(task))
                    .min(Comparator.<Process>comparingInt(process -> process.cost(task, move))
                        .thenComparingLong(process -> process.isCaughtUp(task) ? 0 : process.lags.get(task))
                        .thenComparingInt(process -> process.change(1))
                        .thenComparing(process -> process.id))
                    .ifPresent(chosen -> tasks.apply(chosen).add(task));
            }
        }
        for (Chain chain = best(processes, tasks, move); chain != null; chain = best(processes, tasks, move)) {
            for (Chain step = chain; step.transfer != null; step = step.before) {
                tasks.apply(step.transfer.giver).remove(step.transfer.task);
                tasks.apply(step.transfer.taker).add(step.transfer.task);
            }
        }
    }

    private static int lcm(int first, int second) {
        int a = first;
        for (int b = second; b != 0; ) {
            int rest = a % b;
            a = b;
            b = rest;
        }
        return first / a * second;
    }

    /** Returns the cheapest chain among those with the lowest imbalance, or null (Bellman-Ford). */
    private static Chain best(List<Process> processes, Function<Process, SortedSet<TaskId>> tasks, int move) {
        List<Transfer> transfers = transfers(processes, tasks, move);
        Chain best = null;
        int imbalance = 0;
        for (Process first : processes) {
            Map<Process, Chain> found = new HashMap<>(Map.of(first, new Chain(0, null, null)));
            for (int length = 1; length < processes.size(); length++) {
                Map<Process, Chain> before = new HashMap<>(found);
                for (Transfer transfer : transfers) {
                    Chain chain = before.get(transfer.giver);
                    Chain known = found.get(transfer.taker);
                    if (chain != null && (known == null || chain.cost + transfer.cost < known.cost)) {
                        found.put(transfer.taker, new Chain(chain.cost + transfer.cost, transfer, chain));
                    }
                }
            }
            for (Process last : processes) {
                Chain chain = found.get(last);
                int change = last.change(1) + first.change(-1);
                if (chain == null || last == first || change > imbalance) {
                    continue;
                }
                if (change < imbalance || chain.cost < (best == null ? 0 : best.cost)) {
                    best = chain;
                    imbalance = change;
                }
            }
        }
        return best;
    }

    /** Returns the cheapest transfer of a task between each pair of processes. */
    private static List<Transfer> transfers(
            List<Process> processes, Function<Process, SortedSet<TaskId>> tasks, int move) {
        List<Transfer> transfers = new ArrayList<>();
        for (Process giver : processes) {
            for (Process taker : processes) {
                tasks.apply(giver).stream().filter(task -> !taker.has(task))
                    .map(task -> new Transfer(taker.cost(task, move) - giver.cost(task, move), task, giver, taker))
                    .min(Comparator.comparingInt(transfer -> transfer.cost))
                    .ifPresent(transfers::add);
            }
        }
        return transfers;
    }

    private static Process least(
            List<Process> processes, Predicate<Process> isAllowed, ToDoubleFunction<Process> load) {
        return processes.stream().filter(isAllowed)
            .min(Comparator.comparingDouble(load).thenComparing(process -> process.id)).orElse(null);
    }

    private static final class Transfer {
        final int cost;
        final TaskId task;
        final Process giver;
        final Process taker;

        Transfer(int cost, TaskId task, Process giver, Process taker) {
            this.cost = cost;
            this.task = task;
            this.giver = giver;
            this.taker = taker;
        }
    }

    /** A transfer after the transfers of another chain; without a transfer, the start. */
    private static final class Chain {
        final int cost;
        final Transfer transfer;
        final Chain before;

        Chain(int cost, Transfer transfer, Chain before) {
            this.cost = cost;
            this.transfer = transfer;
            this.before = before;
        }
    }

    // ---- Tasks run where their state is, until the target has caught up -----------------

    private static final class Movements {
        private final List<Process> processes;
        private int remainingWarmups;

        Movements(List<Process> processes, int maxWarmups) {
            this.processes = processes;
            this.remainingWarmups = maxWarmups;
        }

        /** Returns whether a task waits for its target. */
        boolean run() {
            int needed = 0;
            for (PriorityQueue<TaskOnProcess> queue = needed(p -> p.active); !queue.isEmpty(); needed++) {
                moveActive(queue.poll());
            }
            for (PriorityQueue<TaskOnProcess> queue = needed(p -> p.standby); !queue.isEmpty(); ) {
                needed += moveStandby(queue.poll()) ? 1 : 0;
            }
            return needed > 0;
        }

        private void moveActive(TaskOnProcess movement) {
            TaskId task = movement.task;
            Process source = least(
                processes, p -> p.isCaughtUp(task) && p.standby.contains(task), Process::load);
            if (source == null) {
                source = least(processes, p -> p.isCaughtUp(task), Process::load);
            }
            if (source == null) {
                source = byLag(task).get(0);
            }
            movement.process.active.remove(task);
            if (source.standby.remove(task)) {
                movement.process.standby.add(task);
            } else if (remainingWarmups-- > 0) {
                movement.process.standby.add(task);
                movement.process.warmups.add(task);
            }
            source.active.add(task);
        }

        private boolean moveStandby(TaskOnProcess movement) {
            TaskId task = movement.task;
            Process source = least(processes, p -> p.isCaughtUp(task) && !p.has(task), Process::load);
            if (source == null) {
                List<Process> better = byLag(task);
                better = better.subList(0, better.indexOf(movement.process));
                source = better.stream().filter(process -> !process.has(task)).findFirst().orElse(null);
            }
            if (source == null) {
                return false;
            }
            source.standby.add(task);
            if (remainingWarmups-- <= 0) {
                movement.process.standby.remove(task);
            }
            return true;
        }

        /** Returns tasks on processes that are not caught up, fewest caught-up processes first. */
        private PriorityQueue<TaskOnProcess> needed(Function<Process, SortedSet<TaskId>> tasks) {
            PriorityQueue<TaskOnProcess> queue = new PriorityQueue<>(
                Comparator.<TaskOnProcess>comparingLong(
                    one -> processes.stream().filter(p -> p.isCaughtUp(one.task)).count())
                    .thenComparing(one -> one.task));
            for (Process process : processes) {
                for (TaskId task : tasks.apply(process)) {
                    boolean hasBetter = byLag(task).get(0).lags.get(task) < process.lags.get(task);
                    if (hasBetter && !process.isCaughtUp(task) && !process.warmups.contains(task)) {
                        queue.add(new TaskOnProcess(task, process));
                    }
                }
            }
            return queue;
        }

        private List<Process> byLag(TaskId task) {
            List<Process> sorted = new ArrayList<>(processes);
            sorted.sort(Comparator.comparingLong(process -> process.lags.get(task)));
            return sorted;
        }
    }

    private static final class TaskOnProcess {
        final TaskId task;
        final Process process;

        TaskOnProcess(TaskId task, Process process) {
            this.task = task;
            this.process = process;
        }
    }

    /** A process: its state of each stateful task, and the tasks that it is assigned. */
    private static final class Process {
        final ProcessId id;
        final int threads;
        final Map<TaskId, Long> lags = new HashMap<>();
        final SortedSet<TaskId> active = new TreeSet<>();
        final SortedSet<TaskId> standby = new TreeSet<>();
        final Set<TaskId> warmups = new HashSet<>();
        private final long acceptableLag;
        private int weight;

        Process(KafkaStreamsState state, SortedSet<TaskId> stateful, long acceptableLag) {
            this.id = state.processId();
            this.threads = state.numProcessingThreads();
            this.acceptableLag = acceptableLag;
            Map<TaskId, Long> known = state.statefulTasksToLagSums();
            stateful.forEach(task -> lags.put(task, known.getOrDefault(task, Long.MAX_VALUE)));
        }

        boolean isCaughtUp(TaskId task) {
            long lag = lags.get(task);
            return lag == RUNNING || lag >= 0 && lag <= acceptableLag || acceptableLag == Long.MAX_VALUE;
        }

        /** One move of state costs more than all changes between processes with the state. */
        int cost(TaskId task, int move) {
            return lags.get(task) == RUNNING ? 0 : isCaughtUp(task) ? 1 : move;
        }

        boolean has(TaskId task) {
            return active.contains(task) || standby.contains(task);
        }

        /** Change of the sum over processes of load squared / threads, if it takes (1) or gives (-1) a task. */
        int change(int tasks) {
            return (2 * count() * tasks + 1) * weight;
        }

        int count() {
            return active.size() + standby.size();
        }

        double load() {
            return (double) count() / threads;
        }

        Set<AssignedTask> assigned() {
            Set<AssignedTask> tasks = new HashSet<>();
            active.forEach(task -> tasks.add(new AssignedTask(task, AssignedTask.Type.ACTIVE)));
            standby.forEach(task -> tasks.add(new AssignedTask(task, AssignedTask.Type.STANDBY)));
            return tasks;
        }
    }
}
