package mvserver;

import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.net.URL;
import java.net.URLClassLoader;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkFiles;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Functions of users in jars. Each jar has a class loader of its own above Java's classes: it sees neither Spark's, nor
 * the server's, nor those of another jar. One that implements an interface of Lenses sees the jar of these interfaces
 * behind its own. What a function throws is a value beside its answer. Compiled by Janino when Spark starts: no lambdas,
 * no generics at call sites.
 */
public final class Jars {
  private static final ConcurrentHashMap LOADERS = new ConcurrentHashMap();
  private static final int WORDS_MAX = 500;

  private Jars() {}

  /** Of one jar, or of several, which are told apart by the ends of lines. */
  static ClassLoader loader(String digests, String paths) throws Exception {
    synchronized (LOADERS) {
      ClassLoader known = (ClassLoader) LOADERS.get(digests);
      if (known == null) {
        String[] digest = digests.split("\n");
        String[] path = paths.split("\n");
        URL[] urls = new URL[digest.length];
        for (int i = 0; i < urls.length; i++) {
          urls[i] = file(digest[i], path[i]).toURI().toURL();
        }
        known = new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
        LOADERS.put(digests, known);
      }
      return known;
    }
  }

  /** {@code path} is where the server keeps the jar: the executor may be on another machine, which fetched it. */
  private static File file(String digest, String path) {
    File file = new File(path);
    if (!file.isFile()) {
      file = new File(SparkFiles.get(digest + ".jar"));
    }
    if (!file.isFile()) {
      file = new File(SparkFiles.getRootDirectory(), digest + ".jar");
    }
    if (!file.isFile()) {
      throw new IllegalStateException("the jar is not there");
    }
    return file;
  }

  /** Of a user: a row of its arguments to a row of value and error. An object of its class serves one task. */
  public static final class Function implements UDF1 {
    private final String name;
    private final String digest;
    private final String path;
    private final String className;
    private final String methodName;
    private final String kinds;
    private final String result;
    private final String strict;
    private final String charactersMax;
    private final String valuesMax;
    private transient Method method;
    private transient Object self;
    private transient Lenses lenses;
    private transient String[] given;
    private transient String[] answered;

    public Function(
        String name, String digest, String path, String className, String methodName, String kinds, String result, String strict,
        String charactersMax, String valuesMax) {
      this.name = name;
      this.digest = digest;
      this.path = path;
      this.className = className;
      this.methodName = methodName;
      this.kinds = kinds;
      this.result = result;
      this.strict = strict;
      this.charactersMax = charactersMax;
      this.valuesMax = valuesMax;
    }

    public Object call(Object argument) throws Exception {
      Row row = (Row) argument;
      try {
        if (given == null) {
          open();
        }
        Object[] values = new Object[given.length];
        for (int i = 0; i < values.length; i++) {
          values[i] = taken(row.get(i), given[i]);
          if (lenses != null && values[i] instanceof List && ((List) values[i]).size() > Integer.parseInt(valuesMax)) {
            throw new Refused("54000", "it is given more than " + valuesMax + " values");
          }
          if (values[i] == null && strict.equals("true")) {
            return RowFactory.create(new Object[] {null, null});
          }
        }
        Object answer = lenses == null ? method.invoke(self, values) : answer(lenses.call(values), 0);
        return RowFactory.create(new Object[] {answer == null ? null : checked(answer, answered, 0), null});
      } catch (InvocationTargetException raised) {
        return failed("38000", words(raised.getCause()));
      } catch (Refused refused) {
        return failed(refused.sqlstate, refused.getMessage());
      } catch (VirtualMachineError error) {
        if (error instanceof StackOverflowError) {
          return failed("38000", words(error));
        }
        throw error;
      } catch (Throwable error) {
        return failed("38000", words(error));
      }
    }

    private Object failed(String sqlstate, String words) {
      return RowFactory.create(new Object[] {null, sqlstate + ":function " + name + ": " + words});
    }

    /** Opens it where it is made: null, or why it cannot be the function that it is declared as. */
    public String refusal() {
      try {
        open();
        return null;
      } catch (VirtualMachineError error) {
        throw error;
      } catch (Throwable error) {
        return words(error instanceof InvocationTargetException ? error.getCause() : error);
      }
    }

