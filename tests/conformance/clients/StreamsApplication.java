import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams application with two threads, which counts the keys of "orders" and reads
 * "lowrate". Arguments: bootstrap servers, application id, group protocol, directory of the state,
 * and more settings, KEY=VALUE. After each line of standard input, it prints a line per thread:
 * the client id of its consumer and the partitions of its tasks. The store is on disk, so that a
 * process keeps its id after a restart.
 */
public final class StreamsApplication {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("application.id", arguments[1]);
        properties.put("group.protocol", arguments[2]);
        properties.put("num.stream.threads", "2");
        properties.put("replication.factor", "1");
        properties.put("state.dir", arguments[3]);
        properties.put("default.key.serde", Serdes.ByteArraySerde.class.getName());
        properties.put("default.value.serde", Serdes.ByteArraySerde.class.getName());
        for (int index = 4; index < arguments.length; index++) {
            String[] setting = arguments[index].split("=", 2);
            properties.put(setting[0], setting[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders").groupByKey()
            .count(Materialized.as(Stores.persistentKeyValueStore("counts")));
        builder.stream("lowrate").foreach((key, value) -> { });
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.start();
        while (System.in.read() >= 0) {
            String threads = streams.metadataForLocalThreads().stream()
                .map(thread -> thread.consumerClientId() + thread.activeTasks().stream()
                    .flatMap(task -> task.topicPartitions().stream())
                    .map(tp -> " " + tp.topic() + ":" + tp.partition())
                    .collect(Collectors.joining()))
                .collect(Collectors.joining(";"));
            System.out.println(streams.state() + ";" + threads);
        }
        streams.close();
    }
}
