import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Calls of classes and methods that differ between releases. */
final class Reflection {
    private Reflection() { }

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

    /** Calls a method of a class that is not public and accepts the arguments. */
    static Object callHidden(Object target, String name, Object... arguments)
            throws ReflectiveOperationException {
        for (Method method : target.getClass().getDeclaredMethods()) {
            if (method.getName().equals(name) && accepts(method.getParameterTypes(), arguments)) {
                method.setAccessible(true);
                return method.invoke(target, arguments);
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
