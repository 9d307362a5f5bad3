import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.Collectors;
/** Checks the minima in goals.jsonl, and compares answers with them: java Check.java FOLDER [ANSWERS|-]. See README.md. */
public final class Check {
    static final String[] NAMES = {"topic spread", "sum of squares", "moves"};
    static final List<String> GOALS = List.of("balance", "spread");
    static int errors;
    final Object id;
    final Map<String, Integer> counts = new TreeMap<>(); // partitions by topic
    final Map<String, Set<String>> subscribed = new TreeMap<>(); // topics by member
    final Map<String, String> owners = new HashMap<>(); // member by partition, named topic/number
    long partitions; // of subscribed topics
    public static void main(String[] arguments) throws IOException {
        Thread.setDefaultUncaughtExceptionHandler((thread, cause) -> { System.out.println("A value is missing or wrong: " + cause.getMessage()); System.exit(1); });
        List<Object> goals = read(Files.newBufferedReader(Path.of(arguments[0], "goals.jsonl")));
        Map<Object, Check> checks = new LinkedHashMap<>();
        for (Object group : read(Files.newBufferedReader(Path.of(arguments[0], "groups.jsonl")))) if (checks.put(get(group, "id"), new Check(group)) != null) error(get(group, "id"), "two groups");
        for (Object one : goals) GOALS.forEach(name -> checks.get(get(one, "id")).proof(name, get(get(one, "goals"), name)));
        if (!goals.stream().map(one -> get(one, "id")).toList().equals(List.copyOf(checks.keySet()))) error("goals", "other groups");
        System.out.println(goals.size() + " groups, " + errors + " errors in the minima");
        if (arguments.length > 1) {
            Map<Object, Object> answers = new HashMap<>();
            InputStream input = arguments[1].equals("-") ? System.in : Files.newInputStream(Path.of(arguments[1]));
            for (Object one : read(new BufferedReader(new InputStreamReader(input, "UTF-8")))) if (answers.put(get(one, "id"), get(one, "assignment")) != null) error(get(one, "id"), "two answers");
            Map<String, Integer> results = new TreeMap<>();
            for (Object one : goals) {
                Check check = checks.get(get(one, "id"));
                Map<String, String> found = check.members(answers.get(check.id));
                GOALS.forEach(name -> results.merge(name + ": " + check.compare(found, name, get(get(one, "goals"), name)), 1, Integer::sum));
            }
            results.forEach((text, number) -> System.out.println(number + " groups, goal " + text));
        }
        System.exit(errors == 0 ? 0 : 1);
    }
    Check(Object group) {
        id = get(group, "id");
        map(get(group, "topics")).forEach((topic, one) -> counts.put(topic, Math.toIntExact((Long) (one instanceof Long ? one : get(one, "partitions")))));
        for (Object member : list(get(group, "members"))) {
            subscribed.put((String) get(member, "id"), new TreeSet<>(Check.<String>list(get(member, "topics"))));
            list(map(member).getOrDefault("owned", List.of())).forEach(pair -> own((String) get(member, "id"), pair, owners));
        }
        subscribed.values().stream().flatMap(Set::stream).distinct().forEach(topic -> partitions += counts.getOrDefault(topic, 0));
    }
    /** Records the member of a partition, or reports that the member cannot have it. */
    void own(String member, Object pair, Map<String, String> members) {
        String topic = (String) list(pair).get(0); long number = (Long) list(pair).get(1);
        boolean exists = subscribed.getOrDefault(member, Set.of()).contains(topic) && number >= 0 && number < counts.getOrDefault(topic, 0);
        if (!exists || members.put(topic + "/" + number, member) != null) error(id, member + " cannot have " + pair);
    }
    /** Returns the member of each partition, or null for an assignment that is not valid. */
    Map<String, String> members(Object assignment) {
        int before = errors; Map<String, String> members = new HashMap<>();
        if (assignment != null) map(assignment).forEach((member, pairs) -> list(pairs).forEach(pair -> own(member, pair, members)));
        if (members.size() != partitions) error(id, members.size() + " of " + partitions + " partitions are assigned");
        return errors > before ? null : members;
    }
    String compare(Map<String, String> members, String name, Object goal) {
        for (int i = name.equals("spread") ? 0 : 1; members != null && i < 3; i++) {
            long above = values(members)[i] - (Long) list(get(goal, "minimum")).get(i);
            if (above < 0 && error(id, NAMES[i] + " below the minimum") || above > 0) return NAMES[i] + " above the minimum";
        }
        return members == null ? "invalid" : "minimum";
    }
    long[] values(Map<String, String> members) {
        long moves = owners.keySet().stream().filter(one -> !owners.get(one).equals(members.get(one))).count();
        return new long[] {squares(numbers(members, true)), squares(numbers(members, false)), moves};
    }
    /** Returns the number of partitions by member, or by topic and member. */
    static Map<String, Long> numbers(Map<String, String> members, boolean byTopic) {
        return members.entrySet().stream().collect(Collectors.groupingBy(
            one -> byTopic ? topic(one.getKey()) + "\n" + one.getValue() : one.getValue(), Collectors.counting()));
    }
    /** Checks the assignment and the prices that prove the minimum of a goal; see README.md. */
    void proof(String name, Object goal) {
        Map<String, String> members = members(get(goal, "assignment"));
        if (members == null || !Arrays.stream(values(members)).boxed().toList().equals(get(goal, "minimum"))) { error(id, "other values"); return; }
        long square = partitions + 1, spread = name.equals("spread") ? Math.multiplyExact(square, square * square + 1) : 0;
        Map<String, Long> loads = numbers(members, false), spreads = numbers(members, true);
        subscribed.forEach((member, topics) -> {
            long price = (Long) get(get(get(goal, "prices"), "members"), member);
            check(price, square, loads.getOrDefault(member, 0L), member);
            for (String topic : topics) check(Math.subtractExact(price(goal, topic, member), price), spread, spreads.getOrDefault(topic + "\n" + member, 0L), topic + " at " + member);
        });
        members.forEach((one, member) -> subscribed.forEach((other, topics) -> {
            if (topics.contains(topic(one)) && cost(goal, one, other) < cost(goal, one, member)) error(id, one + " to " + other + " is better");
        }));
    }
    /** Checks that a price is between the costs of the last partition of n and of one more, for the cost weight * n * n. */
    void check(long price, long weight, long n, String text) {
        if (price > Math.multiplyExact(weight, 2 * n + 1) || n > 0 && price < weight * (2 * n - 1)) error(id, "the price of " + text + " proves nothing");
    }
    long cost(Object goal, String one, String member) { return price(goal, topic(one), member) + (owners.getOrDefault(one, member).equals(member) ? 0 : 1); }    static long price(Object goal, String topic, String member) { return (Long) get(get(get(get(goal, "prices"), "topics"), member), topic); }
    static boolean error(Object id, String text) { System.out.println(id + ": " + text); return ++errors > 0; }
    static long squares(Map<String, Long> numbers) { return numbers.values().stream().mapToLong(n -> n * n).sum(); }
    static String text(String json) {
        return Pattern.compile("\\\\u(\\p{XDigit}{4})").matcher(json.substring(1, json.length() - 1)).replaceAll(
            code -> Matcher.quoteReplacement("" + (char) Integer.parseInt(code.group(1), 16))).translateEscapes();
    }
    static String topic(String partition) { return partition.substring(0, partition.lastIndexOf('/')); }
    static Object get(Object object, String key) { return map(object).get(key); }
    @SuppressWarnings("unchecked") static Map<String, Object> map(Object value) { return (Map<String, Object>) value; }
    @SuppressWarnings("unchecked") static <T> List<T> list(Object value) { return (List<T>) value; }
    static List<Object> read(BufferedReader lines) { return lines.lines().map(line -> parse(new Scanner(line).useDelimiter(""))).toList(); }
    /** Parses a JSON value without fractions. */
    static Object parse(Scanner in) {
        in.skip("[\\s,:]*");
        if (!in.hasNext("[{\\[]")) {
            String word = in.findInLine(in.hasNext("\"") ? "\"(?:[^\"\\\\]|\\\\.)*\"" : "[-+.\\w]+");
            return word.startsWith("\"") ? text(word) : word.matches("-?\\d+") ? (Object) Long.valueOf(word) : word.equals("null") ? null : word;
        }
        boolean isMap = in.next().equals("{");
        Map<String, Object> map = new LinkedHashMap<>(); List<Object> list = new ArrayList<>();
        for (in.skip("\\s*"); !in.hasNext("[}\\]]"); in.skip("[\\s,]*")) if (isMap) map.put((String) parse(in), parse(in)); else list.add(parse(in));
        in.next();
        return isMap ? map : list;
    }
}
