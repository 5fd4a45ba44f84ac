package mvserver;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;

/**
 * A function of a user that implements an interface of Lenses, io.lenses.sql.udf. The interfaces and their values are
 * classes of the function's own loader, so all of them are met by reflection. Compiled by Janino: no lambdas, no
 * generics at call sites.
 */
public final class Lenses {
  private static final String HOME = "io.lenses.sql.udf.";
  private final ClassLoader loader;
  private final Object self;
  private final Class shape;
  private final String[] kinds;
  private final boolean strict;
  private final Class value;
  private final Class type;

  private Lenses(Object self, String shape, String[] kinds, boolean strict) throws Exception {
    this.loader = self.getClass().getClassLoader();
    this.self = self;
    this.shape = loader.loadClass(HOME + shape);
    this.kinds = kinds;
    this.strict = strict;
    this.value = loader.loadClass(HOME + "value.Value");
    this.type = loader.loadClass(HOME + "datatype.DataType");
  }

  /** The original asks a function for its type before it calls it, and so may functions rely on it. */
  static Lenses of(Object self, String shape, String[] kinds, boolean strict, String[] result) throws Exception {
    Lenses made = new Lenses(self, shape, kinds, strict);
    if (!made.shape.isInstance(self)) {
      throw new IllegalStateException("it does not implement " + HOME + shape);
    }
    Object answer = made.typed();
    if (answer == null || !made.isType(answer, result, 0)) {
      throw new IllegalStateException("it says that its answer is of type "
          + (answer == null ? "null" : made.type.getField("name").get(answer)));
    }
    return made;
  }

  private boolean isAggregate() {
    return shape.getName().endsWith("AggregateFunction");
  }

  private Object typed() throws Exception {
    int count = isAggregate() ? 1 : kinds.length;
    Object[] types = new Object[count];
    for (int i = 0; i < count; i++) {
      Object plain = plainType(isAggregate() ? element(kinds[i]) : kinds[i]);
      types[i] = strict ? plain : optional(plain);
    }
    if (shape.getName().endsWith("VarArg")) {
      return invoke(self, shape.getMethod("typer", new Class[] {List.class}), new Object[] {listOf(types)});
    }
    return invoke(self, method(isAggregate() ? "typer" : "typeMapping", type, count), types);
  }

  /** The answer of a function, or of an aggregate whose first value is the list of its group and all others are constants. */
  Object call(Object[] values) throws Exception {
    if (isAggregate()) {
      return plain(folded((List) values[0], values));
    }
    Object[] given = new Object[values.length];
    for (int i = 0; i < given.length; i++) {
      given[i] = wrapped(values[i], kinds[i]);
    }
    if (shape.getName().endsWith("VarArg")) {
      return plain(invoke(self, shape.getMethod("evaluate", new Class[] {List.class}), new Object[] {listOf(given)}));
    }
    return plain(invoke(self, method("evaluate", value, given.length), given));
  }

  /** No state is taken back or merged: the list is that of the values that count. */
  private Object folded(List group, Object[] values) throws Exception {
    Object arguments = java.lang.reflect.Array.newInstance(value, values.length - 1);
    for (int i = 1; i < values.length; i++) {
      java.lang.reflect.Array.set(arguments, i - 1, wrapped(values[i], kinds[i]));
    }
    invoke(self, shape.getMethod("init", new Class[] {arguments.getClass()}), new Object[] {arguments});
    Object state = invoke(self, method("empty", value, 0), new Object[0]);
    Method add = method("add", value, 3);
    String kind = element(kinds[0]);
    for (Iterator each = (group == null ? new ArrayList() : group).iterator(); each.hasNext(); ) {
      state = invoke(self, add, new Object[] {null, state, wrapped(each.next(), kind)});
    }
    Optional last = (Optional) invoke(self, shape.getMethod("finalStep", new Class[0]), new Object[0]);
    if (last == null || !last.isPresent()) {
      return state;
    }
    Class step = loader.loadClass(HOME + "FinalStep");
    return invoke(last.get(), step.getMethod("calulate", new Class[] {value}), new Object[] {state});
  }

