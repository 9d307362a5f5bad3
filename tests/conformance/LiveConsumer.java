import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumer in a separate thread, which polls until it is closed. Lists are passed as text:
 * one topic per line, partitions as "topic:number", offsets as "topic:number:offset".
 */
public final class LiveConsumer {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(5);
    private static final Duration METADATA = Duration.ofMillis(300);
    /** Prefix of a regular expression, which the broker resolves, in place of topics. */
    private static final String PATTERN = "pattern:";

    private final Properties properties = new Properties();
    private final LinkedBlockingQueue<FutureTask<Integer>> requests = new LinkedBlockingQueue<>();
    private final Thread thread;
    private final StringBuilder assignedGenerations = new StringBuilder();
    private final StringBuffer ownership = new StringBuffer();
    private KafkaConsumer<byte[], byte[]> consumer;

    private volatile String membership = "-1";
    private volatile boolean frozen;
    private final CountDownLatch stopped = new CountDownLatch(1);
    private volatile GroupMembershipOperation ending;
    private volatile Throwable failure;

    /** Starts the thread, which joins the group. */
    public LiveConsumer(Map<String, String> settings, String topics) {
        properties.putAll(settings);
        thread = new Thread(() -> run(topics), settings.get("client.id"));
        thread.setDaemon(true);
        // The consumer loads assignors of this directory with this loader.
        thread.setContextClassLoader(LiveConsumer.class.getClassLoader());
        thread.start();
    }

    /**
     * Membership after the last poll: a line with its generation and the generations in which
     * it received an assignment, then its partitions.
     */
    public String membership() {
        return membership;
    }

    /** One line per assignment (+) and revocation (-): sign, time in ms, and partitions. */
    public String ownership() {
        return ownership.toString();
    }

    /** Asks for a rebalance, which only the leader of a classic group starts. */
    public void enforceRebalance(long millis) throws Exception {
        request(millis, () -> consumer.enforceRebalance());
    }

    /** Failure that stopped the thread, or null. */
    public String failure() {
        return failure == null ? null : failure.toString();
    }

    /**
     * Changes the subscription and returns the generation before the change.
     *
     * It polls only after the new metadata have arrived. Otherwise they would lack the topics of
     * other members during the rebalance, and the leader would rebalance again.
     */
    public int subscribe(String topics, long millis) throws Exception {
        return request(
            millis,
            () -> {
                subscribe(topics);
                awaitMetadata();
            });
    }

    /** Commits offsets and waits for the broker's response. */
    public void commit(String offsets, long millis) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> table = new HashMap<>();
        for (String line : lines(offsets)) {
            String[] cells = line.split(":");
            table.put(
                new TopicPartition(cells[0], Integer.parseInt(cells[1])),
                new OffsetAndMetadata(Long.parseLong(cells[2])));
        }
        request(millis, () -> consumer.commitSync(table));
    }

    /** Stops polling and waits for the end of the last poll; heartbeats continue. */
    public void freeze(long millis) throws InterruptedException, TimeoutException {
        frozen = true;
        if (!stopped.await(millis, TimeUnit.MILLISECONDS)) {
            throw new TimeoutException("still polling after " + millis + " ms");
        }
    }

    /** Closes it and returns whether it was closed in time. */
    public boolean end(String membership, long millis) throws InterruptedException {
        ending = GroupMembershipOperation.valueOf(membership);
        thread.join(millis);
        return !thread.isAlive();
    }

    private int request(long millis, Runnable action) throws Exception {
        FutureTask<Integer> task =
            new FutureTask<>(
                () -> {
                    int generation = consumer.groupMetadata().generationId();
                    action.run();
                    return generation;
                });
        requests.put(task);
        return task.get(millis, TimeUnit.MILLISECONDS);
    }

    /** Handles network responses without a poll. */
    private void awaitMetadata() {
        long until = System.nanoTime() + METADATA.toNanos();
        do {
            consumer.listTopics(CLOSE);
        } while (System.nanoTime() < until);
    }

    private void subscribe(String topics) {
        ConsumerRebalanceListener listener =
            new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> added) {
                    assignedGenerations.append(' ').append(consumer.groupMetadata().generationId());
                    record('+', added);
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                    record('-', revoked);
                }
            };
        if (topics.startsWith(PATTERN)) {
            String pattern = topics.substring(PATTERN.length());
            consumer.subscribe(new SubscriptionPattern(pattern), listener);
        } else {
            consumer.subscribe(lines(topics), listener);
        }
    }

    private void record(char sign, Collection<TopicPartition> partitions) {
        ownership.append(sign).append(' ').append(System.currentTimeMillis());
        partitions.forEach(tp -> ownership.append(' ').append(tp.topic() + ":" + tp.partition()));
        ownership.append('\n');
    }

    private void run(String topics) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> opened = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer = opened;
            subscribe(topics);
            while (ending == null) {
                pollOnce();
            }
            consumer.close(CloseOptions.timeout(CLOSE).withGroupMembershipOperation(ending));
        } catch (Throwable thrown) {
            failure = thrown;
        }
    }

    private void pollOnce() throws InterruptedException {
        if (frozen) {
            stopped.countDown();
            Thread.sleep(POLL.toMillis());
            return;
        }
        consumer.poll(POLL);
        for (FutureTask<Integer> task = requests.poll(); task != null; task = requests.poll()) {
            task.run();
        }
        // Only the membership is needed, not the records.
        consumer.pause(consumer.assignment());
        String partitions =
            consumer.assignment().stream()
                .map(tp -> "\n" + tp.topic() + ":" + tp.partition())
                .collect(Collectors.joining());
        membership =
            consumer.groupMetadata().generationId() + assignedGenerations.toString() + partitions;
    }

    private static List<String> lines(String text) {
        return text.isEmpty() ? List.of() : Arrays.asList(text.split("\n"));
    }
}
