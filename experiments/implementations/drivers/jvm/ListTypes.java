import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Prints the names of a class, of the classes that it extends and of its interfaces, the nearest first.
 *
 * <p>Prints no line if the class is missing. If a type that the class needs is missing, prints its name.
 * The line COOPERATIVE follows if the class is an assignor of the client with this protocol. The class
 * path contains the class and all installed libraries.
 */
public final class ListTypes {
    private ListTypes() { }

    public static void main(String[] arguments) {
        Deque<Class<?>> waiting = new ArrayDeque<>();
        try {
            waiting.add(Class.forName(arguments[0], false, ClassLoader.getSystemClassLoader()));
        } catch (ClassNotFoundException missing) {
            return;
        } catch (NoClassDefFoundError missing) {
            System.out.println(missing.getMessage().replace('/', '.'));
            return;
        } catch (LinkageError unusable) {
            System.err.println(unusable.getMessage());
            System.exit(1);
        }
        Class<?> listed = waiting.getFirst();
        while (!waiting.isEmpty()) {
            Class<?> type = waiting.remove();
            System.out.println(type.getName());
            if (type.getSuperclass() != null) {
                waiting.add(type.getSuperclass());
            }
            waiting.addAll(List.of(type.getInterfaces()));
        }
        if (isCooperative(listed)) {
            System.out.println("COOPERATIVE");
        }
    }

    private static boolean isCooperative(Class<?> type) {
        try {
            Object assignor = type.getDeclaredConstructor().newInstance();
            Object protocols = type.getMethod("supportedProtocols").invoke(assignor);
            return protocols.toString().contains("COOPERATIVE");
        } catch (ReflectiveOperationException | LinkageError | RuntimeException other) {
            return false;
        }
    }
}
