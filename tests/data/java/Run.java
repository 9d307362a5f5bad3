public class Run {
    public static void main(String[] arguments) throws Exception {
        Object test = new KassayRegressionTest();
        for (java.lang.reflect.Method method : KassayRegressionTest.class.getDeclaredMethods()) {
            if (method.isAnnotationPresent(org.junit.jupiter.api.Test.class)) {
                method.setAccessible(true);
                try {
                    method.invoke(test);
                    System.out.println("passed");
                } catch (java.lang.reflect.InvocationTargetException failed) {
                    System.out.println(failed.getCause().getMessage());
                }
            }
        }
    }
}