    private void open() throws Exception {
      Class found = Class.forName(className, true, loader(digest, path));
      String[] taken = kinds.isEmpty() ? new String[0] : kinds.split(" ");
      answered = result.split(" ");
      if (methodName.startsWith("UserDefined")) {
        Object made = found.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
        lenses = Lenses.of(made, methodName, taken, strict.equals("true"), answered);
      } else {
        choose(found, taken);
      }
      given = taken;
    }

    private void choose(Class found, String[] taken) throws Exception {
      Method[] methods = found.getMethods();
      Method chosen = null;
      for (int i = 0; i < methods.length; i++) {
        if (chosen == null && methods[i].getName().equals(methodName) && !methods[i].isBridge() && fits(methods[i], taken)) {
          chosen = methods[i];
        }
      }
      if (chosen == null) {
        throw new NoSuchMethodException(className + "." + methodName);
      }
      if (!Modifier.isStatic(chosen.getModifiers())) {
        self = found.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
      }
      method = chosen;
    }

    private boolean fits(Method candidate, String[] taken) {
      Class[] types = candidate.getParameterTypes();
      if (types.length != taken.length || !answered[0].equals(kindOf(candidate.getReturnType()))) {
        return false;
      }
      for (int i = 0; i < types.length; i++) {
        if (!(taken[i].startsWith("ARRAY<") ? "ARRAY" : taken[i]).equals(kindOf(types[i]))) {
          return false;
        }
      }
      return true;
    }

    private static String kindOf(Class type) {
      if (type == Boolean.class || type == Boolean.TYPE) return "BOOLEAN";
      if (type == Byte.class || type == Byte.TYPE) return "TINYINT";
      if (type == Short.class || type == Short.TYPE) return "SMALLINT";
      if (type == Integer.class || type == Integer.TYPE) return "INTEGER";
      if (type == Long.class || type == Long.TYPE) return "BIGINT";
      if (type == Float.class || type == Float.TYPE) return "FLOAT";
      if (type == Double.class || type == Double.TYPE) return "DOUBLE";
      if (type == BigDecimal.class) return "DECIMAL";
      if (type == String.class) return "VARCHAR";
      if (type == byte[].class) return "VARBINARY";
      if (type == LocalDate.class) return "DATE";
      if (type == LocalTime.class) return "TIME";
      if (type == LocalDateTime.class) return "TIMESTAMP";
      if (type == Instant.class) return "TIMESTAMP_LTZ";
      if (type == List.class) return "ARRAY";
      return "?";
    }

    /** Dates come as days and instants as microseconds since 1970. */
    private static Object taken(Object value, String kind) {
      if (value == null) {
        return null;
      }
      if (kind.startsWith("ARRAY<")) {
        scala.collection.Seq values = (scala.collection.Seq) value;
        ArrayList list = new ArrayList(values.size());
        String element = kind.substring(6, kind.length() - 1);
        for (int i = 0; i < values.size(); i++) {
          list.add(taken(values.apply(i), element));
        }
        return list;
      }
      if (kind.equals("DATE")) {
        return LocalDate.ofEpochDay(((Integer) value).longValue());
      }
      if (kind.equals("TIMESTAMP_LTZ")) {
        long micros = ((Long) value).longValue();
        return Instant.ofEpochSecond(Math.floorDiv(micros, 1000000L), Math.floorMod(micros, 1000000L) * 1000L);
      }
      return value;
    }

    /** An answer by an interface of Lenses, whose class nothing else says: of the kind that is declared. */
    private Object answer(Object value, int at) throws Refused {
      Object made = value instanceof Lenses.Moment ? ((Lenses.Moment) value).as(answered[at]) : value;
      if (made == null) {
        return null;
      }
      if (made instanceof List && answered[at].equals("ARRAY")) {
        ArrayList list = new ArrayList();
        for (Iterator each = ((List) made).iterator(); each.hasNext(); ) {
          list.add(answer(each.next(), at + 1));
        }
        return list;
      }
      if (!kindOf(made.getClass()).equals(answered[at])) {
        throw new Refused("22000", "it answered with " + made.getClass().getName() + " instead of " + answered[at]);
      }
      return made;
    }