  private Method method(String name, Class parameter, int count) throws Exception {
    Class[] types = new Class[count];
    for (int i = 0; i < count; i++) {
      types[i] = parameter;
    }
    return shape.getMethod(name, types);
  }

  /** What the function throws is thrown as it is. */
  private static Object invoke(Object target, Method method, Object[] arguments) throws Exception {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException raised) {
      Throwable cause = raised.getCause();
      if (cause instanceof Error) {
        throw (Error) cause;
      }
      throw (Exception) cause;
    }
  }

  private static List listOf(Object[] values) {
    ArrayList list = new ArrayList(values.length);
    for (int i = 0; i < values.length; i++) {
      list.add(values[i]);
    }
    return list;
  }

  private static String element(String kind) {
    return kind.substring(6, kind.length() - 1);
  }

  // --- types ---------------------------------------------------------------------------------------------------------
  private Object plainType(String kind) throws Exception {
    if (kind.startsWith("ARRAY<")) {
      Object inner = plainType(element(kind));
      return invoke(null, type.getMethod("ltRepeated", new Class[] {type}), new Object[] {strict ? inner : optional(inner)});
    }
    return invoke(null, type.getMethod("lt" + named(kind), new Class[0]), new Object[0]);
  }

  private Object optional(Object plain) throws Exception {
    return invoke(null, type.getMethod("ltOptional", new Class[] {type}), new Object[] {plain});
  }

  private static String named(String kind) {
    if (kind.equals("BOOLEAN")) return "Boolean";
    if (kind.equals("TINYINT")) return "Byte";
    if (kind.equals("INTEGER")) return "Int";
    if (kind.equals("BIGINT")) return "Long";
    if (kind.equals("FLOAT")) return "Float";
    if (kind.equals("DOUBLE")) return "Double";
    if (kind.equals("DECIMAL")) return "BigDecimal";
    if (kind.equals("VARCHAR")) return "String";
    if (kind.equals("VARBINARY")) return "ByteArray";
    if (kind.equals("TIME")) return "TimeMicros";
    if (kind.equals("TIMESTAMP") || kind.equals("TIMESTAMP_LTZ")) return "TimestampMicros";
    throw new IllegalStateException("there is no value of type " + kind);
  }

  /** Whether what a function says of its answer is what is declared, from {@code at} on. */
  private boolean isType(Object said, String[] declared, int at) throws Exception {
    String name = said.getClass().getSimpleName();
    if (name.equals("LTOptional")) {
      return isType(said.getClass().getMethod("actualType", new Class[0]).invoke(said, new Object[0]), declared, at);
    }
    String kind = declared[at];
    if (kind.equals("ARRAY")) {
      return name.equals("LTRepeated") && isType(said.getClass().getField("schema").get(said), declared, at + 1);
    }
    if (kind.startsWith("TIME")) {
      String stem = kind.equals("TIME") ? "LTTime" : "LTTimestamp";
      return name.equals(stem + "Millis") || name.equals(stem + "Micros");
    }
    return name.equals("LT" + named(kind)) || (kind.equals("DECIMAL") && name.equals("LTBigInt"));
  }

  // --- values --------------------------------------------------------------------------------------------------------
  private Object wrapped(Object given, String kind) throws Exception {
    if (strict) {
      return plainValue(given, kind);
    }
    Class optional = loader.loadClass(HOME + "value.OptionalValue");
    if (given == null) {
      return invoke(null, optional.getMethod("empty", new Class[] {type}), new Object[] {plainType(kind)});
    }
    return invoke(null, optional.getMethod("of", new Class[] {value}), new Object[] {plainValue(given, kind)});
  }

  private Object plainValue(Object given, String kind) throws Exception {
    if (given == null) {
      throw new IllegalStateException("a list that it is given has a NULL; without STRICT it can take it");
    }
    if (kind.startsWith("ARRAY<")) {
      String inner = element(kind);
      ArrayList list = new ArrayList();
      for (Iterator each = ((List) given).iterator(); each.hasNext(); ) {
        list.add(wrapped(each.next(), inner));
      }
      Object schema = strict ? plainType(inner) : optional(plainType(inner));
      Class made = loader.loadClass(HOME + "value.RepeatedValue");
      if (!list.isEmpty()) {
        return invoke(null, made.getMethod("ofValues", new Class[] {List.class}), new Object[] {list});
      }
      return invoke(null, made.getMethod("empty", new Class[] {type}), new Object[] {schema});
    }
    Class made = loader.loadClass(HOME + "value." + named(kind) + "Value");
    Object content = given;
    Class taken = String.class;
    if (kind.equals("BOOLEAN")) taken = Boolean.TYPE;
    else if (kind.equals("TINYINT")) taken = Byte.TYPE;
    else if (kind.equals("INTEGER")) taken = Integer.TYPE;
    else if (kind.equals("BIGINT")) taken = Long.TYPE;
    else if (kind.equals("FLOAT")) taken = Float.TYPE;
    else if (kind.equals("DOUBLE")) taken = Double.TYPE;
    else if (kind.equals("DECIMAL")) taken = BigDecimal.class;
    else if (kind.equals("VARBINARY")) taken = byte[].class;
    else if (kind.startsWith("TIME")) {
      taken = Long.TYPE;
      content = Long.valueOf(micros(given));
    }
    return made.getConstructor(new Class[] {taken}).newInstance(new Object[] {content});
  }

  private static long micros(Object moment) {
    if (moment instanceof LocalTime) {
      return ((LocalTime) moment).toNanoOfDay() / 1000L;
    }
    Instant instant = moment instanceof Instant ? (Instant) moment : ((LocalDateTime) moment).toInstant(ZoneOffset.UTC);
    return instant.getEpochSecond() * 1000000L + instant.getNano() / 1000;
  }

  /** What a value of Lenses holds, as the functions of other jars answer; a moment as {@link Moment}. */
  private Object plain(Object answer) throws Exception {
    if (answer == null) {
      return null;
    }
    Object content = invoke(answer, value.getMethod("get", new Class[0]), new Object[0]);
    String name = answer.getClass().getSimpleName();
    if (name.equals("OptionalValue")) {
      return plain(content);
    }
    if (name.equals("RepeatedValue")) {
      ArrayList list = new ArrayList();
      for (Iterator each = ((List) content).iterator(); each.hasNext(); ) {
        list.add(plain(each.next()));
      }
      return list;
    }
    if (content instanceof BigInteger) {
      return new BigDecimal((BigInteger) content);
    }
    if (name.startsWith("Time")) {
      long scale = name.endsWith("MillisValue") ? 1000L : 1L;
      return new Moment(Math.multiplyExact(((Number) content).longValue(), scale), !name.startsWith("Timestamp"));
    }
    return content;
  }

  /** A time of the day or a point in time, in microseconds. */
  static final class Moment {
    private final long micros;
    private final boolean ofDay;

    Moment(long micros, boolean ofDay) {
      this.micros = micros;
      this.ofDay = ofDay;
    }

    /** As a value of the kind; itself where it is none. */
    Object as(String kind) {
      if (ofDay) {
        return kind.equals("TIME") ? LocalTime.ofNanoOfDay(Math.multiplyExact(micros, 1000L)) : (Object) this;
      }
      Instant instant = Instant.ofEpochSecond(Math.floorDiv(micros, 1000000L), Math.floorMod(micros, 1000000L) * 1000L);
      if (kind.equals("TIMESTAMP")) {
        return LocalDateTime.ofInstant(instant, ZoneOffset.UTC);
      }
      return kind.equals("TIMESTAMP_LTZ") ? instant : (Object) this;
    }
  }
}
