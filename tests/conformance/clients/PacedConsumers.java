import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumers of one group, each with a maximum number of records per second.
 *
 * Arguments: topic, number of consumers, records per second, and properties as key=value. It prints
 * "partitions N" after changes of an assignment, and "lag CONSUMER RECORDS" about each second.
 */
public final class PacedConsumers {
    private static final long SECOND = 1_000_000_000L;

    private PacedConsumers() {}

    public static void main(String[] arguments) throws Exception {
        for (int number = 0; number < Integer.parseInt(arguments[1]); number++) {
            Properties properties = new Properties();
            for (int at = 3; at < arguments.length; at++) {
                String[] pair = arguments[at].split("=", 2);
                properties.setProperty(pair[0], pair[1]);
            }
            properties.setProperty("client.id", "c" + number);
            Thread thread = new Thread(() -> run(arguments[0], Double.parseDouble(arguments[2]), properties));
            thread.setDaemon(true);
            thread.start();
        }
        System.in.read();
    }

    private static void run(String topic, double rate, Properties properties) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            long free = System.nanoTime(), measured = free;
            int owned = 0;
            while (true) {
                int count = consumer.poll(Duration.ofMillis(20)).count();
                // A late thread catches up at most one second.
                free = Math.max(free, System.nanoTime() - SECOND) + (long) (count / rate * SECOND);
                Thread.sleep(Math.max(0, (free - System.nanoTime()) / 1_000_000));
                if (consumer.assignment().size() != owned) {
                    System.out.println("partitions " + (consumer.assignment().size() - owned));
                    owned = consumer.assignment().size();
                }
                if (System.nanoTime() - measured > SECOND) {
                    measured = System.nanoTime();
                    long lag = 0;
                    for (var end : consumer.endOffsets(consumer.assignment()).entrySet())
                        lag += end.getValue() - consumer.position(end.getKey());
                    System.out.println("lag " + properties.getProperty("client.id") + " " + lag);
                }
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