    /** {@code type} from {@code at} on is the kind of the answer, and of a DECIMAL its precision and scale. */
    private Object checked(Object value, String[] type, int at) throws Refused {
      String kind = type[at];
      int most = Integer.parseInt(charactersMax);
      if (kind.equals("ARRAY")) {
        List values = (List) value;
        if (values.size() > most) {
          throw new Refused("54000", "its answer is longer than " + most + " elements");
        }
        ArrayList list = new ArrayList(values.size());
        long characters = 0;
        for (Iterator each = values.iterator(); each.hasNext(); ) {
          Object element = each.next();
          if (element != null && !kindOf(element.getClass()).equals(type[at + 1])) {
            throw new Refused("22000", "it answered with " + element.getClass().getName() + " in a list of "
                + type[at + 1]);
          }
          Object made = element == null ? null : checked(element, type, at + 1);
          if (made instanceof String) {
            characters += ((String) made).length();
          } else if (made instanceof byte[]) {
            characters += ((byte[]) made).length;
          }
          if (characters > most) {
            throw new Refused("54000", "its answer is longer than " + most + " characters or bytes");
          }
          list.add(made);
        }
        return list;
      }
      if (kind.equals("DECIMAL")) {
        int precision = Integer.parseInt(type[at + 1]);
        int scale = Integer.parseInt(type[at + 2]);
        BigDecimal number = (BigDecimal) value;
        if (number.precision() - number.scale() <= precision - scale + 1 || number.signum() == 0) {
          BigDecimal rounded = number.setScale(scale, RoundingMode.HALF_UP);
          if (rounded.precision() <= precision || rounded.signum() == 0) {
            return rounded;
          }
        }
        throw new Refused("22003", "its answer is out of range for type DECIMAL(" + precision + ", " + scale + ")");
      }
      if (kind.equals("VARCHAR")) {
        return text((String) value, most);
      }
      if (kind.equals("VARBINARY") && ((byte[]) value).length > most) {
        throw new Refused("54000", "its answer is longer than " + most + " characters or bytes");
      }
      if (kind.equals("DATE")) {
        LocalDate date = (LocalDate) value;
        checkYear(date.getYear(), kind);
        return Integer.valueOf((int) date.toEpochDay());
      }
      if (kind.equals("TIME")) {
        LocalTime time = (LocalTime) value;
        return time.withNano(time.getNano() / 1000 * 1000);
      }
      if (kind.equals("TIMESTAMP")) {
        LocalDateTime moment = (LocalDateTime) value;
        checkYear(moment.getYear(), kind);
        return moment.withNano(moment.getNano() / 1000 * 1000);
      }
      if (kind.equals("TIMESTAMP_LTZ")) {
        Instant instant = (Instant) value;
        long seconds = instant.getEpochSecond();
        if (seconds < -62135596800L || seconds > 253402300799L) {
          throw new Refused("22008", "its answer is out of range for type TIMESTAMP_LTZ");
        }
        return Long.valueOf(seconds * 1000000L + instant.getNano() / 1000);
      }
      return value;
    }

    private static void checkYear(int year, String kind) throws Refused {
      if (year < 1 || year > 9999) {
        throw new Refused("22008", "its answer is out of range for type " + kind);
      }
    }

    private static String text(String value, int most) throws Refused {
      if (value.length() > most) {
        throw new Refused("54000", "its answer is longer than " + most + " characters or bytes");
      }
      for (int i = 0; i < value.length(); i++) {
        char c = value.charAt(i);
        if (c == 0) {
          throw new Refused("22021", "its answer has the character 0x00");
        }
        if (Character.isSurrogate(c)) {
          boolean pair = Character.isHighSurrogate(c) && i + 1 < value.length()
              && Character.isLowSurrogate(value.charAt(i + 1));
          if (!pair) {
            throw new Refused("22021", "its answer has half of a surrogate pair");
          }
          i = i + 1;
        }
      }
      return value;
    }

    private static String words(Throwable error) {
      String message;
      try {
        message = error.getMessage();
      } catch (Throwable ofItself) {
        message = null;
      }
      String text = message == null ? "" : ": " + message.replaceAll("\\s+", " ").trim();
      String words = error.getClass().getName() + text;
      return words.length() > WORDS_MAX ? words.substring(0, WORDS_MAX) : words;
    }
  }

  /** An answer that its type cannot be. */
  static final class Refused extends Exception {
    final String sqlstate;

    Refused(String sqlstate, String message) {
      super(message);
      this.sqlstate = sqlstate;
    }
  }
}
