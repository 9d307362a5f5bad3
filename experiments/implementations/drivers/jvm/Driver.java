import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.common.TopicPartition;

/**
 * Calls the assignors of one Kafka release.
 *
 * <p>Usage: Driver CLASS, such as ClientAssignors. The driver writes a line when it is ready. Then it
 * reads one JSON line per group, {"assignor": NAME, "group": DOCUMENT}, and writes one line: the
 * answer, such as the partitions per member and the seconds, or {"failed": CLASS, "reason": TEXT} if Kafka's class
 * throws. Any other exception is an error of the driver, and ends it.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String END = "";
    private static final long GRACE_MILLIS = 1000;

    /**
     * Runs an assignor on the document of a group. The answer consists of maps, collections, texts,
     * numbers, booleans and partitions. An InvocationTargetException has Kafka's exception.
     */
    interface Assignors {
        Map<String, ?> assign(JsonNode group, String assignor) throws ReflectiveOperationException;
    }

    private Driver() { }

    public static void main(String[] arguments) throws Exception {
        PrintStream output = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(lines), "reader");
        reader.setDaemon(true);
        reader.start();
        Assignors assignors =
            (Assignors) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        output.println("ready");
        output.flush();
        for (String line = lines.take(); !line.equals(END); line = lines.take()) {
            JsonNode request = JSON.readTree(line);
            JsonNode group = withSharedTopics(request.get("group"));
            output.println(answer(assignors, group, request.get("assignor").textValue()));
            output.flush();
        }
    }

    /** Reads the requests. After the end of the input, ends the process even during a call. */
    private static void read(BlockingQueue<String> lines) {
        try {
            BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                lines.add(line);
            }
            lines.add(END);
            Thread.sleep(GRACE_MILLIS);
        } catch (IOException | InterruptedException ended) {
            // The process ends below.
        }
        Runtime.getRuntime().halt(0);
    }

    /** Gives a member with a number instead of topics the topics of the member at this index. */
    private static JsonNode withSharedTopics(JsonNode group) {
        JsonNode members = group.path("members");
        for (JsonNode member : members) {
            JsonNode index = member.path("topics");
            if (index.isInt()) {
                ((ObjectNode) member).set("topics", members.get(index.intValue()).get("topics"));
            }
        }
        return group;
    }

    private static String answer(Assignors assignors, JsonNode group, String assignor)
            throws IOException, ReflectiveOperationException {
        Map<String, ?> answer;
        try {
            answer = assignors.assign(group, assignor);
        } catch (InvocationTargetException thrown) {
            Throwable cause = thrown.getCause();
            answer = pair(
                "failed", cause.getClass().getSimpleName(), "reason", String.valueOf(cause.getMessage()));
        } catch (RuntimeException unusable) {
            if (!Reflection.isCustom(assignor)) {
                throw unusable;
            }
            answer = pair("failed", "the answer of the class is not usable", "reason", String.valueOf(unusable));
        }
        StringWriter text = new StringWriter();
        try (JsonGenerator json = JSON.createGenerator(text)) {
            json.enable(JsonGenerator.Feature.ESCAPE_NON_ASCII);
            write(json, answer);
        }
        return text.toString();
    }

    private static void write(JsonGenerator json, Object value) throws IOException {
        if (value instanceof Map) {
            json.writeStartObject();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                json.writeFieldName((String) entry.getKey());
                write(json, entry.getValue());
            }
            json.writeEndObject();
        } else if (value instanceof Collection) {
            json.writeStartArray();
            for (Object element : (Collection<?>) value) {
                write(json, element);
            }
            json.writeEndArray();
        } else if (value instanceof TopicPartition) {
            json.writeStartArray();
            json.writeString(((TopicPartition) value).topic());
            json.writeNumber(((TopicPartition) value).partition());
            json.writeEndArray();
        } else {
            json.writePOJO(value);
        }
    }

    /** Returns an assignment with the seconds of the call of Kafka's class. */
    static Map<String, Object> timed(Map<String, ?> assignment, long nanos) {
        return pair("assignment", assignment, "seconds", nanos * 1e-9);
    }

    /** Returns a map with two keys in this order. */
    static Map<String, Object> pair(String key, Object value, String otherKey, Object otherValue) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put(key, value);
        map.put(otherKey, otherValue);
        return map;
    }

    // ---- Group documents ----------------------------------------------------------------

    static int partitionCount(JsonNode topic) {
        return topic.isInt() ? topic.intValue() : topic.get("partitions").intValue();
    }

    static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>(array.size());
        array.forEach(text -> texts.add(text.textValue()));
        return texts;
    }

    static List<TopicPartition> owned(JsonNode member) {
        JsonNode pairs = member.path("owned");
        List<TopicPartition> owned = new ArrayList<>(pairs.size());
        pairs.forEach(
            pair -> owned.add(new TopicPartition(pair.get(0).textValue(), pair.get(1).intValue())));
        return owned;
    }

    static Optional<String> text(JsonNode member, String key) {
        return Optional.ofNullable(member.path(key).textValue());
    }
}
