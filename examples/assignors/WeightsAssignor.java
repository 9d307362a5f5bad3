import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * Assignor for weights per window, such as the records of each partition in each hour of a day.
 *
 * It keeps the owned partitions, and lowers the peak: the maximum load of a member in a window. The
 * property "weights.file" of the consumer names a file with one line per partition:
 * topic,partition,weight,weight,... with one weight per window. All members need the same file. A
 * partition without a line has the mean weight of its topic. Moved partitions are first revoked.
 */
public class WeightsAssignor implements ConsumerPartitionAssignor, Configurable {
    private final Map<TopicPartition, long[]> weights = new HashMap<>();
    private int windows = 1;

    @Override
    public String name() {
        return "weights";
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return List.of(RebalanceProtocol.COOPERATIVE);
    }

    @Override
    public void configure(Map<String, ?> properties) {
        Object file = properties.get("weights.file");
        try {
            for (String line : file == null ? List.<String>of() : Files.readAllLines(Path.of(file.toString()))) {
                String[] cells = line.trim().split(",");
                long[] row = Arrays.stream(cells).skip(2).mapToLong(Long::parseLong).toArray();
                if (!weights.isEmpty() && row.length != windows)
                    throw new KafkaException(file + ": expected " + windows + " weights in: " + line);
                windows = row.length;
                weights.put(new TopicPartition(cells[0], Integer.parseInt(cells[1])), row);
            }
        } catch (IOException | NumberFormatException | IndexOutOfBoundsException error) {
            throw new KafkaException(file + ": expected lines topic,partition,weight,...", error);
        }
    }

    @Override
    public GroupAssignment assign(Cluster cluster, GroupSubscription group) {
        Map<String, Subscription> members = new TreeMap<>(group.groupSubscription());
        Map<TopicPartition, String> owners = new HashMap<>();
        Map<TopicPartition, Integer> generations = new HashMap<>();
        members.forEach((member, subscription) -> {
            int generation = subscription.generationId().orElse(-1);
            for (TopicPartition partition : subscription.ownedPartitions())
                if (subscription.topics().contains(partition.topic())
                        && generation > generations.getOrDefault(partition, -2)) {
                    owners.put(partition, member);
                    generations.put(partition, generation);
                }
        });
        Map<String, long[]> loads = new TreeMap<>();
        Map<String, List<TopicPartition>> target = new TreeMap<>();
        members.keySet().forEach(member -> loads.put(member, new long[windows]));
        members.keySet().forEach(member -> target.put(member, new ArrayList<>()));
        List<TopicPartition> free = new ArrayList<>();
        members.values().stream().flatMap(each -> each.topics().stream()).distinct().sorted().forEach(topic -> {
            for (int number = 0; number < cluster.partitionsForTopic(topic).size(); number++) {
                TopicPartition partition = new TopicPartition(topic, number);
                if (!owners.containsKey(partition)) free.add(partition);
                else move(partition, null, owners.get(partition), target, loads);
            }
        });
        free.sort(Comparator.comparingLong(partition -> -peak(weight(partition), new long[windows], 0)));
        for (TopicPartition partition : free)
            members.keySet().stream()
                .filter(member -> members.get(member).topics().contains(partition.topic()))
                .min(Comparator.comparingLong(member -> peak(loads.get(member), weight(partition), 1)))
                .ifPresent(member -> move(partition, null, member, target, loads));
        while (improve(members, target, loads)) { }
        Map<String, Assignment> result = new HashMap<>();
        target.forEach((member, partitions) -> {
            partitions.removeIf(partition -> !owners.getOrDefault(partition, member).equals(member));
            result.put(member, new Assignment(partitions));
        });
        return new GroupAssignment(result);
    }

    /** Make the transfer or exchange with the fullest member that lowers its peak most. */
    private boolean improve(Map<String, Subscription> members, Map<String, List<TopicPartition>> target,
                            Map<String, long[]> loads) {
        long[] none = new long[windows];
        String giver = loads.keySet().stream()
            .max(Comparator.comparingLong(member -> peak(loads.get(member), none, 0))).orElseThrow();
        long lowest = peak(loads.get(giver), none, 0);
        Runnable best = null;
        for (TopicPartition partition : target.get(giver))
            for (String member : members.keySet()) {
                if (member.equals(giver) || !members.get(member).topics().contains(partition.topic())) continue;
                List<TopicPartition> others = new ArrayList<>(target.get(member));
                others.add(null); // a transfer without an exchange
                for (TopicPartition other : others) {
                    if (other != null && !members.get(giver).topics().contains(other.topic())) continue;
                    long[] moved = weight(partition).clone();
                    if (other != null) add(moved, weight(other), -1);
                    long after = Math.max(peak(loads.get(giver), moved, -1), peak(loads.get(member), moved, 1));
                    if (after >= lowest) continue;
                    lowest = after;
                    best = () -> {
                        move(partition, giver, member, target, loads);
                        if (other != null) move(other, member, giver, target, loads);
                    };
                }
            }
        if (best != null) best.run();
        return best != null;
    }

    private void move(TopicPartition partition, String from, String to, Map<String, List<TopicPartition>> target,
                      Map<String, long[]> loads) {
        if (from != null) {
            target.get(from).remove(partition);
            add(loads.get(from), weight(partition), -1);
        }
        target.get(to).add(partition);
        add(loads.get(to), weight(partition), 1);
    }

    private static void add(long[] loads, long[] weight, int sign) {
        for (int window = 0; window < loads.length; window++) loads[window] += sign * weight[window];
    }

    private static long peak(long[] loads, long[] weight, int sign) {
        return IntStream.range(0, loads.length).mapToLong(at -> loads[at] + sign * weight[at]).max().orElse(0);
    }

    private long[] weight(TopicPartition partition) {
        return weights.computeIfAbsent(partition, missing -> {
            long[] sums = new long[windows];
            long[][] known = weights.entrySet().stream().filter(each -> each.getKey().topic().equals(missing.topic()))
                .map(Map.Entry::getValue).toArray(long[][]::new);
            for (long[] row : known) add(sums, row, 1);
            return Arrays.stream(sums).map(sum -> known.length == 0 ? 1 : sum / known.length).toArray();
        });
    }
}
