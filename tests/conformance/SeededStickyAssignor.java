import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Configurable;

/**
 * Sticky assignor that starts from a plan: from the member's entry in sticky-seed.json, given as
 * the consumer property "kassay.seed".
 *
 * A consumer asks for its user data at every attempt to join, usually twice before its first
 * assignment, because the broker first gives it a member id. It must get the seed each time.
 */
public final class SeededStickyAssignor extends StickyAssignor implements Configurable {
    private byte[] seed;
    private boolean assigned;

    @Override
    public void configure(Map<String, ?> settings) {
        seed = Base64.getDecoder().decode((String) settings.get("kassay.seed"));
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        return assigned ? super.subscriptionUserData(topics) : ByteBuffer.wrap(seed);
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        assigned = true;
        super.onAssignment(assignment, metadata);
    }
}
