// SPDX-License-Identifier: Apache-2.0
package pyflinkcep.check;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Runs patterns of a program on events given as JSON; prints events and matches as JSON lines. */
public final class Runner {

  static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
    JsonNode plan = JSON.readTree(Files.readAllBytes(Paths.get(arguments[0])));
    for (JsonNode one : plan.get("patterns")) {
      ObjectNode answer = JSON.createObjectNode();
      answer.put("name", one.get("name").asText());
      boolean wanted = one.get("rows").isObject();
      try {
        run(one, plan, answer, wanted);
      } catch (Throwable error) {
        answer.put(wanted ? "noRows" : "error", reason(error));
        if (wanted) alone(one, plan, answer);
      }
      out.println(JSON.writeValueAsString(answer));
    }
    out.flush();
    System.exit(0);
  }

  /** Run a pattern without the functions of its matches. */
  static void alone(JsonNode one, JsonNode plan, ObjectNode answer) {
    answer.remove("rows");
    try {
      run(one, plan, answer, false);
    } catch (Throwable error) {
      answer.put("error", reason(error));
    }
  }

  static String reason(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) cause = cause.getCause();
    return cause.getClass().getSimpleName() + ": " + cause.getMessage();
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  static void run(JsonNode one, JsonNode plan, ObjectNode answer, boolean withRows)
      throws Exception {
    Class<Object> kind = (Class<Object>) Class.forName(one.get("event").asText());
    List<Object> events = new ArrayList<>();
    ArrayNode echoed = answer.putArray("events");
    for (JsonNode given : plan.get("events").get(one.get("name").asText())) {
      Class<?> own = kind;
      String column = one.path("discriminator").asText("");
      JsonNode named = given.get(column);
      if (named != null && one.get("kinds").has(named.asText())) {
        own = Class.forName(one.get("kinds").get(named.asText()).asText());
      }
      Object event = isPlain(own) ? bind(given.get("value"), own)
          : own.getName().startsWith("org.apache.flink.api.java.tuple.") ? tuple(given, own, one)
          : bind(given, own);
      events.add(event);
      KINDS.add(event.getClass());
      ObjectNode shown = row(event);
      if (!column.isEmpty()) shown.put(column, own.getSimpleName());
      echoed.add(shown);
    }
    Pattern<Object, ?> pattern = pattern(one);
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
    TypeInformation<Object> type = new GenericTypeInfo<>(kind);
    String time = one.path("time").asText("");
    DataStream<Object> stream =
        env.fromCollection(events, type)
            .assignTimestampsAndWatermarks(
                WatermarkStrategy.forGenerator(context -> new Never<>())
                    .withTimestampAssigner(new Times(time, one.path("scale").asLong(1))));
    List<String> keys = new ArrayList<>();
    for (JsonNode key : one.get("keys")) keys.add(key.asText());
    PatternStream<Object> found =
        keys.isEmpty()
            ? CEP.pattern(stream, pattern)
            : CEP.pattern(stream.keyBy(new Keys(keys), Types.STRING), pattern);
    SingleOutputStreamOperator<String> rows =
        found.inEventTime().process(new Shown(one.path("discriminator").asText("")), Types.STRING);
    ArrayNode matches = answer.putArray("matches");
    ArrayNode timeouts = answer.putArray("timeouts");
    DataStream<String> all = rows.union(rows.getSideOutput(Shown.TIMEOUTS));
    ArrayNode made = withRows ? answer.putArray("rows") : null;
    if (withRows) {
      env.getConfig().enableObjectReuse(); // rows of any type are shown as they are
      String column = one.path("discriminator").asText("");
      SingleOutputStreamOperator<Object> own =
          (SingleOutputStreamOperator<Object>) call(one, one.get("rows"), found.inEventTime());
      TypeInformation<Object> any = new GenericTypeInfo<>(Object.class);
      all = all.union(own.returns(any).map(new AsText("", column)).returns(Types.STRING));
      for (JsonNode tag : one.get("tags")) {
        OutputTag<Object> side = new OutputTag<>(tag.asText(), any);
        all = all.union(
            own.getSideOutput(side).map(new AsText(tag.asText(), column)).returns(Types.STRING));
      }
    }
    try (CloseableIterator<String> results = all.executeAndCollect()) {
      while (results.hasNext()) {
        JsonNode row = JSON.readTree(results.next());
        (row.has("row") ? made : row.has("timestamp") ? timeouts : matches).add(row);
      }
    }
  }

  /** A tuple, whose fields have the types that the program gives. */
  static Object tuple(JsonNode given, Class<?> kind, JsonNode one) throws Exception {
    Object made = kind.getDeclaredConstructor().newInstance();
    for (int i = 0; i < one.get("arguments").size(); i++) {
      Class<?> type = Class.forName(one.get("arguments").get(i).asText());
      kind.getField("f" + i).set(made, bind(given.get("f" + i), type));
    }
    return made;
  }

  @SuppressWarnings("unchecked")
  static Pattern<Object, ?> pattern(JsonNode one) throws Exception {
    return (Pattern<Object, ?>) call(one, one);
  }

  /** Call the method that was added to a class of the program. */
  static Object call(JsonNode one, JsonNode named, Object... arguments) throws Exception {
    Class<?> owner = Class.forName(named.get("owner").asText());
    String name = named.get("method").asText();
    for (Method method : owner.getDeclaredMethods()) {
      if (!method.getName().equals(name)) continue;
      method.setAccessible(true);
      boolean plain = Modifier.isStatic(method.getModifiers());
      return method.invoke(plain ? null : instance(owner, one.get("given")), arguments);
    }
    throw new NoSuchMethodException(name);
  }

  /** An object of the program; if nothing is known of its arguments, with empty fields. */
  static Object instance(Class<?> owner, JsonNode given) throws Exception {
    int count = given.isArray() ? given.size() : 0;
    for (Constructor<?> made : owner.getDeclaredConstructors()) {
      if (made.getParameterCount() != count) continue;
      made.setAccessible(true);
      Object[] values = new Object[count];
      for (int i = 0; i < count; i++) {
        values[i] = bind(given.get(i), made.getGenericParameterTypes()[i]);
      }
      return made.newInstance(values);
    }
    Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
    field.setAccessible(true);
    Object unsafe = field.get(null);
    return unsafe.getClass().getMethod("allocateInstance", Class.class).invoke(unsafe, owner);
  }

  /** No watermark before the end of the input: events are sorted by time first. */
  static final class Never<T> implements org.apache.flink.api.common.eventtime.WatermarkGenerator<T> {
    @Override
    public void onEvent(T e, long t, org.apache.flink.api.common.eventtime.WatermarkOutput out) {}

    @Override
    public void onPeriodicEmit(org.apache.flink.api.common.eventtime.WatermarkOutput out) {}
  }

  static final class Times
      implements org.apache.flink.api.common.eventtime.TimestampAssignerSupplier<Object> {
    private final String column;
    private final long scale;

    Times(String column, long scale) {
      this.column = column;
      this.scale = scale;
    }

    @Override
    public org.apache.flink.api.common.eventtime.TimestampAssigner<Object> createTimestampAssigner(
        Context context) {
      long[] count = {0};
      String name = column;
      return (event, before) -> name.isEmpty() ? count[0]++ : scale * millis(value(event, name));
    }
  }

  static final class Keys implements KeySelector<Object, String> {
    private final ArrayList<String> columns;

    Keys(List<String> columns) {
      this.columns = new ArrayList<>(columns);
    }

    @Override
    public String getKey(Object event) throws Exception {
      StringBuilder key = new StringBuilder();
      for (String column : columns) key.append(value(event, column)).append('\u0000');
      return key.toString();
    }
  }

  static final class Shown extends PatternProcessFunction<Object, String>
      implements TimedOutPartialMatchHandler<Object> {
    static final OutputTag<String> TIMEOUTS = new OutputTag<>("timeouts", Types.STRING);
    private final String discriminator;

    Shown(String discriminator) {
      this.discriminator = discriminator;
    }

    @Override
    public void processMatch(Map<String, List<Object>> match, Context ctx, Collector<String> out)
        throws Exception {
      out.collect(row(match).toString());
    }

    @Override
    public void processTimedOutMatch(Map<String, List<Object>> match, Context ctx) throws Exception {
      ObjectNode row = row(match);
      row.put("timestamp", ctx.timestamp());
      ctx.output(TIMEOUTS, row.toString());
    }

    private ObjectNode row(Map<String, List<Object>> match) {
      ObjectNode row = JSON.createObjectNode();
      ObjectNode stages = row.putObject("match");
      for (Map.Entry<String, List<Object>> stage : match.entrySet()) {
        ArrayNode events = stages.putArray(stage.getKey());
        for (Object event : stage.getValue()) {
          ObjectNode shown = Runner.row(event);
          if (!discriminator.isEmpty()) shown.put(discriminator, event.getClass().getSimpleName());
          events.add(shown);
        }
      }
      return row;
    }
  }

  /** A row as a line of JSON; of an event also its class. */
  static final class AsText
      implements org.apache.flink.api.common.functions.MapFunction<Object, String> {
    private final String tag;
    private final String discriminator;

    AsText(String tag, String discriminator) {
      this.tag = tag;
      this.discriminator = discriminator;
    }

    @Override
    public String map(Object value) {
      ObjectNode line = JSON.createObjectNode();
      ObjectNode shown = Runner.row(value);
      if (!discriminator.isEmpty() && !shown.isEmpty() && Runner.isKind(value)) {
        shown.put(discriminator, value.getClass().getSimpleName());
      }
      line.set("row", shown);
      if (!tag.isEmpty()) line.put("tag", tag);
      return line.toString();
    }
  }

  static final Set<Class<?>> KINDS = new HashSet<>();

  /** Whether a value is an event of a class with subclasses. */
  static boolean isKind(Object value) {
    return KINDS.contains(value.getClass());
  }

  // --- events as JSON, field by field

  static List<Field> fields(Class<?> kind) {
    List<Field> found = new ArrayList<>();
    for (Class<?> one = kind; one != null && one != Object.class; one = one.getSuperclass()) {
      List<Field> own = new ArrayList<>();
      for (Field field : one.getDeclaredFields()) {
        if (Modifier.isStatic(field.getModifiers()) || field.isSynthetic()) continue;
        field.setAccessible(true);
        own.add(field);
      }
      found.addAll(0, own);
    }
    return found;
  }

  static Object value(Object event, String path) {
    try {
      Object found = event;
      for (String name : path.split("\\.")) {
        if (isJson(found.getClass())) found = JSON.convertValue(show(found), Map.class);
        if (found instanceof Map) {
          found = ((Map<?, ?>) found).get(name);
          continue;
        }
        if (found instanceof org.apache.flink.types.Row) {
          found = ((org.apache.flink.types.Row) found).getField(name);
          continue;
        }
        Field field = null;
        for (Field one : fields(found.getClass())) if (one.getName().equals(name)) field = one;
        if (field == null) {
          if (name.equals("value")) return found;
          throw new IllegalArgumentException("no field " + name + " of " + found.getClass());
        }
        found = field.get(found);
      }
      return found;
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  static long millis(Object time) {
    if (time instanceof Number) return ((Number) time).longValue();
    if (time instanceof java.util.Date) return ((java.util.Date) time).getTime();
    if (time instanceof java.time.Instant) return ((java.time.Instant) time).toEpochMilli();
    if (time instanceof java.time.LocalDateTime) {
      return ((java.time.LocalDateTime) time).toInstant(java.time.ZoneOffset.UTC).toEpochMilli();
    }
    throw new IllegalArgumentException("expected a time, got " + time);
  }

  static Object bind(JsonNode json, Type type) throws Exception {
    Class<?> kind = type instanceof ParameterizedType
        ? (Class<?>) ((ParameterizedType) type).getRawType()
        : type instanceof Class ? (Class<?>) type : Object.class;
    if (json == null || json.isNull()) return kind.isPrimitive() ? zero(kind) : null;
    if (kind.isEnum()) {
      for (Object constant : kind.getEnumConstants()) {
        if (((Enum<?>) constant).name().equals(json.asText())) return constant;
      }
      return null;
    }
    if (kind == CharSequence.class) return json.asText();
    if (isJson(kind)) return parsed(json.toString(), kind);
    if (kind == org.apache.flink.types.Row.class) {
      org.apache.flink.types.Row made = org.apache.flink.types.Row.withNames();
      for (Iterator<String> names = json.fieldNames(); names.hasNext(); ) {
        String name = names.next();
        made.setField(name, bind(json.get(name), Object.class));
      }
      return made;
    }
    if (kind == java.time.Instant.class) return java.time.Instant.parse(json.asText());
    if (kind == java.time.LocalDateTime.class) return java.time.LocalDateTime.parse(json.asText());
    if (kind == java.time.LocalDate.class) return java.time.LocalDate.parse(json.asText());
    if (kind == java.util.Date.class) {
      return java.util.Date.from(java.time.Instant.parse(json.asText()));
    }
    if (kind == java.sql.Timestamp.class) {
      return java.sql.Timestamp.from(java.time.Instant.parse(json.asText()));
    }
    if (isPlain(kind)) return JSON.convertValue(json, kind);
    Type[] inner = type instanceof ParameterizedType
        ? ((ParameterizedType) type).getActualTypeArguments() : new Type[] {Object.class, Object.class};
    if (Collection.class.isAssignableFrom(kind) || kind == Iterable.class) {
      Collection<Object> made = Set.class.isAssignableFrom(kind) ? new HashSet<>() : new ArrayList<>();
      for (JsonNode element : json) made.add(bind(element, inner[0]));
      return made;
    }
    if (Map.class.isAssignableFrom(kind)) {
      Map<Object, Object> made = new LinkedHashMap<>();
      for (Iterator<Map.Entry<String, JsonNode>> all = json.fields(); all.hasNext(); ) {
        Map.Entry<String, JsonNode> entry = all.next();
        made.put(JSON.convertValue(entry.getKey(), (Class<?>) (inner[0] instanceof Class ? inner[0] : String.class)),
            bind(entry.getValue(), inner[1]));
      }
      return made;
    }
    if (kind.isArray()) {
      Object made = Array.newInstance(kind.getComponentType(), json.size());
      for (int i = 0; i < json.size(); i++) Array.set(made, i, bind(json.get(i), kind.getComponentType()));
      return made;
    }
    if (kind == Object.class) return JSON.treeToValue(json, Object.class);
    return bindFields(json, kind);
  }

  private static Object bindFields(JsonNode json, Class<?> kind) throws Exception {
    if (kind.isRecord()) {
      RecordComponent[] parts = kind.getRecordComponents();
      Class<?>[] types = new Class<?>[parts.length];
      Object[] values = new Object[parts.length];
      for (int i = 0; i < parts.length; i++) {
        types[i] = parts[i].getType();
        values[i] = bind(json.get(parts[i].getName()), parts[i].getGenericType());
      }
      Constructor<?> made = kind.getDeclaredConstructor(types);
      made.setAccessible(true);
      return made.newInstance(values);
    }
    Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
    unsafe.setAccessible(true);
    Object made;
    try {
      Constructor<?> plain = kind.getDeclaredConstructor();
      plain.setAccessible(true);
      made = plain.newInstance();
    } catch (NoSuchMethodException error) {
      made = ((sun.misc.Unsafe) unsafe.get(null)).allocateInstance(kind);
    }
    for (Field field : fields(kind)) {
      if (json.has(field.getName())) field.set(made, bind(json.get(field.getName()), field.getGenericType()));
    }
    return made;
  }

  /** Whether a class is a node of JSON of any Jackson, such as the one that Flink brings along. */
  static boolean isJson(Class<?> kind) {
    return kind.getName().contains("jackson.databind.");
  }

  /** A node of JSON, made by the Jackson that its class is of. */
  static Object parsed(String text, Class<?> kind) throws Exception {
    String name = kind.getName();
    String mapper = name.substring(0, name.indexOf("databind.")) + "databind.ObjectMapper";
    Class<?> made = Class.forName(mapper);
    return made.getMethod("readTree", String.class)
        .invoke(made.getDeclaredConstructor().newInstance(), text);
  }

  private static boolean isPlain(Class<?> kind) {
    return kind.isPrimitive() || Number.class.isAssignableFrom(kind) || kind == String.class
        || kind == Boolean.class || kind == Character.class || kind == BigDecimal.class
        || kind == BigInteger.class;
  }

  private static Object zero(Class<?> kind) {
    return Array.get(Array.newInstance(kind, 1), 0);
  }

  /** An event as an object; a plain value is its column "value". */
  static ObjectNode row(Object event) {
    if (!isPlain(event.getClass())) return (ObjectNode) show(event);
    ObjectNode made = JSON.createObjectNode();
    made.set("value", show(event));
    return made;
  }

  static JsonNode show(Object value) {
    if (value == null) return JSON.nullNode();
    Class<?> kind = value.getClass();
    if (isJson(kind)) {
      try {
        return JSON.readTree(value.toString());
      } catch (java.io.IOException error) {
        throw new IllegalStateException(error);
      }
    }
    if (value instanceof Enum) return JSON.getNodeFactory().textNode(((Enum<?>) value).name());
    if (isPlain(kind)) return JSON.valueToTree(value);
    if (value instanceof java.util.Date) {
      return JSON.getNodeFactory().textNode(((java.util.Date) value).toInstant().toString());
    }
    if (kind.getName().startsWith("java.time.")) return JSON.getNodeFactory().textNode(value.toString());
    if (value instanceof Collection || kind.isArray()) {
      ArrayNode made = JSON.createArrayNode();
      if (kind.isArray()) {
        for (int i = 0; i < Array.getLength(value); i++) made.add(show(Array.get(value, i)));
      } else {
        for (Object element : (Collection<?>) value) made.add(show(element));
      }
      return made;
    }
    ObjectNode made = JSON.createObjectNode();
    if (value instanceof org.apache.flink.types.Row) {
      org.apache.flink.types.Row row = (org.apache.flink.types.Row) value;
      for (String name : row.getFieldNames(true)) made.set(name, show(row.getField(name)));
      return made;
    }
    if (value instanceof Map) {
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        made.set(String.valueOf(entry.getKey()), show(entry.getValue()));
      }
      return made;
    }
    try {
      for (Field field : fields(kind)) made.set(field.getName(), show(field.get(value)));
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
    return made;
  }

  static String text(String file) throws Exception {
    return new String(Files.readAllBytes(Paths.get(file)), StandardCharsets.UTF_8);
  }
}
