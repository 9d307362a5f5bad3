import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Prints the CPU seconds per call of an assignor of the JVM driver, without JSON.
 *
 * <p>Usage: DirectCalls ClientAssignors|BrokerAssignors REQUEST_FILE CALLS
 */
public final class DirectCalls {
    private DirectCalls() { }

    public static void main(String[] arguments) throws Exception {
        Driver.Assignors assignors =
            (Driver.Assignors) Class.forName(arguments[0]).getDeclaredConstructor().newInstance();
        JsonNode request = new ObjectMapper().readTree(new File(arguments[1]));
        int calls = Integer.parseInt(arguments[2]);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long start = 0;
        for (int i = -calls; i < calls; i++) { // The first half warms up the JVM.
            start = i == 0 ? threads.getCurrentThreadCpuTime() : start;
            assignors.assign(request.get("group"), request.get("assignor").textValue());
        }
        System.out.println((threads.getCurrentThreadCpuTime() - start) / 1e9 / calls);
    }
}
