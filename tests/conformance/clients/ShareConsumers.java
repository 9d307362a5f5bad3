import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumers of a share group. Arguments: bootstrap servers, group id, and per consumer its client
 * id and its topics, separated by commas. They run until standard input ends.
 */
public final class ShareConsumers {
    public static void main(String[] arguments) throws Exception {
        for (int index = 2; index < arguments.length; index++) {
            String[] words = arguments[index].split(",");
            Properties properties = new Properties();
            properties.put("bootstrap.servers", arguments[0]);
            properties.put("group.id", arguments[1]);
            properties.put("client.id", words[0]);
            ByteArrayDeserializer bytes = new ByteArrayDeserializer();
            KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(properties, bytes, bytes);
            consumer.subscribe(Arrays.asList(words).subList(1, words.length));
            Thread thread = new Thread(() -> {
                while (true) {
                    consumer.poll(Duration.ofMillis(200));
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        System.in.read();
    }
}
