import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.Configurable;

/** Calls of classes and methods that differ between releases, and of classes of users. */
final class Reflection {
    private static final String CUSTOM = "class:";
    private static final Map<String, Object> SHARED = new HashMap<>();

    private Reflection() { }

    /** Returns whether a request names the class of a user, as class:NAME. */
    static boolean isCustom(String assignor) {
        return assignor.startsWith(CUSTOM);
    }

    /** Returns the class that a request names, which precedes a class of the release of equal name. */
    static Class<?> customClass(String assignor) throws InvocationTargetException {
        try {
            return Class.forName(assignor.substring(CUSTOM.length()));
        } catch (ClassNotFoundException | LinkageError unusable) {
            throw new InvocationTargetException(unusable);
        }
    }

    /** Creates an object of the class of a user, and configures it without settings. */
    static Object createCustom(String assignor, Object... arguments) throws ReflectiveOperationException {
        try {
            Object created = create(customClass(assignor), arguments);
            if (created instanceof Configurable) {
                ((Configurable) created).configure(Map.of());
            }
            return created;
        } catch (NoSuchMethodException | InstantiationException | LinkageError | RuntimeException unusable) {
            throw new InvocationTargetException(unusable);
        }
    }

    /** Returns one object of the class of a user for all groups, as a broker has. */
    static Object sharedCustom(String assignor) throws ReflectiveOperationException {
        if (!SHARED.containsKey(assignor)) {
            SHARED.put(assignor, createCustom(assignor));
        }
        return SHARED.get(assignor);
    }

    /** Returns whether an object implements a type that the release may lack. */
    static boolean isA(Object object, String type) throws ClassNotFoundException {
        return exists(type) && Class.forName(type).isInstance(object);
    }

    /** Returns the first of these classes that the release contains. */
    static Class<?> find(String... names) throws ClassNotFoundException {
        for (String name : names) {
            if (exists(name)) {
                return Class.forName(name);
            }
        }
        throw new ClassNotFoundException(String.join(", ", names));
    }

    static boolean exists(String name) {
        try {
            Class.forName(name);
            return true;
        } catch (ClassNotFoundException missing) {
            return false;
        }
    }

    /** Returns the public method of a name and a number of parameters, or null. */
    static Method method(Class<?> owner, String name, int parameters) {
        for (Method method : owner.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                return method;
            }
        }
        return null;
    }

    /** Calls a constructor that accepts the arguments, public or not. */
    static Object create(Class<?> owner, Object... arguments) throws ReflectiveOperationException {
        for (Constructor<?> constructor : owner.getDeclaredConstructors()) {
            if (accepts(constructor.getParameterTypes(), arguments)) {
                constructor.setAccessible(true);
                return constructor.newInstance(arguments);
            }
        }
        throw new NoSuchMethodException("constructor of " + owner.getName());
    }

    /** Calls a public method that accepts the arguments. */
    static Object call(Object target, String name, Object... arguments)
            throws ReflectiveOperationException {
        return callOf(target.getClass(), target, name, arguments);
    }

    /** Calls a method, public or not, of a class or of a class that it extends. */
    static Object callHidden(Object target, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (Class<?> owner = target.getClass(); owner != null; owner = owner.getSuperclass()) {
            for (Method method : owner.getDeclaredMethods()) {
                if (method.getName().equals(name) && accepts(method.getParameterTypes(), arguments)) {
                    method.setAccessible(true);
                    return method.invoke(target, arguments);
                }
            }
        }
        throw new NoSuchMethodException(target.getClass().getName() + "." + name);
    }

    /** Calls a public method of a class or an interface; the target of a static method is null. */
    static Object callOf(Class<?> owner, Object target, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (Method method : owner.getMethods()) {
            if (method.getName().equals(name) && accepts(method.getParameterTypes(), arguments)) {
                return method.invoke(target, arguments);
            }
        }
        throw new NoSuchMethodException(owner.getName() + "." + name);
    }

    private static boolean accepts(Class<?>[] types, Object[] arguments) {
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            Class<?> type = MethodType.methodType(types[i]).wrap().returnType();
            if (arguments[i] != null && !type.isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }
}
